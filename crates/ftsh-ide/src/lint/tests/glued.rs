//! Operators without a space or a value on both sides.

use super::{assert_quiet, messages};

#[test]
fn operators_that_stick_to_a_value() {
    let all = [
        ("y=5; x=$y -2", "`-2` is a command here, and `x` is set for this command only"),
        ("x=1 +", "`+` is a command here, and `x` is set for this command only"),
    ];
    for (text, message) in all {
        assert_eq!(messages(text), [message], "{text}");
    }
    assert_quiet(&[
        "y=5; x=$y - 2",
        "y=5; x=$y -v",
        "a=1; if $a == 1; b; end",
        "a=true; if $a; b; end",
        "a=true; if ! $a; b; end",
    ]);
}
