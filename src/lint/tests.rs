//! What the static look says, and what it says nothing about.

use insta::assert_snapshot;

use super::{Programs, lint};
use crate::backoff::Policy;
use crate::diagnostic::render_warnings;
use crate::syntax::parse;

/// All programs but those whose names begin with `no`, of which `wget` is worth a mention.
struct Most;

impl Programs for Most {
    fn has(&self, name: &str) -> bool {
        !name.starts_with("no") && name != "wgte"
    }

    fn names(&self) -> Vec<String> {
        vec!["wget".into()]
    }
}

fn look_with(text: &str, policy: &str) -> String {
    let script = parse("t", text).expect("a right script");
    let policy: Policy = policy.parse().expect("a policy");
    render_warnings(&script.source, &lint(&script, &policy, &Most))
}

fn look(text: &str) -> String {
    look_with(text, "ethernet")
}

/// Only the first lines of the warnings.
fn messages(text: &str) -> Vec<String> {
    look(text)
        .lines()
        .filter_map(|line| line.strip_prefix("warning: "))
        .map(str::to_owned)
        .collect()
}

fn assert_quiet(texts: &[&str]) {
    for text in texts {
        assert_eq!(look(text), "", "{text}");
    }
}

#[test]
fn attempts_multiply() {
    assert_snapshot!(look("try 5 times\n  a\n  try 100 times\n    b\n  end\nend"), @"
warning: attempts multiply: up to 5 × 100 = 500
 --> t:3:3
  |
1 | try 5 times
  | ----------- … in each of up to 5 attempts
 ...
3 |   try 100 times
  |   ^^^^^^^^^^^^^ up to 100 attempts …
  = hint: let one of them do the trying, or give both a limit on time
");
    assert_snapshot!(look("try for 1 hour\n  forany x in a b\n    try 3 times\n      $x\n    end\n  end\nend"), @"
warning: attempts multiply, without bound
 --> t:3:5
  |
1 | try for 1 hour
  | -------------- … in each of as many attempts as fit into 1 h
 ...
3 |     try 3 times
  |     ^^^^^^^^^^^ up to 3 attempts …
  = hint: let one of them do the trying, or give both a limit on time
");
    assert_snapshot!(look("try 5 times; try for 10 minutes; b; end; end"), @"
warning: attempts multiply, without bound
 --> t:1:14
  |
1 | try 5 times; try for 10 minutes; b; end; end
  |              ^^^^^^^^^^^^^^^^^^ as many attempts as fit into 10 min …
  | ----------- … in each of up to 5 attempts
  = hint: let one of them do the trying, or give both a limit on time
");
}

#[test]
fn attempts_multiply_through_several_levels() {
    assert_eq!(
        messages(
            "try 2 times; try 3 times; try; try $n times; a; end; b; catch; failure; end; end; end"
        ),
        ["attempts multiply: up to 2 × 3 = 6", "attempts multiply: up to 2 × 3 × $n",]
    );
    assert_eq!(
        messages("try 2 times; try for 1 s or 3 times; a; end; end"),
        ["attempts multiply: up to 2 × 3 = 6"]
    );
    assert_eq!(
        messages("try 9999999999 times; try 9999999999 times; a; end; end"),
        ["attempts multiply: up to 9999999999 × 9999999999"]
    );
}

#[test]
fn attempts_that_do_not_multiply() {
    assert_quiet(&[
        // Time is what counts.
        "try for 1 hour; try for 5 minutes; a; end; end",
        "try for 1 hour; forany x in a b; try for 5 minutes or 3 times; b; end; end; end",
        // Once is not many.
        "try 5 times; try for 5 minutes or 1 time; a; end; end",
        "try; try 5 times; a; end; b; catch; failure; end",
        // The failure stays inside.
        "try 5 times; try 3 times; a; catch; b; end; c; end",
        "try 5 times; try 3 times; a; catch; giveup; end; c; end",
        // Not inside.
        "try 5 times; a; catch; try 3 times; b; end; end",
        "try 5 times; a; end; try 3 times; b; end",
        "try 5 times; f; end; function f; try 3 times; b; end; end",
    ]);
}

#[test]
fn a_limit_is_missing() {
    assert_snapshot!(look("try every 30 seconds\n  a\nend"), @"
warning: without a limit this `try` makes one attempt: `every` means nothing
 --> t:1:1
  |
1 | try every 30 seconds
  | ^^^^^^^^^^^^^^^^^^^^
  = hint: say how often or for how long, like `try for 1 hour`
");
    assert_snapshot!(look("try 5 times\n  try\n    a\n  end\nend"), @"
warning: without a limit this `try` makes one attempt, which changes nothing
 --> t:2:3
  |
1 | try 5 times
  | ----------- this one does all the trying
2 |   try
  |   ^^^
  = hint: say how often or for how long, like `try 3 times`
");
    assert_eq!(messages("try backoff full; a; end; try while true; a; end").len(), 2);
    assert_quiet(&[
        "try; a; end",
        "try each 1 minute; a; end",
        "try 5 times; try; a; catch; b; end; end",
        "try 5 times; try; a; end -> log; end",
        "try 5 times; try each 1 minute; a; end; end",
        // One that gives up does so for the inner one alone.
        "try 5 times; try; if $x .eq. y; giveup; end; end; end",
    ]);
}

#[test]
fn a_limit_is_longer_than_the_one_around_it() {
    assert_snapshot!(look("try for 5 minutes\n  try for 1 hour or 9 times\n    a\n  end\nend"), @"
warning: this limit is longer than one around it
 --> t:2:11
  |
1 | try for 5 minutes
  |         --------- but this one ends after 5 min
2 |   try for 1 hour or 9 times
  |           ^^^^^^ up to 1 h
  = hint: the shorter one ends both
");
    assert_snapshot!(look("try 5 times each 1m\n  try for 90 s\n    a\n  catch\n    failure\n  end\nend"), @"
warning: attempts multiply, without bound
 --> t:2:3
  |
1 | try 5 times each 1m
  | ------------------- … in each of up to 5 attempts
2 |   try for 90 s
  |   ^^^^^^^^^^^^ as many attempts as fit into 90 s …
  = hint: let one of them do the trying, or give both a limit on time

warning: this limit is longer than one around it
 --> t:2:11
  |
1 | try 5 times each 1m
  |                  -- but each attempt of this one ends after 1 min
2 |   try for 90 s
  |           ^^^^ up to 90 s
  = hint: the shorter one ends both
");
    assert_snapshot!(look("try for 5 minutes each 1 hour\n  a\nend"), @"
warning: this limit is longer than one around it
 --> t:1:24
  |
1 | try for 5 minutes each 1 hour
  |                        ^^^^^^ up to 1 h
  |         --------- but the whole `try` ends after 5 min
  = hint: the shorter one ends both
");
    assert_quiet(&[
        "try for 1 hour; try for 1 hour; a; end; end",
        "try for $x minutes; try for 2 hours; a; end; end",
        // A `catch` has the time of the `try` around it.
        "try for 5 minutes; a; catch; try for 1 hour; b; end; end",
        "try for 5 minutes; f; end; function f; try for 1 hour; a; end; end",
    ]);
}

#[test]
fn the_first_delay_does_not_fit() {
    assert_snapshot!(look("try for 500 ms\n  a\nend"), @"
warning: no delay fits into this limit: a second attempt comes at a random moment, or never
 --> t:1:9
  |
1 | try for 500 ms
  |         ^^^^^^ 500 ms and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 1 s or longer, `backoff full from 50 ms` has shorter ones
");
    assert_snapshot!(look("try for 10 seconds every 1 minute\n  a\nend"), @"
warning: no delay fits into this limit: there is never a second attempt
 --> t:1:9
  |
1 | try for 10 seconds every 1 minute
  |         ^^^^^^^^^^ 10 s and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 1 min or longer
");
    assert_snapshot!(look("try for 10 s backoff proportional from 30 s jitter 20%\n  a\nend"), @"
warning: no delay fits into this limit: a second attempt comes at a random moment, or never
 --> t:1:9
  |
1 | try for 10 s backoff proportional from 30 s jitter 20%
  |         ^^^^ 10 s and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 24 s or longer, `backoff full from 1 s` has shorter ones
");
    assert_quiet(&[
        "try for 500 ms or 1 time; a; end",
        "try for 500 ms backoff full; a; end",
        "try for 500 ms backoff fixed from 100 ms; a; end",
        "try for 500 ms backoff fixed from $x; a; end",
        "try for 2 seconds; a; end",
        "try for $x ms; a; end",
    ]);
    assert_eq!(look_with("try for 500 ms; a; end", "exponential from 100 ms"), "");
}

#[test]
fn failures_are_swallowed() {
    assert_snapshot!(look("try 5 times\n  a\ncatch\n  echo \"$error\"\nend"), @r#"
warning: this `catch` lets every failure be forgotten
 --> t:3:1
  |
3 | catch
  | ^^^^^
  = hint: pass it on with `failure`, or say in a comment inside the `catch` why it doesn't matter
"#);
    for catch in [
        "",
        "success",
        "x=1",
        "rm -f x; echo $error | logger -t job",
        "if .exists. x; rm x; end",
        "tell",
    ] {
        let text =
            format!("try; a; catch; {catch}; end; function tell; echo sorry; tell; end; tell");
        assert_eq!(messages(&text).len(), 1, "{text}");
    }
    assert_quiet(&[
        "try; a; catch # nobody minds\n end",
        "try; a; catch\n # nobody minds\n echo $error; end",
        "try; a; catch; echo $error # nobody minds\n end",
        "try; a; catch; if $x .eq. y; failure; end; end",
        "try; a; catch; exit 0; end",
        "try; a; catch; giveup; end",
        "function f; try; a; catch; return; end; end; f",
        "try; a; catch; die; end; function die; echo $error; exit 3; end",
        // Another way to do it.
        "try; a; catch; b; end",
        // What failed is counted, noted or told apart later.
        "n=0; try; a; catch; n=$n .add. 1; end; test $n -lt 3",
        "ok=true; try; a; catch; ok=false; end; if $ok; b; end",
        "try; a; catch; echo $error ->> why; end; cat -< why",
        "try; a; catch; $b; end",
    ]);
}

#[test]
fn commands_are_never_reached() {
    assert_snapshot!(look("try\n  giveup no use\n  # why?\n  echo a\n  echo b\nend"), @"
warning: this is never reached
 --> t:4:3
  |
2 |   giveup no use
  |   ------------- nothing comes after this
 ...
4 |   echo a
  |   ^^^^^^
");
    for leaving in ["exit 1", "failure x", "return", "exec a", "if $x; exit; else; failure; end"] {
        assert_eq!(messages(&format!("{leaving}; a")), ["this is never reached"], "{leaving}");
    }
    assert_quiet(&[
        "exit\n# the end",
        "f; exit; function f; a; end",
        "if $x; exit; end; a",
        "if $x; exit; else if $y; failure; end; a",
        "try; failure; end; a",
        "forany x in a b; failure; end; a",
        "exit | cat; a",
        "$exit 1; a",
        "function failure; a; end; failure; a",
    ]);
}

#[test]
fn functions_are_never_called() {
    assert_snapshot!(look("function f\n  g\nend\nfunction g\n  f\nend\necho f"), @"
warning: the function `f` is never called
 --> t:1:10
  |
1 | function f
  |          ^
  = hint: call it, or take it out

warning: the function `g` is never called
 --> t:4:10
  |
4 | function g
  |          ^
  = hint: call it, or take it out
");
    assert_quiet(&[
        "function f; g; end; function g; a; end; f",
        "function f; return 1; end; x=2 .add. (f(1) .mul. 3)",
        "function f; return 5; end; try f() times backoff full by f(); a; end",
        "function f; a; end; if .succeeds. (f 1 | b); c; end",
        "function f; a; end; forall x in f() 2 at most f(); b; end",
        "function f; a; end; b | f",
        "function f; a; end; A=1 \"f\" > x",
        // Who knows what is called?
        "function f; a; end; $x",
        "function f; a; end; \"$@\" b",
        "function f; a; end; source b",
        // Made for others.
        "# library\nfunction f; a; end",
    ]);
    assert_eq!(messages("function f; a; end; ./$x; $dir/b").len(), 1);
}

#[test]
fn deep_and_wide_scripts_are_looked_at() {
    let deep = format!("{}a\n{}", "try 2 times\n".repeat(900), "end\n".repeat(900));
    assert_eq!(messages(&deep).len(), 899);
    let function = |n| format!("function f{n}\n{}end\n", format!("f{}\n", n + 1).repeat(100));
    let mut functions: String = (0..100).map(function).collect();
    functions += "function f100\necho\nend\nf0\ntry\na\ncatch\nf0\nend";
    assert_eq!(messages(&functions).len(), 1);
}

#[test]
fn constants_that_leave_nothing_to_do() {
    assert_snapshot!(look("for n in 3 .to. 1\n  echo $n\nend"), @"
warning: this range is empty: it counts up, and 3 is above 1
 --> t:1:10
  |
1 | for n in 3 .to. 1
  |          ^^^^^^^^
  = hint: `3 .to. 1 .step. -1` counts down
");
    assert_eq!(messages("x=f(1 .to. (5) .step. -2)\nfunction f; return 1; end").len(), 1);
    assert_snapshot!(look("try 3 times every 0 seconds; a; end"), @"
warning: `every` with no time at all is no `every`
 --> t:1:19
  |
1 | try 3 times every 0 seconds; a; end
  |                   ^
  = hint: the usual delays come between the attempts; for none, `backoff none`
");
    assert_quiet(&[
        "for n in 1 .to. 3; a; end",
        "for n in 3 .to. 1 .step. -1; a; end",
        "for n in 3 .to. 3 .step. -1; a; end",
        "for n in $n .to. 1; a; end",
        "try 3 times every 1 second; a; end",
    ]);
}

#[test]
fn what_a_branch_assigns_is_lost() {
    assert_snapshot!(look("n=0\nforall x in a b keep going\n  try 2 times\n    n=$n .add. 1\n    n=$n .add. 2\n  end\nend\necho $n"), @"
warning: what this branch assigns to `n` is lost when it ends
 --> t:4:5
  |
2 | forall x in a b keep going
  | -------------------------- each branch of this has a copy of the variables
 ...
4 |     n=$n .add. 1
  |     ^^^^^^^^^^^^
  = hint: have the branch print it, or write it to a file of its own
");
    assert_quiet(&[
        "forall x in a b; n=$x; echo $n; end; n=1; echo $n",
        "n=0; for x in a b; n=$x; end; echo $n",
        "x=0; forall y in a; for x in b; echo $x; end; end; echo $x",
        "function f; n=1; echo $n; end; forall x in a; f; m=2; echo $m; end",
    ]);
}

#[test]
fn calls_of_no_function() {
    assert_snapshot!(look("x=lenght(abc)\necho $x"), @"
warning: there is no function `lenght`
 --> t:1:3
  |
1 | x=lenght(abc)
  |   ^^^^^^
  = hint: did you mean `length`?
");
    assert_eq!(messages("x=g(1)\nfunction f; return 1; end\nf").len(), 1);
    assert_quiet(&[
        "x=length(abc)",
        "source lib; x=lenght(abc)",
        "x=f(1)\nfunction f; return 1; end",
        "for l in lines($x); a; end",
    ]);
}

#[test]
fn sums_that_are_text() {
    assert_snapshot!(look("n=n+1\nn=$n*2\nif n .lt. 5; a; end"), @"
warning: `n+1` is text, and nothing is calculated
 --> t:1:3
  |
1 | n=n+1
  |   ^^^
  = hint: write `n=$n .add. 1`

warning: `$n*2` is text, and nothing is calculated
 --> t:2:3
  |
2 | n=$n*2
  |   ^^^^
  = hint: write `n=$n .mul. 2`

warning: `n` is no number
 --> t:3:4
  |
3 | if n .lt. 5; a; end
  |    ^
  = hint: the variable is `$n`
");
    assert_eq!(messages("n=$n-$step; n=1.5 .add. x; m=\"a\" .mul. 2").len(), 3);
    assert_quiet(&[
        "n=$n .add. 1",
        "name=$name-old; dir=$dir/$x-1; f=$name-1; path=$path/a; c=c++",
        "if $a .eq. b; a; end; x=\" 5 \" .add. 1e3",
    ]);
}

#[test]
fn braces_that_are_text() {
    assert_snapshot!(look("cp f{,.bak}\nx=web{1..3}\nif .succeeds. (rm {a,b}); a; end"), @"
warning: braces make no list: this is text
 --> t:1:4
  |
1 | cp f{,.bak}
  |    ^^^^^^^^
  = hint: write all the words

warning: braces make no list: this is text
 --> t:2:3
  |
2 | x=web{1..3}
  |   ^^^^^^^^^
  = hint: a loop counts: `for n in 1 .to. 3`

warning: braces make no list: this is text
 --> t:3:19
  |
3 | if .succeeds. (rm {a,b}); a; end
  |                   ^^^^^
  = hint: write all the words
");
    assert_quiet(&[
        "find . -exec rm {} +",
        "curl http://a/{b,c}; a 'x{1,2}'; git show HEAD@{1}; date +%{a,b}",
        "x=\"{1..3}\"",
    ]);
}

#[test]
fn programs_that_are_not_there() {
    assert_snapshot!(look("try for 1 day\n  wgte -q x\n  nothing | sort\nend"), @"
warning: there is no program `wgte` along `PATH`
 --> t:2:3
  |
1 | try for 1 day
  | ------------- this would look for it again and again
2 |   wgte -q x
  |   ^^^^
  = hint: did you mean `wget`?

warning: there is no program `nothing` along `PATH`
 --> t:3:3
  |
1 | try for 1 day
  | ------------- this would look for it again and again
 ...
3 |   nothing | sort
  |   ^^^^^^^
  = hint: if it may come while the script runs, nothing is wrong
");
    for text in [
        "try 3 times; f; end; function f; if .succeeds. (nope x); a; end; end",
        "try $n times; exec nope; end",
        "try for 1 hour; forany x in a b; nope; nope; end; catch; nope; end",
    ] {
        assert_eq!(messages(text), ["there is no program `nope` along `PATH`"], "{text}");
    }
    assert_quiet(&[
        "nope",
        "try; nope; catch; a; end",
        "try for 1 hour or 1 time; nope; end",
        "try for 1 hour while $error_kind .ne. notfound; nope; end",
        "try 2 times; ./nope; /nope; $nope; cd nope; wget; end",
        "try 2 times; nope; end; function nope; a; end",
        "PATH=/opt:$PATH; try 2 times; nope; end",
        "try 2 times; PATH=/opt nope; end",
        "export PATH=/opt; try 2 times; nope; end",
        "a -> PATH; try 2 times; nope; end",
        "source lib; try 2 times; nope; end",
    ]);
}

#[test]
fn the_input_of_a_loop_is_swallowed() {
    assert_snapshot!(look("while .succeeds. (read host)\n  try 3 times\n    ssh $host uptime\n  end\nend < hosts"), @"
warning: `ssh` reads what is left of this loop's input
 --> t:3:5
  |
1 | while .succeeds. (read host)
  | ---------------------------- which then ends after one turn
 ...
3 |     ssh $host uptime
  |     ^^^
  = hint: take the lines apart first, `for line in lines($text)`; or `ssh … < /dev/null`
");
    assert_eq!(
        messages("while .not. .not. .succeeds. (read f); timeout 5 ffmpeg -i $f | cat; end").len(),
        1
    );
    assert_quiet(&[
        "while .succeeds. (read h); ssh -n $h a; ssh $h a < /dev/null; echo a | ssh $h; end < hosts",
        "while .succeeds. (read h); try 2 times; ssh $h a; end < other; end < hosts",
        "while .succeeds. (read h); forall x in a b; ssh $h $x; end; echo ssh; end < hosts",
        "while $n .lt. 5; ssh a; n=$n .add. 1; end",
        "for h in lines($hosts); ssh $h a; end",
    ]);
}
