//! Putting a command that failed into a `try`: when that is worth a hint, and the key for it.

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
pub const KEY: KeyEvent = KeyEvent(KeyCode::Char('r'), Modifiers::ALT);

/// What a user is told who may not know it.
pub const HINT: &str = "Alt-R puts it into a `try`, which repeats it until it succeeds";

/// Statuses by which many commands say no, or that they were used in a wrong way.
const NO: [i32; 3] = [1, 2, 64];
/// Statuses of what couldn't be started.
const NEVER: [i32; 2] = [126, 127];
/// A command that says no says so at once.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Whether it was a single command that may well succeed later.
pub fn may_help(script: &Script, failure: &Failure) -> bool {
    let [command] = &script.body.commands[..] else { return false };
    let CommandKind::Pipeline(pipeline) = &command.kind else { return false };
    let is_simple = pipeline.stages.iter().all(|stage| stage.simple().is_some());
    let takes_time = failure.elapsed.is_some_and(|it| it >= AT_ONCE);
    is_simple
        && failure.kind == FailureKind::Exit
        && !NEVER.contains(&failure.code)
        && (takes_time || !NO.contains(&failure.code))
}

/// The lines that put others into a `try`. What isn't kept in the history, isn't then.
pub fn wrapped(text: &str) -> String {
    let private = if text.starts_with([' ', '\t']) { " " } else { "" };
    let text = text.trim_end_matches('\n');
    // Strings and here-documents stay as they are.
    let indent = if text.contains('\n') { "" } else { "  " };
    let text = if indent.is_empty() { text } else { text.trim_start() };
    format!("{private}try for 5 minutes\n{indent}{text}\nend")
}

/// What was typed that failed last; none where no statement begins.
pub type Failed = Arc<Mutex<Option<String>>>;

/// Puts the line into a `try`, or, if it is empty, what failed last.
pub struct Again(pub Failed);

impl ConditionalEventHandler for Again {
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
    fn what_is_wrapped_stays_what_it_was() {
        assert_eq!(wrapped("wget x"), "try for 5 minutes\n  wget x\nend");
        assert_eq!(wrapped(" wget x"), " try for 5 minutes\n  wget x\nend");
        assert_eq!(wrapped("cat <<E\n a\nE"), "try for 5 minutes\ncat <<E\n a\nE\nend");
        for text in ["wget x", "cat <<E\n a\nE", "for x in 1\n  f\nend", "a # b", "echo 'a\n b'"] {
            assert!(ftsh_syntax::parse("test", &wrapped(text)).is_ok(), "{text}");
        }
    }
}
