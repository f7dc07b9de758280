//! Structures in pipelines are looked into as everywhere.

use super::{assert_quiet, messages};

#[test]
fn stages_are_looked_into() {
    for (text, message) in [
        ("a | for x in b; exit; c; end", "this is never reached"),
        ("try; a; catch; echo; end | b", "this `catch` lets every failure be forgotten"),
        (
            "try; a; catch; echo | if b; echo c; end; end",
            "this `catch` lets every failure be forgotten",
        ),
        ("try 2 times; a | try 3 times; b; end; end", "attempts multiply: up to 2 × 3 = 6"),
        (
            "a | try for 1 hour; try for 2 hours; b; end; end",
            "this limit is longer than one around it",
        ),
        ("for x in 3 .to. 1; a; end | b", "this range is empty: it counts up, and 3 is above 1"),
        ("if $a .lt. b; c; end | d", "`b` is no number"),
        ("for x in a; echo {1..3}; end | d", "braces make no list: this is text"),
        (
            "try 2 times; a | if b; noprogram; end; end",
            "there is no program `noprogram` along `PATH`",
        ),
        ("a | if nothing(1); b; end", "there is no function `nothing`"),
        (
            "n=0; forall x in a; if true; n=1; end | b; end; echo $n",
            "what this branch assigns to `n` is lost when it ends",
        ),
        (
            "cat f | while .succeeds. (read h); ssh $h a; end",
            "`ssh` reads what is left of this loop's input",
        ),
        (
            "while .succeeds. (read h); if true; ssh $h a; end | sort; end < f",
            "`ssh` reads what is left of this loop's input",
        ),
    ] {
        assert_eq!(messages(text), [message], "{text}");
    }
    assert_quiet(&[
        "function f; a; end; b | if true; f; end",
        "exit | a; b",
        "for x in a; exit; end | a; b",
        "while .succeeds. (read h); a | if true; ssh $h b; end; end < f",
        "try; a; catch; b | if true; failure; end; end",
        "try 2 times; try; a | if true; giveup; end; end; end",
        "a | while .succeeds. (read l); n=$l; end; echo $n",
    ]);
}
