//! Functions without calls.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn unused_functions() {
    assert_snapshot!(warnings("function f\n  g\nend\nfunction g\n  f\nend\necho f"), @"
warning[unused-function]: the function `f` is never called
 --> t:1:10
  |
1 | function f
  |          ^
  = hint: call the function, or remove it

warning[unused-function]: the function `g` is never called
 --> t:4:10
  |
4 | function g
  |          ^
  = hint: call the function, or remove it
");
    assert_quiet(&[
        "function f; g; end; function g; a; end; f",
        "function f; return 1; end; x=2 .add. (f(1) .mul. 3)",
        "function f; return 5; end; try f() times backoff full by f(); a; end",
        "function f; a; end; if .succeeds. (f 1 | b); c; end",
        "function f; a; end; forall x in f() 2 at most f(); b; end",
        "function f; a; end; b | f",
        "function f; a; end; A=1 \"f\" > x",
        // Who knows what is called?
        "function f; a; end; $x",
        "function f; a; end; \"$@\" b",
        "function f; a; end; source b",
        // Made for others.
        "# library\nfunction f; a; end",
    ]);
    assert_eq!(messages("function f; a; end; ./$x; $dir/b").len(), 1);
}
