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
  = hint: a call in a word is written in `${` and `}`
");
    assert_snapshot!(warnings("echo nosuch(2)"), @"
warning[call-in-word]: `nosuch(` is text in the words of a command, and no function `nosuch` exists
 --> t:1:6
  |
1 | echo nosuch(2)
  |      ^^^^^^
  = hint: quotes show that the word is text
");
    assert_quiet(&[
        "echo \"length($x)\" 'length(x)' 'other(x)' an-other(x) a/b(1) length ${length(abc)} x=1",
        "x=length(abc)",
        "if .succeeds. (echo ${length(abc)}); a; end",
    ]);
}

#[test]
fn a_call_fits_the_parameters() {
    let head = "function f host port=22\nreturn $host + $port\nend\n";
    for call in ["f", "f a b c", "if f; end", "x=f(1, 2, 3)", "echo ${f(1, 2, 3)}"] {
        let warnings = warnings(&format!("{head}{call}"));
        assert!(warnings.contains("call-arguments"), "{call}: {warnings}");
    }
    for call in ["f a", "f a 23", "f $1 $2 $3", "f \"$@\"", "f *", "x=f(1)", "y=f($x)"] {
        let warnings = warnings(&format!("{head}{call}"));
        assert!(!warnings.contains("call-arguments"), "{call}: {warnings}");
    }
    let rest = warnings("function f files...\necho $files\nend\nf a b c\nf");
    assert!(!rest.contains("call-arguments"), "{rest}");
}
