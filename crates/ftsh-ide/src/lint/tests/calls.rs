//! Words of commands that look like calls.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn names_of_functions_before_parentheses() {
    assert_snapshot!(warnings("echo length($x) a\nx=1"), @"
warning[call-in-word]: `length(` is text in the words of a command: nothing is called
 --> t:1:6
  |
1 | echo length($x) a
  |      ^^^^^^
  = hint: write `${length($x)}`
");
    assert_snapshot!(warnings("echo a,f(b \"c)\") > x\nfunction f\n  return $1\nend\nx=f(1)"), @"
warning[call-in-word]: `f(` is text in the words of a command: nothing is called
 --> t:1:8
  |
1 | echo a,f(b \"c)\") > x
  |        ^
  = hint: a call in a word stands in `${` and `}`
");
    assert_quiet(&[
        "echo \"length($x)\" 'length(x)' other(x) length ${length(abc)} x=1",
        "x=length(abc)",
        "if .succeeds. (echo ${length(abc)}); a; end",
    ]);
}
