//! Messages for wrong heads of a `try`.

use insta::assert_snapshot;

use super::rendered_errors;
use crate::{parse, print};

#[test]
fn durations() {
    assert_snapshot!(rendered_errors("try cp a b\nend\ntry 5 times cp a\nend\ntry 1h minutes\nend"), @"
error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:1:5
  |
1 | try cp a b
  |     ^^
  = hint: put the command on the next line, or after a `;`

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:3:13
  |
3 | try 5 times cp a
  |             ^^
  = hint: put the command on the next line, or after a `;`
");
    assert_snapshot!(rendered_errors("try for 1h30m cp a\nend\nlimit 1s cp -- a"), @"
error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:1:15
  |
1 | try for 1h30m cp a
  |               ^^
  = hint: put the command on the next line, or after a `;`

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:3:10
  |
3 | limit 1s cp -- a
  |          ^^
  = hint: put the command on the next line, or after a `;`
");
    assert_snapshot!(rendered_errors("try for 5 minutse\nend"), @"
error[unknown-unit]: unknown unit `minutse`
 --> t:1:11
  |
1 | try for 5 minutse
  |           ^^^^^^^ expected `times`, `seconds`, `minutes`, `hours` or `days`
  = hint: did you mean `minutes`?
");
    assert_snapshot!(rendered_errors("try for 5\nend\ntry 5\nend\ntry $n $m\nend"), @"
error[missing-unit]: `5` needs a unit
 --> t:1:9
  |
1 | try for 5
  |         ^ expected `times`, `seconds`, `minutes`, `hours` or `days` after the number

error[missing-unit]: `5` needs a unit
 --> t:3:5
  |
3 | try 5
  |     ^ expected `times`, `seconds`, `minutes`, `hours` or `days` after the number

error[duplicate-clause]: the time limit is given twice
 --> t:5:8
  |
5 | try $n $m
  |        ^^
  |     -- first given here
");
    assert_snapshot!(rendered_errors("try 5times\nend\ntry for 1h30\nend\ntry for soon\nend"), @r"
error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:1:5
  |
1 | try 5times
  |     ^^^^^^
  = hint: a number of attempts is `5 times`

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:3:9
  |
3 | try for 1h30
  |         ^^^^

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:5:9
  |
5 | try for soon
  |         ^^^^
  = hint: put the command on the next line, or after a `;`
");
    assert_snapshot!(rendered_errors("try 0 times\nend\ntry -1 seconds\nend\ntry 1.5 times\nend\ntry x times\nend"), @"
error[out-of-range]: `0` is too small: the minimum is 1
 --> t:1:5
  |
1 | try 0 times
  |     ^

error[zero-duration]: a duration must be longer than zero
 --> t:3:5
  |
3 | try -1 seconds
  |     ^^^^^^^^^^

error[not-a-number]: expected a whole number, not `1.5`
 --> t:5:5
  |
5 | try 1.5 times
  |     ^^^

error[not-a-number]: expected a whole number, not `x`
 --> t:7:5
  |
7 | try x times
  |     ^
  = hint: write the number in digits, or `$x` for a variable
");
    assert_snapshot!(rendered_errors("try for five minutes\nend\ntry each 0 s\nend\ntry each 5 times\nend"), @"
error[not-a-number]: `five` is not a number
 --> t:1:9
  |
1 | try for five minutes
  |         ^^^^ expected a duration, like `5 minutes`

error[zero-duration]: a duration must be longer than zero
 --> t:3:10
  |
3 | try each 0 s
  |          ^^^

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:5:10
  |
5 | try each 5 times
  |          ^^^^^^^
");
    assert_snapshot!(rendered_errors("try every\nend\ntry for\nend\ntry 5 minutes or\nend\ntry (5)\nend"), @"
error[missing-value]: expected a duration, like `5 minutes`
 --> t:1:10
  |
1 | try every
  |          ^ the command ends here

error[missing-value]: expected a limit, like `5 times` or `10 minutes`
 --> t:3:8
  |
3 | try for
  |        ^ the command ends here

error[missing-value]: expected a limit, like `5 times` or `10 minutes`
 --> t:5:17
  |
5 | try 5 minutes or
  |                 ^ the command ends here

error[missing-unit]: a unit is missing
 --> t:7:8
  |
7 | try (5)
  |        ^ expected `times`, `seconds`, `minutes`, `hours` or `days`
");
}

#[test]
fn clauses() {
    assert_snapshot!(rendered_errors("try 5 times for 3 times\nend\ntry each 5 s each 6 s\nend"), @"
error[duplicate-clause]: the number of times is given twice
 --> t:1:13
  |
1 | try 5 times for 3 times
  |             ^^^^^^^^^^^
  |     ------- first given here

error[duplicate-clause]: `each` is given twice
 --> t:3:14
  |
3 | try each 5 s each 6 s
  |              ^^^^^^^^
  |     -------- first given here
");
    assert_snapshot!(rendered_errors("try every 5 s backoff full\nend"), @"
error[conflicting-clauses]: `every` and `backoff` can't be combined
 --> t:1:15
  |
1 | try every 5 s backoff full
  |               ^^^^^^^^^^^^
  |     --------- the other one is here
  = hint: `every` sets the time between the starts of attempts, `backoff` the delay between attempts
");
    assert_snapshot!(rendered_errors("try 5 minutes and 3 times\nend"), @"
error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:1:15
  |
1 | try 5 minutes and 3 times
  |               ^^^
  = hint: limits are joined by `or`: the first limit reached ends the `try`
");
    assert_snapshot!(rendered_errors("try 5 minutes from 3 s\nend"), @"
error[misplaced-clause]: unexpected `3`
 --> t:1:20
  |
1 | try 5 minutes from 3 s
  |                    ^ expected a duration, like `5 minutes`
  = hint: `from`, `to`, `by` and `jitter` belong to a policy: `backoff full from 1 second`
");
}

#[test]
fn backoffs() {
    assert_snapshot!(rendered_errors("try backoff ful\nend\ntry backoff random\nend\ntry backoff\nend"), @"
error[unknown-policy]: unknown backoff policy `ful`
 --> t:1:13
  |
1 | try backoff ful
  |             ^^^
  = hint: did you mean `full`?

error[unknown-policy]: unknown backoff policy `random`
 --> t:3:13
  |
3 | try backoff random
  |             ^^^^^^
  = hint: the policies are ethernet, exponential, full, equal, decorrelated, normal, proportional, slotted, windowed, fixed, none

error[missing-value]: expected the name of a policy, like `full`
 --> t:5:12
  |
5 | try backoff
  |            ^ the command ends here
");
    assert_snapshot!(rendered_errors("try backoff fixed to 5 s\nend\ntry backoff none from 1 s\nend"), @"
error[misplaced-clause]: the policy `fixed` takes no `to`
 --> t:1:19
  |
1 | try backoff fixed to 5 s
  |                   ^^^^^^
  = hint: `fixed` takes `from`

error[misplaced-clause]: the policy `none` takes no `from`
 --> t:3:18
  |
3 | try backoff none from 1 s
  |                  ^^^^^^^^
  = hint: `none` takes no clauses
");
    assert_snapshot!(rendered_errors("try backoff full from 5 s to 1 s\nend\ntry backoff full from 1 s from 2 s\nend"), @"
error[conflicting-clauses]: `from` is longer than `to`
 --> t:1:23
  |
1 | try backoff full from 5 s to 1 s
  |                       ^
  |                              - `to` is here

error[duplicate-clause]: `from` is given twice
 --> t:3:27
  |
3 | try backoff full from 1 s from 2 s
  |                           ^^^^^^^^
");
    assert_snapshot!(rendered_errors("try backoff full by 0.5\nend\ntry backoff normal jitter 150%\nend\ntry backoff normal jitter 10\nend"), @"
error[out-of-range]: `by` must be a number from 1, not 0.5
 --> t:1:21
  |
1 | try backoff full by 0.5
  |                     ^^^ expected a factor, like `2`

error[out-of-range]: `jitter` must be from 0% to 100%, not 150%
 --> t:3:27
  |
3 | try backoff normal jitter 150%
  |                           ^^^^ expected a percentage, like `10%`

error[missing-percent]: a `%` is missing after `jitter`
 --> t:5:20
  |
5 | try backoff normal jitter 10
  |                    ^^^^^^^^^ expected a percentage, like `10%`
");
}

#[test]
fn atomic() {
    assert_snapshot!(rendered_errors("try atomic 5 times atomic\nend\ntry 3 times atomc\nend\ntry 2 times transactional\nend"), @"
error[duplicate-clause]: `atomic` is given twice
 --> t:1:20
  |
1 | try atomic 5 times atomic
  |                    ^^^^^^
  |     ------ first given here

error[unknown-clause]: unknown clause `atomc`
 --> t:3:13
  |
3 | try 3 times atomc
  |             ^^^^^
  = hint: did you mean `atomic`?

error[not-a-duration]: expected a duration, like `5 minutes`
 --> t:5:13
  |
5 | try 2 times transactional
  |             ^^^^^^^^^^^^^
  = hint: `atomic` makes each attempt all or nothing: `try 3 times atomic`
");
    assert_snapshot!(rendered_errors("try atomic; forall x in a; exec ls; end; end"), @"
error[exec-in-atomic]: `exec` is not possible in an atomic `try`
 --> t:1:28
  |
1 | try atomic; forall x in a; exec ls; end; end
  |                            ^^^^^^^
  = hint: the shell must commit the attempt after its success; run the command without `exec`
");
}

#[test]
fn a_delay_without_from_is_no_second_limit() {
    let errors = rendered_errors("try for 5 seconds backoff fixed 100 ms\na\nend");
    assert!(errors.contains("`backoff fixed from 100 ms`"), "{errors}");
    let errors = rendered_errors("try for 5 seconds 100 ms backoff fixed\na\nend");
    assert!(!errors.contains("from"), "{errors}");
}

#[test]
fn usual_needs_a_bound() {
    assert_snapshot!(rendered_errors("try 5 times each usual\nend\ntry each usual or 5 times\nend\nforany x in a hedge after usual\nend"), @"
error[missing-value]: `each usual` needs `or` and a length of time
 --> t:1:18
  |
1 | try 5 times each usual
  |                  ^^^^^
  = hint: `each usual or 20 minutes` is 20 minutes until 10 durations are known, and never more; another `or` gives a second limit of the `try`

error[missing-value]: `each usual` needs `or` and a length of time
 --> t:3:19
  |
3 | try each usual or 5 times
  |                   ^^^^^^^
  = hint: `each usual or 20 minutes` is 20 minutes until 10 durations are known, and never more; another `or` gives a second limit of the `try`

error[missing-value]: `hedge after usual` needs `or` and a length of time
 --> t:5:27
  |
5 | forany x in a hedge after usual
  |                           ^^^^^
  = hint: `hedge after usual or 5 seconds` waits for 5 seconds until 10 durations are known, and never longer
");
}

#[test]
fn usual_is_printed_with_its_bound() {
    let text = "try for 6 hours or 5 times each usual or 20 minutes\n    a\nend\n\
                forany x in a b hedge after usual or 5 seconds at most 2\n    a\nend\n";
    let script = parse("t", text).expect("a script");
    assert_eq!(print(&script), text);
}
