//! Limits that are missing, too long or too short, and attempts that multiply.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings, warnings_with};

#[test]
fn attempts_multiply() {
    assert_snapshot!(warnings("try 5 times\n  a\n  try 100 times\n    b\n  end\nend"), @"
warning[multiplied-attempts]: attempts multiply: up to 5 × 100 = 500
 --> t:3:3
  |
1 | try 5 times
  | ----------- … in each of up to 5 attempts
 ...
3 |   try 100 times
  |   ^^^^^^^^^^^^^ up to 100 attempts …
  = hint: repeat in one of the two only, or add a time limit to both
");
    assert_snapshot!(warnings("try for 1 hour\n  forany x in a b\n    try 3 times\n      $x\n    end\n  end\nend"), @"
warning[multiplied-attempts]: attempts multiply without bound
 --> t:3:5
  |
1 | try for 1 hour
  | -------------- … in each of as many attempts as fit into 1 h
 ...
3 |     try 3 times
  |     ^^^^^^^^^^^ up to 3 attempts …
  = hint: repeat in one of the two only, or add a time limit to both
");
    assert_snapshot!(warnings("try 5 times; try for 10 minutes; b; end; end"), @"
warning[multiplied-attempts]: attempts multiply without bound
 --> t:1:14
  |
1 | try 5 times; try for 10 minutes; b; end; end
  |              ^^^^^^^^^^^^^^^^^^ as many attempts as fit into 10 min …
  | ----------- … in each of up to 5 attempts
  = hint: repeat in one of the two only, or add a time limit to both
");
}

#[test]
fn a_limit_is_no_retry() {
    assert_quiet(&[
        "limit 5 minutes\n  a\nend",
        "try 5 times\n  limit 1 minute\n    a\n  end\nend",
        "limit 1 hour\n  try 3 times\n    a\n  end\nend",
        "try for 1 hour\n  limit 1 minute\n    defer 5\n  end\nend",
        "try for 1 hour\n  limit 1 minute\n    giveup\n  end\nend",
        "try signal INT\n  a\nend",
        "try 2 times\n  try signal INT\n    a\n  end\nend",
    ]);
    let longer = messages("limit 1 minute\n  try for 1 hour\n    a\n  end\nend");
    assert_eq!(longer, ["this limit is longer than an outer limit"]);
    let longer = messages("limit 1 minute\n  limit 2 minutes\n    a\n  end\nend");
    assert_eq!(longer, ["this limit is longer than an outer limit"]);
    // Deferred attempts are those of the `try`, which has no limit of time.
    let deferred = messages("try 2 times\n  limit 1 minute\n    defer 5\n  end\nend");
    assert_eq!(deferred, ["a `try` without a time limit may be deferred forever"]);
    let unused = messages("limit 1 minute signal $sig\n  a\nend");
    assert_eq!(unused, [""; 0]);
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
fn missing_limits() {
    assert_snapshot!(warnings("try every 30 seconds\n  a\nend"), @"
warning[single-attempt]: without a limit this `try` makes one attempt: `every` has no effect
 --> t:1:1
  |
1 | try every 30 seconds
  | ^^^^^^^^^^^^^^^^^^^^
  = hint: add a limit, like `try for 1 hour`
");
    assert_snapshot!(warnings("try 5 times\n  try\n    a\n  end\nend"), @"
warning[single-attempt]: without a limit this `try` makes one attempt, which changes nothing
 --> t:2:3
  |
1 | try 5 times
  | ----------- this `try` makes all attempts
2 |   try
  |   ^^^
  = hint: add a limit, like `try 3 times`
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
fn limits_longer_than_outer_limits() {
    assert_snapshot!(warnings("try for 5 minutes\n  try for 1 hour or 9 times\n    a\n  end\nend"), @"
warning[longer-limit]: this limit is longer than an outer limit
 --> t:2:11
  |
1 | try for 5 minutes
  |         --------- but this `try` ends after 5 min
2 |   try for 1 hour or 9 times
  |           ^^^^^^ up to 1 h
  = hint: the shorter limit ends both
");
    assert_snapshot!(warnings("try 5 times each 1m\n  try for 90 s\n    a\n  catch\n    failure\n  end\nend"), @"
warning[multiplied-attempts]: attempts multiply without bound
 --> t:2:3
  |
1 | try 5 times each 1m
  | ------------------- … in each of up to 5 attempts
2 |   try for 90 s
  |   ^^^^^^^^^^^^ as many attempts as fit into 90 s …
  = hint: repeat in one of the two only, or add a time limit to both

warning[longer-limit]: this limit is longer than an outer limit
 --> t:2:11
  |
1 | try 5 times each 1m
  |                  -- but each attempt of this `try` ends after 1 min
2 |   try for 90 s
  |           ^^^^ up to 90 s
  = hint: the shorter limit ends both
");
    assert_snapshot!(warnings("try for 5 minutes each 1 hour\n  a\nend"), @"
warning[longer-limit]: this limit is longer than an outer limit
 --> t:1:24
  |
1 | try for 5 minutes each 1 hour
  |                        ^^^^^^ up to 1 h
  |         --------- but the whole `try` ends after 5 min
  = hint: the shorter limit ends both
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
    assert_snapshot!(warnings("try for 500 ms\n  a\nend"), @"
warning[short-limit]: no delay fits into this limit: a second attempt comes at a random moment, or never
 --> t:1:9
  |
1 | try for 500 ms
  |         ^^^^^^ 500 ms and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 1 s or longer, `backoff full from 50 ms` has shorter delays
");
    assert_snapshot!(warnings("try for 10 seconds every 1 minute\n  a\nend"), @"
warning[short-limit]: no delay fits into this limit: there is never a second attempt
 --> t:1:9
  |
1 | try for 10 seconds every 1 minute
  |         ^^^^^^^^^^ 10 s and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 1 min or longer
");
    assert_snapshot!(warnings("try for 10 s backoff proportional from 30 s jitter 20%\n  a\nend"), @"
warning[short-limit]: no delay fits into this limit: a second attempt comes at a random moment, or never
 --> t:1:9
  |
1 | try for 10 s backoff proportional from 30 s jitter 20%
  |         ^^^^ 10 s and no other limit
  = hint: for a single attempt add `or 1 time`; the first delay is 24 s or longer, `backoff full from 1 s` has shorter delays
");
    assert_quiet(&[
        "try for 500 ms or 1 time; a; end",
        "try for 500 ms backoff full; a; end",
        "try for 500 ms backoff fixed from 100 ms; a; end",
        "try for 500 ms backoff fixed from $x; a; end",
        "try for 2 seconds; a; end",
        "try for $x ms; a; end",
    ]);
    assert_eq!(warnings_with("try for 500 ms; a; end", "exponential from 100 ms"), "");
}

#[test]
fn deferrals_need_a_limit_on_time() {
    assert_snapshot!(warnings("try 5 times\n  a\n  defer 30 busy\nend"), @"
warning[unlimited-deferral]: a `try` without a time limit may be deferred forever
 --> t:3:3
  |
3 |   defer 30 busy
  |   ^^^^^^^^^^^^^
  = hint: add a time limit, like `try for 1 hour`
");
    assert_quiet(&[
        "try for 1 hour\n  if .exists. busy\n    defer 30\n  end\nend",
        "try for 1 hour\n  try for 1 minute\n    defer 30\n  end\nend",
        "function f\n  defer 30\nend\ntry for 1 hour\n  f\nend",
        "function f\n  try for 1 hour\n    defer 30\n  end\nend\ntry 3 times\n  f\nend",
    ]);
    let text = "function f\n  defer 30\nend\nfunction g\n  a\n  f\nend\ntry 3 times\n  g\nend";
    assert_eq!(messages(text), ["a `try` without a time limit may be deferred forever"]);
    for inner in ["for x in 1", "try", "limit 1 s"] {
        let text = format!("try 3 times\n {inner}\n  a\n finally\n  defer 1 s\n end\nend");
        assert!(warnings(&text).contains("[unlimited-deferral]"), "{inner}");
    }
}

#[test]
fn a_limit_looks_like_a_delay() {
    assert_snapshot!(warnings("try 3 times backoff exponential 1s\n  a\nend"), @"
warning[limit-after-policy]: this is a limit of the whole `try`, not a delay
 --> t:1:33
  |
1 | try 3 times backoff exponential 1s
  |                                 ^^
  = hint: delays begin with `from`, like `backoff exponential from 1s`; a limit comes before the policy
");
    assert_eq!(messages("try 3 times backoff fixed from 10 ms 5 minutes; a; end").len(), 1);
    assert_quiet(&[
        "try for 1 minute or 3 times backoff exponential from 1 s; a; end",
        "try 3 times backoff exponential from 1 s or 1 hour; a; end",
        "try for 1 hour backoff none 3 times; a; end",
    ]);
}
