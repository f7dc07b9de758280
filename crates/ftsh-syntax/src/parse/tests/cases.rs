//! `case`, right and wrong.

use insta::assert_snapshot;

use super::{rendered_errors, tidied};

#[test]
fn lines_are_kept() {
    assert_snapshot!(tidied("case $a # which\n# first\nwhen *.c 'x y' [a-c]\n  b; else\n\n  c\nend > f | sort"), @"
case $a # which
    # first
when *.c 'x y' [a-c]
    b
else
    c
end > f | sort
");
    assert_snapshot!(tidied("a | case f($x, 1) .add. 2;when =x; end\nwhen b"), @"
a | case f($x, 1) .add. 2
when =x
end
when b
");
    assert_snapshot!(tidied("function case; end\ncase a\ncase a b | case c"), @"
function case
end
case a
case a b | case c
");
}

#[test]
fn mistakes_are_explained() {
    assert_snapshot!(rendered_errors("case $x\n  a) b ;;\nwhen c | d\nelse\nwhen e\nend"), @"
error[case-form]: a command comes before the first `when`
 --> t:2:3
  |
2 |   a) b ;;
  |   ^^^^
  = hint: patterns come after `when`, without a parenthesis: `when a`

error[case-form]: `when` takes patterns, not a pipeline
 --> t:3:1
  |
3 | when c | d
  | ^^^^^^^^^^
  = hint: spaces separate patterns: `when a b`

error[part-order]: nothing can follow the `else` of a `case`
 --> t:5:1
  |
5 | when e
  | ^^^^^^ this `case` already has an `else`
");
    assert_snapshot!(rendered_errors("case $x\nwhen a\n  if true\nwhen b > c\nend\ncase x\nend"), @"
error[missing-end]: this `if` has no `end`
 --> t:3:3
  |
3 |   if true
  |   ^^
4 | when b > c
  | ---------- its `end` must come before this

error[case-form]: `when` takes patterns, not a redirection
 --> t:4:8
  |
4 | when b > c
  |        ^^^
  = hint: redirect the `case` after its `end`, or a command

error[case-form]: this `case` has no `when`
 --> t:6:1
  |
6 | case x
  | ^^^^
  = hint: write `when a b` before the commands for `a` and `b`
");
    assert_snapshot!(rendered_errors("case $x in\n  a) b ;;\nesac\nend\nwhen = a"), @"
error[case-form]: `case` takes one value
 --> t:1:1
  |
1 | case $x in
  | ^^^^
  = hint: write `case $x`, a line like `when a b*` before the commands for these patterns, `else` for any other value, and `end`; a program of this name has quotes: `\"case\" x`

error[other-shell]: there is no `esac` in ftsh
 --> t:3:1
  |
3 | esac
  | ^^^^
  = hint: every structure ends with `end`

error[stray-end]: `end` without a structure to end
 --> t:4:1
  |
4 | end
  | ^^^

error[assignment-blank]: an assignment has no space before its `=`
 --> t:5:1
  |
5 | when = a
  | ^^^^
  = hint: write `when=value`
");
}
