//! `limit`, and the clause `signal` of `try` and `limit`.

use super::{literal, parse, rendered_errors, tidied};
use crate::ast::CommandKind;

/// Returns the kind of the first command of a script.
fn first(text: &str) -> CommandKind {
    let script = parse("t", text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
    script.body.commands.into_iter().next().expect("a command").kind
}

#[test]
fn only_a_time_makes_limit_a_head() {
    for head in ["5 min", "5min", "1h30m", "1.5 hours", "$time", "${n} s", "\"5 min\"", "'1 s'"] {
        let text = format!("limit {head}; a; end");
        let CommandKind::Try(details) = first(&text) else { panic!("{text}") };
        assert!(details.is_limit && details.clauses.time.is_some(), "{text}");
        let times = details.clauses.times.as_ref().and_then(literal::expr);
        assert_eq!(times.as_deref(), Some("1"), "{text}");
    }
    for command in ["limit", "limit 5", "limit a", "limit 5 min x"] {
        let errors = rendered_errors(command);
        assert!(errors.contains("this is not a form of `limit`"), "{command}: {errors}");
    }
    for command in ["./limit 5 min", "\"limit\" 5 min"] {
        assert!(matches!(first(command), CommandKind::Pipeline(_)), "{command}");
    }
    let own = "function limit; a; end\nlimit 5 min";
    assert!(parse("t", own).is_ok(), "a function of this name takes precedence");
}

#[test]
fn limits_are_printed_as_limits() {
    assert_eq!(tidied("limit   5   min;a;end"), "limit 5 minutes\n    a\nend\n");
    let text = "limit $time\n    a\ncatch\n    b\nfinally\n    c\nend | sort\n";
    assert_eq!(tidied(text), text);
    let text = "limit 5 minutes signal INT\n    a\nend > f\n";
    assert_eq!(tidied(text), text);
}

#[test]
fn signals_have_names() {
    let text =
        "try for 5 minutes or 3 times every 1 second signal SIGUSR1 while true\n    a\nend\n";
    assert_eq!(tidied(text), text);
    assert_eq!(
        tidied("try signal $s atomic 3 times; a; end"),
        "try 3 times signal $s atomic\n    a\nend\n"
    );
    assert_eq!(tidied("try signal \"INT\"; a; end"), "try signal \"INT\"\n    a\nend\n");
    for (text, message) in [
        ("try signal int", "`int` is not a signal that `signal` can send"),
        ("try signal int", "did you mean `signal INT`?"),
        ("try signal STOP", "the signals are TERM, INT, HUP,"),
        ("limit 5 s signal 9", "`9` is not a signal that `signal` can send"),
        ("try 3 times signal", "expected the name of a signal after `signal`"),
        ("try signal every 5 s", "expected the name of a signal after `signal`"),
        ("try 2 times signal INT signal INT", "`signal` is given twice"),
    ] {
        let errors = rendered_errors(&format!("{text}\na\nend"));
        assert!(errors.contains(message), "{text}: {errors}");
    }
}

#[test]
fn the_missing_time_of_a_limit_is_explained() {
    let errors = rendered_errors("limit 5\n    a\nend");
    assert!(errors.contains("`limit 5 minutes` must be alone on its line"), "{errors}");
    assert_eq!(errors.matches("error[").count(), 1, "{errors}");
}
