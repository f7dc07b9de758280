//! Numbers that are text.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn sums_that_are_text() {
    assert_snapshot!(warnings("n=n+1\nn=$n*2\nif n .lt. 5; a; end"), @"
warning[text-arithmetic]: `n+1` is text: nothing is calculated
 --> t:1:3
  |
1 | n=n+1
  |   ^^^
  = hint: write `n=$n + 1`

warning[text-arithmetic]: `$n*2` is text: nothing is calculated
 --> t:2:3
  |
2 | n=$n*2
  |   ^^^^
  = hint: write `n=$n * 2`

warning[text-operand]: `n` is not a number
 --> t:3:4
  |
3 | if n .lt. 5; a; end
  |    ^
  = hint: the variable is `$n`
");
    assert_eq!(messages("n=$n-$step; n=1.5 .add. x; m=\"a\" .mul. 2").len(), 3);
    assert_snapshot!(warnings("if $py_version >= 3.10; a; end\nif $v < 1.2.3; a; end"), @"
warning[version-as-number]: versions are compared as numbers here, where `3.10` is `3.1`
 --> t:1:4
  |
1 | if $py_version >= 3.10; a; end
  |    ^^^^^^^^^^^^^^^^^^^
  = hint: write `! newer(3.10, $py_version)`

warning[version-as-number]: versions are compared as numbers here, where `3.10` is `3.1`
 --> t:2:4
  |
2 | if $v < 1.2.3; a; end
  |    ^^^^^^^^^^
  = hint: write `newer(1.2.3, $v)`
");
    assert_quiet(&[
        "if $version < 3 && $n > 1.5; a; end",
        "n=$n .add. 1",
        "name=$name-old; dir=$dir/$x-1; f=$name-1; path=$path/a; c=c++",
        "if $a .eq. b; a; end; x=\" 5 \" .add. 1e3",
    ]);
}
