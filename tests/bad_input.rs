//! Wrong heads and expressions: literal ones are errors of the script, computed ones are failures.

use crate::support::Ftsh;

/// Checks that the script is refused with these words on standard error.
fn refused(script: &str, expected: &[&str]) {
    let script = format!("echo never\n{script}\n");
    let errors = Ftsh::script(&script).stdout("").failure(2).errors();
    for expected in expected {
        assert!(errors.contains(expected), "{script}: {expected} expected in\n{errors}");
    }
}

/// Checks that the script fails with these words in `$error`.
fn fails(script: &str, expected: &str) {
    let caught = format!(
        "try\n    {script}\ncatch\n    echo \"$error_kind\"\n    echo \"$error\" > story\nend\n"
    );
    let finished = Ftsh::script(&caught).stdout("expression\n").success();
    let story = finished.read("story");
    assert!(story.contains(expected), "{script}: {expected} expected in\n{story}");
}

fn head_refused(head: &str, expected: &[&str]) {
    refused(&format!("try {head}\n    echo never\nend"), expected);
}

fn head_fails(head: &str, expected: &str) {
    let variables = "zero=0; less=-5; word=soon; much=150; half=0.5; none=0s";
    fails(&format!("{variables}; try {head}; echo never; end"), expected);
}

#[test]
fn unknown_policies_and_clauses_have_near_names() {
    for (head, unknown, meant) in [
        ("2 times backoff exponental", "backoff policy `exponental`", "`exponential`"),
        ("2 times backoff Full", "backoff policy `Full`", "`full`"),
        ("2 times backoff zigzag", "backoff policy `zigzag`", "the policies are ethernet, "),
        ("2 times backoff full frm 1 s", "clause `frm`", "`from`"),
        ("2 times backoff full form 1 s", "clause `form`", "`from`"),
        ("2 times backoff full from 1 s too 5 s", "clause `too`", "`to`"),
        ("2 times backoff normal jiter 5%", "clause `jiter`", "`jitter`"),
        ("2 times backof full", "clause `backof`", "`backoff`"),
        ("2 times evry 5 s", "clause `evry`", "`every`"),
        ("2 times eahc 5 s", "clause `eahc`", "`each`"),
        ("2 times whlie true", "clause `whlie`", "`while`"),
        ("for 5 minutse", "unit `minutse`", "`minutes`"),
    ] {
        head_refused(head, &[&format!("unknown {unknown}"), meant]);
    }
    head_refused("2 times backoff fixed by 2", &["the policy `fixed` takes no `by`", "`from`"]);
    head_refused("5 times cp a b", &["expected a duration", "put the command on the next line"]);
}

#[test]
fn durations_are_longer_than_zero() {
    for head in [
        "for 0 seconds",
        "for -5 seconds",
        "for 0.0 s",
        "for 0ms",
        "2 times every -1 s",
        "2 times each -1 s",
        "2 times backoff fixed from 0 s",
        "2 times backoff full to 0 ms",
    ] {
        head_refused(head, &["a duration must be longer than zero"]);
    }
    for head in [
        "for $zero seconds",
        "for $none",
        "2 times each $zero s",
        "2 times each $zero hours",
        "2 times backoff fixed from $zero s",
        "2 times backoff full to $none",
    ] {
        head_fails(head, "a length of time can't be zero");
    }
    head_fails("for $less seconds", "`-5` is not a length of time");
    head_fails("for (0 .sub. 5) minutes", "`-5` is not a length of time");
    head_fails("2 times each $less s", "`-5` is not a length of time");
    head_fails("for $word", "`soon` is not a length of time");
    head_fails("for $word seconds", "`soon` is not a length of time");
}

#[test]
fn counts_are_whole_numbers_from_one() {
    for (count, expected) in [
        ("0", "`0` is too small"),
        ("-1", "`-1` is too small"),
        ("1.5", "expected a whole number, not `1.5`"),
        ("x", "expected a whole number, not `x`"),
    ] {
        head_refused(&format!("{count} times"), &[expected]);
        refused(&format!("forall x in a b at most {count}\n    echo never\nend"), &[expected]);
    }
    for (count, times, most) in [
        ("$zero", "can't make 0 attempts", "`at most 0` is too few"),
        ("$less", "can't make -5 attempts", "`at most -5` is too few"),
        ("$half", "`0.5` is not an integer", "`0.5` is not an integer"),
        ("$word", "`soon` is not an integer", "`soon` is not an integer"),
    ] {
        head_fails(&format!("{count} times"), times);
        let variables = "zero=0; less=-5; half=0.5; word=soon";
        fails(&format!("{variables}; forall x in a b at most {count}; echo never; end"), most);
    }
}

#[test]
fn factors_are_not_below_one() {
    for factor in ["0.99", "0", "-2"] {
        head_refused(
            &format!("2 times backoff full by {factor}"),
            &["`by` must be a number from 1"],
        );
    }
    head_refused("2 times backoff full by x", &["`x` is not a number"]);
    head_fails("2 times backoff full by $half", "`by` must be a number from 1, not 0.5");
    head_fails("2 times backoff full by $less", "`by` must be a number from 1, not -5");
    head_fails("2 times backoff full by $word", "`soon` is not a number");
}

#[test]
fn jitter_is_a_percentage() {
    for jitter in ["101%", "-1%", "150 %"] {
        let head = format!("2 times backoff normal jitter {jitter}");
        head_refused(&head, &["`jitter` must be from 0% to 100%"]);
    }
    head_refused("2 times backoff normal jitter 10", &["a `%` is missing"]);
    head_fails("2 times backoff normal jitter $much%", "from 0% to 100%, not 150%");
    head_fails("2 times backoff proportional jitter $less%", "from 0% to 100%, not -5%");
}

#[test]
fn delays_do_not_start_above_their_cap() {
    head_refused("2 times backoff full from 10 s to 1 s", &["`from` is longer than `to`"]);
    head_fails("2 times backoff full from $much s to 1 s", "`from` (150 s) is above `to` (1 s)");
}

#[test]
fn regular_expressions_are_checked() {
    for (pattern, expected) in [
        ("\"a(b\"", "unclosed group"),
        ("'['", "unclosed character class"),
        ("'*a'", "repetition operator missing expression"),
    ] {
        refused(&format!("x=abc .matches. {pattern}"), &["not a regular expression", expected]);
    }
    fails("p=\"a(b\"; x=abc .matches. $p", "`a(b` is not a regular expression");
    fails("p=\"(\"; if abc .matches. \"a$p\"; end", "`a(` is not a regular expression");
}

#[test]
fn options_are_checked_like_clauses() {
    for (policy, expected) in [
        ("ful", "unknown backoff policy `ful`; did you mean `full`?"),
        ("full frm 1s", "unknown clause `frm`; did you mean `from`?"),
        ("full from 0s", "`from` must be longer than 0"),
        ("full from -5s", "`from` takes a duration"),
        ("full from 5s to 1s", "`from` (5 s) is above `to` (1 s)"),
        ("full by 0.5", "`by` must be a number from 1, not 0.5"),
        ("normal jitter 150%", "`jitter` must be from 0% to 100%, not 150%"),
    ] {
        Ftsh::command("echo never")
            .options(["--backoff", policy])
            .stdout("")
            .stderr(expected)
            .failure(2);
        Ftsh::command("echo never")
            .env("FTSH_BACKOFF", policy)
            .stdout("")
            .stderr(expected)
            .failure(2);
    }
}
