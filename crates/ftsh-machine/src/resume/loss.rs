//! Failures of work lost with the shell that had begun it.

use std::sync::Arc;

use crate::outcome::{Failure, FailureKind, shorten};
use crate::tasks::task::Task;
use crate::unwind::propagate::RunningWork;

/// Creates the failure of work that was in progress when the shell ended.
pub(crate) fn lost(
    task: &Task,
    what: &str,
    running: RunningWork,
    caught: Option<Arc<Failure>>,
) -> Arc<Failure> {
    let message = match running.command.as_str() {
        "" => format!("{what} was in progress when the shell ended"),
        command => format!("`{}` was running when the shell ended", shorten(command)),
    };
    let running = RunningWork { elapsed: None, ..running };
    running.failure(task, FailureKind::Lost, 1, message, caught)
}
