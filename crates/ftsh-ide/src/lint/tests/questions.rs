//! Questions to commands that exit with 1 for "no".

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn errors_are_taken_for_no() {
    assert_snapshot!(warnings("if .not. .succeeds. (cat f | grep -q x)\n  a\nend"), @"
warning[ambiguous-no]: `.succeeds.` takes an error of `grep` for `false`
 --> t:1:10
  |
1 | if .not. .succeeds. (cat f | grep -q x)
  |          ^^^^^^^^^^
  = hint: did you mean `.yes.`? A status above 1 is then a failure
");
    assert_quiet(&[
        "if .yes. (grep -q x f); a; end",
        "if .succeeds. (make); a; end",
        "if .succeeds. (grep x f | sort); a; end",
    ]);
}
