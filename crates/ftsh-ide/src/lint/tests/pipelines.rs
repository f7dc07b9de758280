//! Structures in pipelines are checked like others.

use super::{assert_quiet, messages};

#[test]
fn structures_in_stages_are_checked() {
    for (text, message) in [
        ("a | for x in b; exit; c; end", "this is never reached"),
        ("try; a; catch; echo; end | b", "this `catch` ignores every failure"),
        ("try; a; catch; echo | if b; echo c; end; end", "this `catch` ignores every failure"),
        ("try 2 times; a | try 3 times; b; end; end", "attempts multiply: up to 2 × 3 = 6"),
        (
            "a | try for 1 hour; try for 2 hours; b; end; end",
            "this limit is longer than an outer limit",
        ),
        ("for x in 3 .to. 1; a; end | b", "this range is empty: it counts up, and 3 is above 1"),
        ("if $a .lt. b; c; end | d", "`b` is not a number"),
        ("for x in a; echo {1..3}; end | d", "braces don't make a list: this is text"),
        (
            "try 2 times; a | if b; noprogram; end; end",
            "there is no program `noprogram` along `PATH`",
        ),
        (
            "n=0; forall x in a; if true; n=1; end | b; end; echo $n",
            "the value of `n` is lost at the end of the branch",
        ),
        (
            "cat f | while .succeeds. (read h); ssh h a; end",
            "`ssh` reads the rest of this loop's input",
        ),
        (
            "while .succeeds. (read h); if true; ssh h a; end | sort; end < f",
            "`ssh` reads the rest of this loop's input",
        ),
    ] {
        assert_eq!(messages(text), [message], "{text}");
    }
    assert_quiet(&[
        "function f; a; end; b | if true; f; end",
        "exit | a; b",
        "for x in a; exit; end | a; b",
        "while .succeeds. (read h); a | if true; ssh h b; end; end < f",
        "try; a; catch; b | if true; failure; end; end",
        "try 2 times; try; a | if true; giveup; end; end; end",
        "a | while .succeeds. (read l); n=$l; end; echo $n",
    ]);
}
