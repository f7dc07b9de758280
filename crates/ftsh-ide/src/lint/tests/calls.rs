//! Words of commands that look like calls.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn names_of_functions_before_parentheses() {
    assert_snapshot!(warnings("echo length($x) a\nx=1"), @"
");
    assert_snapshot!(warnings("echo a,f(b \"c)\") > time(x) d\nfunction f\n  return $1\nend\nx=f(1)"), @"
");
    assert_quiet(&[
        "echo \"length($x)\" 'length(x)' other(x) length ${length(abc)} x=1",
        "x=length(abc)",
        "if .succeeds. (echo ${length(abc)}); a; end",
    ]);
}
