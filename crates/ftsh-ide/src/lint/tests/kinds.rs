//! Comparisons with kinds of failure that do not exist.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn unknown_kinds_never_match() {
    assert_snapshot!(warnings("try 3 times while $error_kind == canceld\n  a\nend"), @"
warning[unknown-kind]: `canceld` is not a kind of failure
 --> t:1:34
  |
1 | try 3 times while $error_kind == canceld
  |                                  ^^^^^^^
  = hint: did you mean `canceled`?
");
    for warned in [
        "try; a; catch; if broken .ne. \"${error_kind}\"; b; end; end",
        "try; a; catch; if $b && ! $error_kind != broken; b; end; end",
        "try; a; catch; case $error_kind; when timeout broken; b; end; end",
    ] {
        let warnings = warnings(warned);
        assert!(warnings.starts_with("warning[unknown-kind]: `broken`"), "{warned}: {warnings}");
        assert!(warnings.contains("hint: the kinds are exit, signal, "), "{warnings}");
    }
    assert_quiet(&[
        "try; a; catch; if $error_kind == canceled; b; end; end",
        "try; a; catch; if $error_kind == cancelled; b; end; end",
        "try; a; finally; if $error_kind != \"\"; b; end; end",
        "try; a; catch; case $error_kind; when time*; b; else; c; end; end",
        "try; a; catch; if $error == canceld; b; end; end",
    ]);
}
