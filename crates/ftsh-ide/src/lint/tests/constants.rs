//! Ranges and lengths of time without an effect.

use insta::assert_snapshot;

use super::{assert_quiet, messages, warnings};

#[test]
fn constants_without_an_effect() {
    assert_snapshot!(warnings("for n in 3 .to. 1\n  echo $n\nend"), @"
warning[empty-range]: this range is empty: it counts up, and 3 is above 1
 --> t:1:10
  |
1 | for n in 3 .to. 1
  |          ^^^^^^^^
  = hint: `3 .to. 1 .step. -1` counts down
");
    assert_eq!(messages("x=f(1 .to. (5) .step. -2)\nfunction f; return 1; end").len(), 1);
    assert_snapshot!(warnings("try 3 times every 0 seconds; a; end"), @"
warning[zero-every]: `every` of zero has no effect
 --> t:1:19
  |
1 | try 3 times every 0 seconds; a; end
  |                   ^
  = hint: the usual delays separate the attempts; for no delays, `backoff none`
");
    assert_quiet(&[
        "for n in 1 .to. 3; a; end",
        "for n in 3 .to. 1 .step. -1; a; end",
        "for n in 3 .to. 3 .step. -1; a; end",
        "for n in $n .to. 1; a; end",
        "try 3 times every 1 second; a; end",
    ]);
}
