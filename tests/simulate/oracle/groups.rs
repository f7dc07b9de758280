//! The `finally` group of each `try` that began and ended runs once, after its `catch` and after
//! inner groups. Otherwise the log reports that there was no time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ftsh_machine::effect::{ProcessId, TaskId};
use ftsh_machine::event::CommandStatus;
use ftsh_machine::outcome::FailureKind;
use ftsh_machine::record::{LogEvent, LogRecord};
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Effect, Event, Time};

use super::{Judged, Look, Oracle, Verdict};
use crate::program::{Group, Promises};

pub(super) struct Groups {
    promises: Promises,
    /// Maximum time for groups of canceled work.
    share: Duration,
    /// Tries with groups that tasks are in, outer ones first.
    begun: BTreeMap<TaskId, Vec<Begun>>,
    /// Actions of tasks since the start of the current attempt or iteration.
    since: BTreeMap<TaskId, Since>,
    /// Program that has replaced the shell or will, and the time of its limit.
    replaces: BTreeMap<ProcessId, Deadline>,
    /// Times of cancellations.
    canceled: Vec<Time>,
    /// Times at which conditions in progress are canceled, which the log does not record.
    conditions: Vec<Deadline>,
    signals: usize,
    judged: Judged,
}

/// A `try` that has begun, with a pending group.
struct Begun {
    place: (String, u32),
    at: Time,
    /// Result of the `try`, once it has ended by itself.
    succeeded: Option<bool>,
    caught: bool,
    /// True if the current attempt will be repeated.
    deferred: bool,
}

#[derive(Default)]
struct Since {
    at: Time,
    /// Groups that were run or skipped.
    turns: BTreeSet<(String, u32)>,
    /// Lines of expressions of the task that have failed, which may be those of heads.
    failed: BTreeSet<(String, u32)>,
}

impl Groups {
    pub(super) fn new(promises: &Promises, config: &Config) -> Self {
        Self {
            promises: promises.clone(),
            share: config.kill_timeout / 2,
            begun: BTreeMap::new(),
            since: BTreeMap::new(),
            replaces: BTreeMap::new(),
            canceled: Vec::new(),
            conditions: Vec::new(),
            signals: 0,
            judged: Judged::default(),
        }
    }

    fn group(&self, record: &LogRecord) -> Option<Group> {
        self.promises.groups.get(&(record.file.to_string(), record.line)).cloned()
    }

    /// Handles the run of a group.
    fn turn(&mut self, task: TaskId, record: &LogRecord, runs: bool) -> Verdict {
        let Some(group) = self.group(record) else { return Err("no group is here".into()) };
        if !group.is_try {
            return Ok(());
        }
        let place = (record.file.to_string(), group.line);
        let limits = self.promises.tries.get(&place);
        if limits.is_some_and(|limits| limits.headless) {
            return Ok(());
        }
        // A `try` may be canceled before its channel admits the first attempt, or before the
        // attempt begins.
        let since = self.since.entry(task).or_default();
        let is_first = since.turns.insert(place.clone());
        let may_wait = limits.is_some_and(|limits| limits.through)
            || since.failed.contains(&place)
            || is_first && self.canceled.iter().any(|at| *at >= since.at);
        let tries = self.begun.entry(task).or_default();
        let Some(begun) = tries.pop_if(|begun| begun.place == place) else {
            if may_wait {
                return Ok(());
            }
            let inner: Vec<_> = tries.iter().map(|begun| &begun.place.1).collect();
            return Err(format!("it isn't this group's turn, but that of {inner:?}"));
        };
        if begun.succeeded == Some(false) && group.catch && !begun.caught {
            return Err("the `catch` comes first".into());
        }
        let cut = self.conditions.extract_if(.., |cut| cut.is_past(record.at));
        self.canceled.extend(cut.map(Deadline::timer_moment));
        let canceled = self.canceled.iter().any(|at| *at >= begun.at);
        // Later tries may be part of a group of canceled work.
        let late = |at: &Time| *at + self.share <= record.at;
        if !runs && self.signals < 2 && !self.canceled.iter().any(late) {
            return Err("there is time for it".into());
        }
        self.judged.count(match (runs, begun.succeeded) {
            (false, _) => "finally has no time",
            (true, Some(true)) => "finally after success",
            (true, Some(false)) => "finally after failure",
            (true, None) if canceled => "finally after a cancellation",
            (true, None) => "finally after a jump, return or exit",
        });
        Ok(())
    }

