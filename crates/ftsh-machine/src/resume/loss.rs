//! Failures of work lost with the shell that had begun it.

use std::sync::Arc;

use crate::outcome::{Failure, FailureKind, shorten};
use crate::tasks::task::Task;
use crate::unwind::propagate::RunningWork;
use ftsh_syntax::slug::Slug;

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
    let (source, line) =
        running.place.unwrap_or_else(|| (Arc::clone(&task.program.source), task.line()));
    Arc::new(Failure {
        kind: FailureKind::Lost,
        code: 1,
        errno: None,
        slug: Slug::Lost,
        message,
        command: running.command,
        elapsed: None,
        source,
        line,
        tries: running.tries,
        trace: running.walk.trace,
        earlier: running.earlier.or(caught),
        branches: running.branches,
        printed: None,
        output: None,
    })
}
