//! Clauses of loops.

use super::{assert_quiet, messages};

#[test]
fn more_successes_than_words() {
    for (script, message) in [
        ("forall x in a b at least 3; a; end", "3 of 2 words can't succeed: this always fails"),
        ("forall x in 'a b' at least 2; a; end", "2 of 1 word can't succeed: this always fails"),
        (
            "forall x in 1 .to. 5 c at least 7; a; end",
            "7 of 6 words can't succeed: this always fails",
        ),
        (
            "forall x in 5 .to. 1 .step. -2 at least 4; a; end",
            "4 of 3 words can't succeed: this always fails",
        ),
    ] {
        assert_eq!(messages(script), [message], "{script}");
    }
    assert_quiet(&[
        "forall x in a b at least 2; a; end",
        "forall x in a $b at least 3; a; end",
        "forall x in a *.c at least 3; a; end",
        "forall x in a \"$b\" at least $n; a; end",
        "forall x in lines($a) at least 3; a; end",
    ]);
}

#[test]
fn hedges_after_the_limit() {
    let late = "the hedge never begins: the time limit passes first";
    for script in [
        "try for 10 seconds; forany x in a b hedge after 10 s; a; end; end",
        "try for 1 hour each 1 minute; forany x in a b hedge after 2 minutes; a; end; end",
        "try for 1 minute; if a .eq. b; try for 1 hour; forany x in a b hedge after 2m; a; end; end; end; end",
    ] {
        assert!(messages(script).contains(&late.to_owned()), "{script}: {:?}", messages(script));
    }
    assert_quiet(&[
        "try for 10 seconds; forany x in a b hedge after 5 s; a; end; end",
        "try for 10 seconds; forany x in a b hedge after $n s; a; end; end",
        "try for $t seconds; forany x in a b hedge after 50 s; a; end; end",
        "forany x in a b hedge after 50 s; a; end",
        "try for 10 seconds; f; end\nfunction f; forany x in a b hedge after 50 s; a; end; end",
    ]);
}
