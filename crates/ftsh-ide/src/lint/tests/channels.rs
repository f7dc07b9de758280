//! Channels whose rules nothing obeys.

use insta::assert_snapshot;

use super::{assert_quiet, look, messages};

#[test]
fn a_budget_is_for_what_is_tried_again() {
    assert_snapshot!(look("channel k budget 10%\ntry through k\n  a\nend"), @"
warning[unused-budget]: nothing that goes through `k` is tried again: its budget is unused
 --> t:1:18
  |
1 | channel k budget 10%
  |                  ^^^
2 | try through k
  |             - this `try` makes one attempt
  = hint: say how often or for how long, like `try for 1 hour`
");
    assert_eq!(messages("channel k budget 10%; try 1 time through k; a; end").len(), 1);
    assert_quiet(&[
        "channel k budget 10%; try 2 times through k; a; end",
        "channel k budget 10%; try $n times through k; a; end",
        "channel k budget 10%; try for 1 hour through k; a; end",
        "channel k budget 10%; try through k; a; end; try 2 times through k; b; end",
        "channel k at most 1; try through k; a; end",
    ]);
}

#[test]
fn channels_are_for_something() {
    assert_eq!(messages("channel k at most 1\na"), ["nothing goes through `k`"]);
    assert_quiet(&["channel k at most 1\nfunction f\n a\nend", "channel k at most 1\nsource f"]);
}

#[test]
fn one_inside_of_another_means_nothing() {
    assert_eq!(
        messages("channel k at most 1\ntry 2 times through k\n b\n try through k\n  a\n end\nend"),
        ["the attempts around have gone through `k` already"]
    );
    assert_quiet(&[
        "channel k at most 1; channel l at most 1; try through k; b; try through l; a; end; end",
        "channel k at most 1; try through k; a; catch; try through k; b; end; end",
    ]);
}
