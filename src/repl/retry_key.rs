//! Retry of a failed command: the hint to put the command into a `try`, and the key for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, KeyCode, KeyEvent, Modifiers, Movement,
    RepeatCount,
};

use ftsh_machine::{Failure, FailureKind};
use ftsh_syntax::Script;
use ftsh_syntax::ast::CommandKind;

/// Alt-R.
pub(super) const KEY: KeyEvent = KeyEvent(KeyCode::Char('r'), Modifiers::ALT);

/// Hint for users who may not know the key.
pub(super) const HINT: &str =
    "Alt-R puts the command into a `try`, which repeats it until it succeeds";

/// Exit statuses of negative answers and of wrong usage, for many commands.
const NEGATIVE: [i32; 3] = [1, 2, 64];
/// Exit statuses of commands that could not be started.
const NOT_STARTED: [i32; 2] = [126, 127];
/// Maximum duration of a negative answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(1);

/// True if the script is a single command that may succeed later.
pub(super) fn may_help(script: &Script, failure: &Failure) -> bool {
    let [command] = &script.body.commands[..] else { return false };
    let CommandKind::Pipeline(pipeline) = &command.kind else { return false };
    let is_simple = pipeline.stages.iter().all(|stage| stage.simple().is_some());
    let takes_time = failure.elapsed.is_some_and(|it| it >= MAX_ANSWER_TIME);
    is_simple
        && failure.kind == FailureKind::Exit
        && !NOT_STARTED.contains(&failure.code)
        && (takes_time || !NEGATIVE.contains(&failure.code))
}

/// Returns the lines with a `try` around them. A line kept out of the history stays private.
pub(super) fn wrapped(text: &str) -> String {
    let private = if text.starts_with([' ', '\t']) { " " } else { "" };
    let text = text.trim_end_matches('\n');
    // Strings and here-documents keep their indentation.
    let indent = if text.contains('\n') { "" } else { "  " };
    let text = if indent.is_empty() { text } else { text.trim_start() };
    format!("{private}try for 5 minutes\n{indent}{text}\nend")
}

/// Input that failed last; none while an input continues on further lines.
pub(super) type Failed = Arc<Mutex<Option<String>>>;

/// Handler that puts the line into a `try`, or the last failed input if the line is empty.
pub(super) struct RetryKey(pub Failed);

impl ConditionalEventHandler for RetryKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext) -> Option<Cmd> {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match (context.line(), failed.as_deref()) {
            (_, None) | ("", Some("")) => return Some(Cmd::Noop),
            ("", Some(failed)) => failed,
            (line, Some(_)) => line,
        };
        Some(Cmd::Replace(Movement::WholeBuffer, Some(wrapped(text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_their_meaning() {
        assert_eq!(wrapped("wget x"), "try for 5 minutes\n  wget x\nend");
        assert_eq!(wrapped(" wget x"), " try for 5 minutes\n  wget x\nend");
        assert_eq!(wrapped("cat <<E\n a\nE"), "try for 5 minutes\ncat <<E\n a\nE\nend");
        for text in ["wget x", "cat <<E\n a\nE", "for x in 1\n  f\nend", "a # b", "echo 'a\n b'"] {
            assert!(ftsh_syntax::parse("test", &wrapped(text)).is_ok(), "{text}");
        }
    }
}
