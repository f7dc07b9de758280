//! Messages for `channel` and `through`.

use super::tidied as printed;
use crate::{KnownNames, parse, parse_with};

/// Returns the first lines of all errors, and the hints.
fn wrong(text: &str) -> String {
    let errors = parse("t", text).expect_err(text).errors;
    let shown = errors.iter().map(|error| match &error.hint {
        Some(hint) => format!("{} ({hint})", error.message),
        None => error.message.clone(),
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[test]
fn rules_come_in_any_order() {
    insta::assert_snapshot!(printed("channel k breaker 5 failures 30 seconds budget 20% rate 10 per second at most 4"),
        @"channel k at most 4 rate 10 per second budget 20% breaker 5 failures 30 seconds");
    insta::assert_snapshot!(printed("channel k rate $n per 2 minutes budget ($p .mul. 2) % # why"),
        @"channel k rate $n per 2 minutes budget ($p .mul. 2) % # why");
    insta::assert_snapshot!(printed("channel k rate ($n .add. 1) per 500ms at most $most breaker 1 failure $d;channel l budget $p %"), @"
    channel k at most $most rate ($n .add. 1) per 500ms breaker 1 failure $d
    channel l budget $p%
    ");
    insta::assert_snapshot!(printed("channel k breaker 1 failures $d rate 1 per $d budget 1.5%"),
        @"channel k rate 1 per $d budget 1.5% breaker 1 failure $d");
    insta::assert_snapshot!(printed("channel k at most 1;try through k for 1 hour each $d while $x; a;end"), @"
    channel k at most 1
    try for 1 hour each $d through k while $x
        a
    end
    ");
}

#[test]
fn functions_and_programs_may_be_named_channel() {
    insta::assert_snapshot!(printed("function channel; a; end\nchannel k at most 4"), @"
    function channel
        a
    end
    channel k at most 4
    ");
    insta::assert_snapshot!(printed("'channel' k at most 4\nthrough k; echo channel through"), @"
    'channel' k at most 4
    through k
    echo channel through
    ");
}

#[test]
fn missing_parts_are_reported() {
    let cases = [
        ("channel", "a channel needs a name"),
        ("channel at most 4", "a channel needs a name"),
        ("channel k", "the channel `k` has no rule"),
        ("channel $k at most 1", "`$k` can't be the name of a channel"),
        ("channel 1k at most 1", "`1k` can't be the name of a channel"),
        ("channel a-b at most 1", "`a-b` can't be the name of a channel"),
        ("channel k at most", "expected a number after `at most`"),
        ("channel k at most 0", "`0` is too small"),
        ("channel k at most 1 at most 2", "`at most` is given twice"),
        ("channel k rate", "expected a number after `rate`"),
        ("channel k rate 10", "expected `per` and a length of time after `rate`"),
        ("channel k rate 10 per", "expected `per` and a length of time after `rate`"),
        ("channel k rate 10 per secnd", "unknown unit `secnd` (did you mean `second`?)"),
        ("channel k rate 10 per 5", "`5` needs a unit"),
        ("channel k rate 10 per 0 seconds", "a duration must be longer than zero"),
        ("channel k rate 1.5 per second", "expected a whole number, not `1.5`"),
        ("channel k budget", "expected a percentage after `budget`"),
        ("channel k budget 20", "a `%` is missing after `budget`"),
        ("channel k budget 0%", "a budget is more than 0% and at most 100%, not 0%"),
        ("channel k budget 101%", "a budget is more than 0% and at most 100%, not 101%"),
        ("channel k budget x%", "`x` is not a number"),
        ("channel k breaker", "expected a number of failures after `breaker`"),
        ("channel k breaker 5", "expected `failures` and a length of time"),
        (
            "channel k breaker 5 failures",
            "expected a length of time without attempts after `failures`",
        ),
        ("channel k breaker 0 failures 1s", "`0` is too small"),
        ("channel k breaker 5 failures 0 s", "a duration must be longer than zero"),
        (
            "channel k ratte 10 per second",
            "`ratte` is not a rule of a channel (did you mean `rate`?)",
        ),
        ("channel k at moat 3", "`at` is not a rule of a channel (did you mean `at most`?)"),
        ("channel k mots 3", "`mots` is not a rule of a channel (did you mean `at most`?)"),
        ("channel atomic at most 2", "`atomic` can't be the name of a channel"),
        ("channel k at most 4 x y", "`x` is not a rule of a channel"),
        ("channel k at most 4 > f", "this is not a form of `channel`"),
        ("channel k at most 4 | cat", "this is not a form of `channel`"),
        ("ls | channel k", "this is not a form of `channel`"),
        ("channel k at most 1; try through; a; end", "expected a channel's name after `through`"),
        ("try through $k; a; end", "`$k` can't be the name of a channel"),
        ("try through \"k\"; a; end", "`\"k\"` can't be the name of a channel"),
        ("channel k at most 1; try through k through k; a; end", "`through` is given twice"),
    ];
    for (text, expected) in cases {
        let errors = wrong(text);
        assert!(errors.contains(expected), "{text}: {errors}");
    }
}

#[test]
fn channels_are_declared_somewhere() {
    let of = |text: &str| wrong(text);
    assert!(
        of("channel mirror at most 1\ntry through miror; a; end")
            .starts_with("there is no channel `miror` (did you mean `mirror`?)")
    );
    assert!(of("function f; try through k; a; end; end").starts_with("there is no channel `k`"));
    let inside = [
        "if true\nINSIDE\nend",
        "for x in a\nINSIDE\nend",
        "a | while true\nINSIDE\nend",
        "try\na\ncatch\nINSIDE\nend",
        "try\na\nfinally\nINSIDE\nend",
        "function f\nINSIDE\nend",
        "forall x in a\nINSIDE\nend",
        "while true\nINSIDE\nend",
    ];
    for place in inside {
        let used = place.replace("INSIDE", "try through k; a; end");
        assert!(parse("t", &used).is_err(), "{used}");
        let declared =
            place.replace("INSIDE", "channel k at most 1").replace("function f", "function g");
        assert!(parse("t", &format!("{used}\n{declared}")).is_ok(), "{declared}");
    }
    // Other files may declare the channel, and so may earlier lines of a prompt.
    assert!(parse("t", "source f\ntry through k; a; end").is_ok());
    let known = KnownNames { channels: &["k"], ..KnownNames::default() };
    assert!(parse_with("t", "try through k; a; end", known).is_ok());
}
