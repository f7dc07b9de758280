//! Creation of log records, as far as the level of the log requires.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::branches::JoinKind;
use crate::effect::{Effect, TaskId};
use crate::outcome::{Failure, FailureKind};
use crate::record::{Level, LogEvent, LogRecord};
use crate::tasks::Task;

impl Core {
    /// Returns true if the log has this level.
    pub(crate) fn logs(&self, level: Level) -> bool {
        self.config.log_level >= level
    }

    /// Logs an event of a task, if the log has the level.
    pub(crate) fn log(&mut self, task: &Task, event: impl FnOnce() -> LogEvent, level: Level) {
        self.log_at(task, task.line(), event, level);
    }

    /// Logs the success of a command.
    pub(crate) fn log_success(&mut self, task: &Task, command: String, elapsed: Duration) {
        let event = || LogEvent::CommandSucceeded { command, elapsed, status: 0 };
        self.log(task, event, Level::COMMANDS);
    }

    /// Logs an event of the whole run.
    pub(crate) fn log_run(&mut self, event: LogEvent) {
        if let Some(main) = self.tasks.main()
            && self.logs(event.level())
        {
            let file = Arc::clone(main.program.source.name());
            self.request(Effect::Log(LogRecord::of_shell(self.now(), file, 0, event)));
        }
    }

    /// Creates the record of an event of a task.
    pub(crate) fn record(&self, task: &Task, line: u32, event: LogEvent) -> LogRecord {
        LogRecord {
            at: self.now(),
            level: event.level(),
            task: Some(task.id),
            parent: task.parent.map(|(parent, _)| parent),
            around: Box::new(self.surroundings(task)),
            file: Arc::clone(task.program.source.name()),
            line,
            attempt: task.attempt().map(|attempt| attempt.number).filter(|number| *number > 0),
            uncaught: false,
            event,
        }
    }

    /// Logs an event of a task at another line than the current one.
    pub(crate) fn log_at<E: Into<LogEvent>>(
        &mut self,
        task: &Task,
        line: u32,
        event: impl FnOnce() -> E,
        level: Level,
    ) {
        if self.logs(level) {
            let record = self.record(task, line, event().into());
            self.request(Effect::Log(record));
        }
    }

    /// Logs a remark.
    pub(crate) fn log_note(&mut self, task: &Task, line: u32, level: Level, note: String) {
        if self.logs(level) {
            let record = self.record(task, line, LogEvent::Note(note));
            self.request(Effect::Log(LogRecord { level, ..record }));
        }
    }

    /// Logs a failure where it happens.
    pub(crate) fn log_failure(
        &mut self,
        task: &Task,
        failure: &Arc<Failure>,
        level: Level,
        uncaught: bool,
    ) {
        if !self.logs(level) {
            return;
        }
        let (file, line) = (Arc::clone(failure.file()), failure.line);
        let failure = Box::new(Failure::clone(failure));
        let event = if failure.command.is_empty() {
            LogEvent::Failed(failure)
        } else {
            LogEvent::CommandFailed(failure)
        };
        let record = self.record(task, line, event);
        let record = LogRecord { level, file, uncaught, ..record };
        self.request(Effect::Log(record));
    }

    /// Logs the end of a branch, and removes the branch from its loop.
    pub(crate) fn branch_ended(
        &mut self,
        task: &mut Task,
        (branch, attempts): (TaskId, u64),
        failure: Option<(FailureKind, i32)>,
    ) {
        let now = self.now();
        let (variable, node, begun) = match task.top_join().map(|it| &mut it.kind) {
            Some(JoinKind::Branches { code, tally, .. }) => {
                let node = tally.node(branch).map(ToOwned::to_owned);
                (Arc::clone(&code.variable), node, tally.forget(branch))
            }
            Some(JoinKind::Hedge(hedge)) => {
                let begun = hedge.forget(branch);
                (Arc::clone(&hedge.code.variable), None, begun)
            }
            Some(JoinKind::Beside(beside)) if beside.companion == branch => {
                ("with".into(), None, Some((0, beside.name.clone(), beside.started)))
            }
            Some(JoinKind::Beside(_) | JoinKind::Stages(_)) | None => return,
        };
        let Some((place, word, started)) = begun else { return };
        if !self.logs(Level::STRUCTURES) {
            return;
        }
        let event = LogEvent::BranchEnded {
            name: variable.to_string(),
            word: word.text().unwrap_or_default().into_owned(),
            place,
            node,
            failure,
            attempts,
            elapsed: now - started,
        };
        let record = self.record(task, task.line(), event);
        let record = LogRecord { task: Some(branch), parent: Some(task.id), ..record };
        let record = self.inside_branch(record, task, &variable, &word);
        self.request(Effect::Log(record));
    }
}
