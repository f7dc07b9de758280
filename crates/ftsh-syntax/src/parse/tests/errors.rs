//! Messages for wrong scripts: structures, heads and lines.

use insta::assert_snapshot;

use super::rendered_errors;
use crate::parse;

#[test]
fn missing_ends_are_found_by_indentation() {
    assert_snapshot!(rendered_errors("function f\n    try 5 times\n        cp a b\nend\necho x\n"), @"
error[missing-end]: this `try` has no `end`
 --> t:2:5
  |
2 |     try 5 times
  |     ^^^
 ...
4 | end
  | --- this `end` is indented like the `function`
");
    assert_snapshot!(rendered_errors("try\n  if a\n    b\n  else\n    c\ncatch\n  d\nend\n"), @"
error[missing-end]: this `if` has no `end`
 --> t:2:3
  |
2 |   if a
  |   ^^
 ...
6 | catch
  | ----- its `end` must come before this
");
    assert_snapshot!(rendered_errors("try\nwhile true\n"), @"
error[missing-end]: this `try` has no `end`
 --> t:1:1
  |
1 | try
  | ^^^

error[missing-end]: this `while` has no `end`
 --> t:2:1
  |
2 | while true
  | ^^^^^
");
}

#[test]
fn misplaced_lines() {
    assert_snapshot!(rendered_errors("end\ncatch\nelse\nelse if a\n"), @"
error[stray-end]: `end` without a structure to end
 --> t:1:1
  |
1 | end
  | ^^^

error[stray-part]: `catch` without `try`
 --> t:2:1
  |
2 | catch
  | ^^^^^

error[stray-part]: `else` without `if`
 --> t:3:1
  |
3 | else
  | ^^^^

error[stray-part]: `else` without `if`
 --> t:4:1
  |
4 | else if a
  | ^^^^^^^^^
");
    assert_snapshot!(rendered_errors("try\ncatch\ncatch\nend\nif a\nelse\nelse\nend"), @"
error[part-order]: a `try` has only one `catch`
 --> t:3:1
  |
2 | catch
  | ----- the first one is here
3 | catch
  | ^^^^^

error[part-order]: nothing can follow the last `else` of an `if`
 --> t:7:1
  |
7 | else
  | ^^^^ this `if` already has an `else`
");
    assert_snapshot!(rendered_errors("end foo\ncatch bar\n"), @"
error[unexpected]: unexpected `foo`
 --> t:1:5
  |
1 | end foo
  |     ^^^ expected the end of the command
  = hint: put the command on the next line, or after a `;`

error[unexpected]: unexpected `bar`
 --> t:2:7
  |
2 | catch bar
  |       ^^^ expected the end of the command
  = hint: the failure is in `$error`; put the command on the next line, or after a `;`
");
}

#[test]
fn misspelled_heads_explain_misplaced_lines() {
    assert_snapshot!(rendered_errors("try\n  tyr 5 times\n    cp a b\n  end\nend\n"), @"
error[unknown-structure]: `tyr` does not begin a structure
 --> t:2:3
  |
2 |   tyr 5 times
  |   ^^^
 ...
5 | end
  | --- this `end` belongs to no structure
  = hint: did you mean `try`?
");
    assert_snapshot!(rendered_errors("retry 5 times\n  cp a b\ncatch\n  echo\nend\nforeach x in a\n  echo\nend\nend"), @"
error[unknown-structure]: `retry` does not begin a structure
 --> t:1:1
  |
1 | retry 5 times
  | ^^^^^
 ...
3 | catch
  | ----- this `catch` belongs to no structure
  = hint: did you mean `try`?

error[unknown-structure]: `foreach` does not begin a structure
 --> t:6:1
  |
6 | foreach x in a
  | ^^^^^^^
 ...
8 | end
  | --- this `end` belongs to no structure
  = hint: did you mean `for`?

error[stray-end]: `end` without a structure to end
 --> t:9:1
  |
9 | end
  | ^^^
");
    assert!(parse("t", "retry 5 times\nrepeat\n").is_ok(), "programs may be called so");
}

#[test]
fn operators_and_clauses_of_other_languages() {
    assert_snapshot!(rendered_errors("if .exist. x\nend\nif $x eq 5\nend\nif not .exists. x\nend\na |\n"), @r"
error[unknown-operator]: unknown operator `.exist.`
 --> t:1:4
  |
1 | if .exist. x
  |    ^^^^^^^
  = hint: did you mean `.exists.`?

error[unknown-operator]: `eq` is not an operator here
 --> t:3:4
  |
3 | if $x eq 5
  |    ^^^^^^^
  = hint: write `$x == 5`

error[unknown-operator]: `not` is written `!`
 --> t:5:4
  |
5 | if not .exists. x
  |    ^^^
  = hint: write `! .exists. x`

error[missing-command]: expected a command
 --> t:8:1
  |
8 |
  | ^ the command ends here
");
    assert_snapshot!(rendered_errors("for x = 1 to 9\nend\nfor all x in a\nend\nfor (i=0; i<9; i++)\nend\nfor x from a\nend"), @"
error[loop-head]: unexpected `=`
 --> t:1:7
  |
1 | for x = 1 to 9
  |       ^ expected `in` and a list
  = hint: to count, `for n in 1 .to. 10`; for other words, `for x in a b c`

error[loop-head]: unexpected `x`
 --> t:3:9
  |
3 | for all x in a
  |         ^ expected `in` and a list
  = hint: write one word: `forall x in …`

error[loop-head]: unexpected `(`
 --> t:5:5
  |
5 | for (i=0; i<9; i++)
  |     ^ expected the name of the loop's variable
  = hint: write no parentheses: `for x in a b c`, or `for n in 1 .to. 10` to count

error[loop-head]: unexpected `from`
 --> t:7:7
  |
7 | for x from a
  |       ^^^^ expected `in` and a list
  = hint: write `in`: `for x in a b c`
");
    assert_snapshot!(rendered_errors("try 5 times delay 5 s\nend\ntry up to 5 times\nend\ntry 5 tims or for 1 s\nend\ntry 5 times {\nend\ntry five times\nend"), @"
error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:1:13
  |
1 | try 5 times delay 5 s
  |             ^^^^^
  = hint: `every 5 seconds` spaces the starts of attempts; `backoff fixed from 5 seconds` waits between attempts

error[unexpected]: unexpected `5`
 --> t:3:11
  |
3 | try up to 5 times
  |           ^ expected a duration, like `5 minutes`
  = hint: `try 5 times` makes at most 5 attempts

error[unexpected]: unexpected `1`
 --> t:5:19
  |
5 | try 5 tims or for 1 s
  |                   ^ expected a limit, like `5 times` or `10 minutes`
  = hint: write one `for` before both limits: `try for 10 minutes or 5 times`

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:7:13
  |
7 | try 5 times {
  |             ^
  = hint: a block begins on the line after its head, or after a `;`, and ends with `end`

error[not-a-number]: expected a whole number, not `five`
 --> t:9:5
  |
9 | try five times
  |     ^^^^
  = hint: write the number in digits, or `$five` for a variable
");
}

#[test]
fn an_error_hides_none_in_the_next_line() {
    assert_snapshot!(rendered_errors("try 5 minutse\n  a || b\nend\necho `date`\n"), @r"
error[unknown-unit]: unknown unit `minutse`
 --> t:1:7
  |
1 | try 5 minutse
  |       ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
  = hint: did you mean `minutes`?

error[and-or]: unexpected `||`
 --> t:2:5
  |
2 |   a || b
  |     ^^ expected the end of the command
  = hint: a failure is handled by `try … catch … end`; a question is `if ! …`, which continues in either case

error[command-substitution]: backquotes don't run commands
 --> t:4:6
  |
4 | echo `date`
  |      ^^^^^^
  = hint: write `$(date)`
");
}

#[test]
fn functions_are_defined_once() {
    assert_snapshot!(rendered_errors("function f\nend\n\nfunction f\nend"), @"
error[duplicate-function]: the function `f` is defined twice
 --> t:4:10
  |
1 | function f
  |          - first defined here
 ...
4 | function f
  |          ^
");
}

#[test]
fn clauses_of_loops() {
    assert_snapshot!(rendered_errors("forall x in a keep going b\nend\nforall x in a keep going keep going\nend\nforany x in keep going\nend\nforany x in a on slurm\nend\nforall x in a at least none\nend\nforall x in a at most 3 keep goin\nend\nfor x in a in order b\nend"), @"
error[unknown-clause]: `b` is not a clause
 --> t:1:26
  |
1 | forall x in a keep going b
  |                          ^
  = hint: the words of the list come before the clauses; quote words of the list that would begin a clause

error[duplicate-clause]: `keep going` is given twice
 --> t:3:26
  |
3 | forall x in a keep going keep going
  |                          ^^^^^^^^^^

error[misplaced-clause]: `forany` takes no `keep going`
 --> t:5:13
  |
5 | forany x in keep going
  |             ^^^^^^^^^^
  = hint: `forall` does; quote the words if they belong to the list

error[misplaced-clause]: `forany` takes no `on slurm`
 --> t:7:15
  |
7 | forany x in a on slurm
  |               ^^^^^^^^
  = hint: `forall` does; quote the words if they belong to the list

error[not-a-number]: expected a whole number, not `none`
 --> t:9:24
  |
9 | forall x in a at least none
  |                        ^^^^
  = hint: write the number in digits, or `$none` for a variable

error[unknown-clause]: `keep goin` is not a clause
  --> t:11:25
   |
11 | forall x in a at most 3 keep goin
   |                         ^^^^^^^^^
   = hint: did you mean `keep going`, which `forall` takes?

error[misplaced-clause]: `for` takes no `in order`
  --> t:13:12
   |
13 | for x in a in order b
   |            ^^^^^^^^
   = hint: `forany` does; quote the words if they belong to the list
");
}

#[test]
fn tagged_output() {
    assert_snapshot!(rendered_errors("forall x in a output tagged in order\nend\nforall x in a output tagged output grouped\nend\nforany x in a output tagged\nend"), @"
error[conflicting-clauses]: `output tagged` takes no `in order`
 --> t:1:29
  |
1 | forall x in a output tagged in order
  |                             ^^^^^^^^
  = hint: `output grouped in order` prints the output of each word in the order of the words

error[conflicting-clauses]: output is either grouped or tagged
 --> t:3:29
  |
3 | forall x in a output tagged output grouped
  |                             ^^^^^^^^^^^^^^
  = hint: `output tagged` prints each line at once, `output grouped` the output of a branch at its end

error[misplaced-clause]: `forany` takes no `output tagged`
 --> t:5:15
  |
5 | forany x in a output tagged
  |               ^^^^^^^^^^^^^
  = hint: `forall` does; quote the words if they belong to the list
");
}

#[test]
fn hedges() {
    assert_snapshot!(rendered_errors("forany x in a hedge after at most 2\nend\nforany x in a at most 2\nend\nforany x in a hedge after 0s\nend\nforall x in a hedge after 1s\nend\nforany x in a hedge after 5 at most 2\nend\nforany x in a hedge after 1s\nbreak\nend"), @"
error[missing-value]: expected a length of time after `hedge after`
 --> t:1:15
  |
1 | forany x in a hedge after at most 2
  |               ^^^^^^^^^^^
  = hint: `forany x in … hedge after 5 seconds` begins the next word when one takes longer; quote the words if they belong to the list

error[misplaced-clause]: `forany` takes `at most` only with `hedge after`
 --> t:3:15
  |
3 | forany x in a at most 2
  |               ^^^^^^^^^
  = hint: the words run one after the other without a hedge; quote the words if they belong to the list

error[zero-duration]: a duration must be longer than zero
 --> t:5:27
  |
5 | forany x in a hedge after 0s
  |                           ^^

error[misplaced-clause]: `forall` takes no `hedge after`
 --> t:7:15
  |
7 | forall x in a hedge after 1s
  |               ^^^^^^^^^^^^^^
  = hint: `forany` does; quote the words if they belong to the list

error[missing-unit]: `5` needs a unit
 --> t:9:27
  |
9 | forany x in a hedge after 5 at most 2
  |                           ^
  = hint: write `hedge after 5 seconds`, or `5m` for minutes

error[leaves-branch]: `break` can't leave a word of a hedged `forany`
  --> t:12:1
   |
12 | break
   | ^^^^^
   = hint: code that runs in parallel ends after its last command, by a failure, or by `exit`
");
}

#[test]
fn loops() {
    assert_snapshot!(rendered_errors("forall x in a at most 0\nend\nforall x in a at most\nend\nfor x in a at most 3\nend\nforall x in a in order\nend"), @"
error[out-of-range]: `0` is too small: the minimum is 1
 --> t:1:23
  |
1 | forall x in a at most 0
  |                       ^

error[missing-value]: expected a number after `at most`
 --> t:3:15
  |
3 | forall x in a at most
  |               ^^^^^^^
  = hint: `forall x in … at most 8` runs 8 at once; quote the words if they belong to the list

error[misplaced-clause]: `for` takes no `at most`
 --> t:5:12
  |
5 | for x in a at most 3
  |            ^^^^^^^^^
  = hint: `forall` does; quote the words if they belong to the list

error[misplaced-clause]: `forall` takes no `in order`
 --> t:7:15
  |
7 | forall x in a in order
  |               ^^^^^^^^
  = hint: `forany` does; quote the words if they belong to the list
");
    assert_snapshot!(rendered_errors("for 1x in a\nend\nfor x\nend\nfor\nend\nfor $x in a\nend"), @"
error[unexpected]: unexpected `1x`
 --> t:1:5
  |
1 | for 1x in a
  |     ^^ expected the name of the loop's variable

error[unexpected]: expected `in` and a list
 --> t:3:6
  |
3 | for x
  |      ^ the command ends here

error[unexpected]: expected the name of the loop's variable
 --> t:5:4
  |
5 | for
  |    ^ the command ends here

error[unexpected]: unexpected `$x`
 --> t:7:5
  |
7 | for $x in a
  |     ^^ expected the name of the loop's variable
");
}

#[test]
fn further_errors_are_counted() {
    let text = rendered_errors(&"a || b\n".repeat(30));
    assert_eq!(text.matches("error[").count(), 10);
    assert!(text.ends_with("\n… and 20 more\n"), "{text}");
}

#[test]
fn functions_may_have_names_of_other_shells() {
    assert!(crate::parse("t", "function set\nend\nset -e\n[ -f x ]\n").is_ok());
}

#[test]
fn unknown_kinds_of_failure() {
    assert_snapshot!(rendered_errors("try 3 times while $error_kind == canceld\n  a\nend"), @"
error[unknown-kind]: `canceld` is not a kind of failure
 --> t:1:34
  |
1 | try 3 times while $error_kind == canceld
  |                                  ^^^^^^^
  = hint: did you mean `canceled`?
");
    for refused in [
        "try; a; catch; if broken .ne. \"${error_kind}\"; b; end; end",
        "try; a; catch; if $b && $error_kind != broken; b; end; end",
        "try; a; catch; case $error_kind; when timeout broken; b; end; end",
    ] {
        let errors = rendered_errors(refused);
        assert!(errors.starts_with("error[unknown-kind]: `broken`"), "{refused}: {errors}");
        assert!(errors.contains("hint: the kinds are exit, signal, "), "{errors}");
    }
    for good in [
        "try; a; finally; if $error_kind != \"\"; b; end; end",
        "try; a; catch; case $error_kind; when time*; b; else; c; end; end",
        "try; a; catch; if $error == canceld; b; end; end",
        "if ${error_kind:-none} == none; b; end",
    ] {
        assert!(parse("t", good).is_ok(), "{good}");
    }
}

/// Returns the message of the only error of a script.
fn message(text: &str) -> String {
    match parse("t", text) {
        Ok(_) => String::new(),
        Err(errors) => errors.errors.iter().map(|it| &*it.message).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn clauses_of_try_are_no_words_of_a_list() {
    for clause in [
        "each 5 s",
        "each 5s",
        "every 1h30m",
        "stalled 1 minute",
        "memory 4 GB",
        "memory 512MiB",
        "no leftovers",
        "backoff none",
        "backoff full from 1 second to 5 minutes",
        "limit 5 s",
        "for 5 minutes",
        "timeout 5",
        "try 2 times",
    ] {
        for head in ["for x in", "forany x in", "forall x in", "list l in", "list add l"] {
            let owner = head.split(' ').next().unwrap_or_default();
            let expected = format!("`{owner}` takes no `{clause}`");
            assert_eq!(
                message(&format!("{head} a {clause}; end")).lines().next(),
                Some(&*expected)
            );
        }
        let written = format!("list l in {clause}");
        assert_eq!(message(&written), "", "{written}: the list begins with the word");
    }
    let all = message("forall x in a each 5 s at most 2 -- true");
    assert_eq!(all, "`forall` takes no `each 5 s`");
    for list in [
        "limit each",
        "a limit",
        "each every stalled",
        "a for 5",
        "a backoff strategies",
        "a memory of",
        "a no leftover",
        "a \"each\" 5 s",
        "a each $n s",
        "a each 5 s b",
    ] {
        assert_eq!(message(&format!("for x in {list} -- true")), "", "{list}");
    }
}

#[test]
fn descriptors_of_several_digits_are_refused() {
    for text in ["a 10> f", "a b 10>> f", "a 12< f", "a {fd}> f", "10> f a", "a 10>f", "a 10>&1"] {
        assert_eq!(message(text), "descriptors are the digits 0 to 9", "{text}");
    }
    for text in ["a 10 > f", "a '10'> f", "a x10> f", "a {b,c}> f", "a 1> f", "a 10->> v"] {
        assert_eq!(message(text), "", "{text}");
    }
}

#[test]
fn hints_name_what_the_place_takes() {
    let all = |text: &str| rendered_errors(text);
    assert!(all("channel c at most 2 per second").contains("`rate 2 per second`"));
    for text in ["try each 5 -- a", "try every 5 -- a", "limit 1 h stalled 5 -- a"] {
        let shown = all(text);
        assert!(shown.contains("expected `seconds`") && !shown.contains("`times`"), "{shown}");
    }
    assert!(all("try for 5 -- a").contains("expected `times`, `seconds`"));
    for text in ["try for 1 hour 30 minutes -- a", "try 1 hour 30 minutes -- a"] {
        assert!(all(text).contains("write one length of time: `1h30m`"), "{}", all(text));
    }
    assert!(!all("try for 1 hour every 5 s or 30 minutes -- a").contains("one length"));
    assert_eq!(message("function try\nend"), "`try` can't be the name of a function");
    let piped = message("a | for l from input -- echo $l\nb");
    assert_eq!(piped, "a structure on one line is not a stage of a pipeline");
}