    fn log(&mut self, record: &LogRecord) -> Verdict {
        if let LogEvent::Interrupted(_) = record.event {
            self.signals += 1;
            self.canceled.push(record.at);
        }
        let cuts =
            [FailureKind::Timeout, FailureKind::Stalled, FailureKind::Memory, FailureKind::Lost];
        let is_cut = record.event.failure().is_some_and(|it| cuts.contains(&it.kind));
        if is_cut || record.event == LogEvent::Canceled {
            self.canceled.push(record.at);
        }
        let Some(task) = record.task else { return Ok(()) };
        let place = (record.file.to_string(), record.line);
        if let LogEvent::Attempt { .. } | LogEvent::Iteration { .. } = record.event {
            // The `catch` of a failed head may have attempts before the group runs.
            let failed = self.since.remove(&task).map(|since| since.failed).unwrap_or_default();
            self.since.insert(task, Since { at: record.at, failed, ..Since::default() });
        }
        if let LogEvent::Failed(_) = record.event {
            self.since.entry(task).or_default().failed.insert(place.clone());
        }
        let tries = self.begun.entry(task).or_default();
        match record.event {
            LogEvent::Deferred { .. } => {
                if let Some(begun) = tries.last_mut().filter(|begun| begun.place == place) {
                    begun.deferred = true;
                }
            }
            LogEvent::Attempt { number: 1, .. } => {
                if let Some(begun) = tries.last_mut().filter(|begun| begun.place == place)
                    && std::mem::take(&mut begun.deferred)
                {
                    return Ok(());
                }
                let mut groups = self.promises.groups.iter();
                if groups.any(|(at, group)| at.0 == place.0 && group.line == place.1) {
                    tries.push(Begun {
                        place,
                        at: record.at,
                        succeeded: None,
                        caught: false,
                        deferred: false,
                    });
                }
            }
            LogEvent::TrySucceeded(_) | LogEvent::TryFailed { .. } => {
                if let Some(begun) = tries.last_mut().filter(|begun| begun.place == place) {
                    begun.succeeded = Some(matches!(record.event, LogEvent::TrySucceeded(_)));
                }
            }
            LogEvent::Catch => {
                if let Some(begun) = tries.last_mut().filter(|it| it.succeeded == Some(false)) {
                    begun.caught = true;
                }
            }
            LogEvent::Finally => return self.turn(task, record, true),
            LogEvent::FinallyCut { begun: false } => return self.turn(task, record, false),
            _ => {}
        }
        Ok(())
    }
}

impl Oracle for Groups {
    fn name(&self) -> &'static str {
        "groups"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        match effect {
            Effect::Exec(run) => {
                self.replaces.insert(run.process, run.deadline);
            }
            // The `try` is canceled before the program replaces the shell.
            Effect::Terminate(_) => self.replaces.clear(),
            _ => {}
        }
        let Effect::Log(record) = effect else { return Ok(()) };
        self.log(record).map_err(|what| format!("line {}: {what}", record.line))
    }

    fn event(&mut self, now: Time, event: &Event) -> Verdict {
        match event {
            // After another program has replaced the shell, no group remains to run, unless the
            // time ran out first.
            Event::Spawned { process, .. } | Event::Exited { process, .. }
                if self.replaces.get(process).is_some_and(|deadline| !deadline.is_past(now))
                    && !matches!(event, Event::Exited { status: CommandStatus::Lost, .. }) =>
            {
                self.begun.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let tasks = &look.tasks;
        let tries = look.status.tasks.iter().flat_map(|task| &task.tries);
        let conditions = tries.filter(|tried| tried.condition);
        self.conditions = conditions.map(|tried| tried.deadline).collect();
        if self.conditions.iter().any(|cut| cut.is_past(look.now)) {
            self.canceled.push(look.now);
        }
        self.begun.retain(|_, tries| !tries.is_empty());
        for (task, tries) in &self.begun {
            if !tasks.contains_key(task)
                && let Some(begun) = tries.last()
            {
                return Err(format!("the `try` at line {} is left without it", begun.place.1));
            }
        }
        Ok(())
    }

    fn judged(&self) -> &Judged {
        &self.judged
    }
}
