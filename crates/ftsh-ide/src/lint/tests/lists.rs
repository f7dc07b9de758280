//! Lists that are text.

use insta::assert_snapshot;

use super::{assert_quiet, warnings};

#[test]
fn braces_that_are_text() {
    assert_snapshot!(warnings("cp f{,.bak}\nx=web{1..3}\nif .succeeds. (rm {a,b}); a; end"), @"
warning[brace-word]: braces don't make a list: this is text
 --> t:1:4
  |
1 | cp f{,.bak}
  |    ^^^^^^^^
  = hint: write all the words

warning[brace-word]: braces don't make a list: this is text
 --> t:2:3
  |
2 | x=web{1..3}
  |   ^^^^^^^^^
  = hint: to count, write a loop: `for n in 1 .to. 3`

warning[brace-word]: braces don't make a list: this is text
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
