//! Each `try` with a `finally` that was begun and left has its group run once, after its `catch` and
//! after those inside; or the log says that there was no time for it.

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

pub struct Groups {
    promises: Promises,
    /// How long the groups of what is cancelled may take.
    share: Duration,
    /// The tries with groups that tasks are in, outer ones first.
    begun: BTreeMap<TaskId, Vec<Begun>>,
    /// What tasks have done since an attempt or an iteration began there.
    since: BTreeMap<TaskId, Since>,
    /// What stands in the shell's place, or is to, and when its time has run out.
    replaces: BTreeMap<ProcessId, Deadline>,
    /// When anything was cancelled.
    cancelled: Vec<Time>,
    /// When the conditions in progress are cut: the log doesn't say that.
    conditions: Vec<Deadline>,
    signals: usize,
    judged: Judged,
}

/// A `try` that has begun, and whose group is still to be run.
struct Begun {
    place: (String, u32),
    at: Time,
    /// Whether it has succeeded, once it has come to an end of its own.
    succeeded: Option<bool>,
    caught: bool,
    /// Whether its present attempt is to be made again.
    deferred: bool,
}

#[derive(Default)]
struct Since {
    at: Time,
    /// The groups that had their turn.
    turns: BTreeSet<(String, u32)>,
}

impl Groups {
    pub fn new(promises: &Promises, config: &Config) -> Self {
        Self {
            promises: promises.clone(),
            share: config.kill_timeout / 2,
            begun: BTreeMap::new(),
            since: BTreeMap::new(),
            replaces: BTreeMap::new(),
            cancelled: Vec::new(),
            conditions: Vec::new(),
            signals: 0,
            judged: Judged::default(),
        }
    }

    fn group(&self, record: &LogRecord) -> Option<Group> {
        self.promises.groups.get(&(record.file.to_string(), record.line)).cloned()
    }

    /// A group has its turn.
    fn turn(&mut self, task: TaskId, record: &LogRecord, runs: bool) -> Verdict {
        let Some(group) = self.group(record) else { return Err("no group is here".into()) };
        let place = (record.file.to_string(), group.line);
        let limits = self.promises.tries.get(&place);
        if limits.is_some_and(|limits| limits.headless) {
            return Ok(());
        }
        // It may be cancelled before its channel lets the first attempt through, or before that begins.
        let since = self.since.entry(task).or_default();
        let is_first = since.turns.insert(place.clone());
        let may_wait = limits.is_some_and(|limits| limits.through)
            || is_first && self.cancelled.iter().any(|at| *at >= since.at);
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
        self.cancelled.extend(cut.map(Deadline::timer_moment));
        let cancelled = self.cancelled.iter().any(|at| *at >= begun.at);
        // What was begun after that may be part of a group of what is cancelled.
        let late = |at: &Time| *at + self.share <= record.at;
        if !runs && self.signals < 2 && !self.cancelled.iter().any(late) {
            return Err("there is time for it".into());
        }
        self.judged.count(match (runs, begun.succeeded) {
            (false, _) => "finally has no time",
            (true, Some(true)) => "finally after success",
            (true, Some(false)) => "finally after failure",
            (true, None) if cancelled => "finally after a cancellation",
            (true, None) => "finally after a jump, return or exit",
        });
        Ok(())
    }

    fn log(&mut self, record: &LogRecord) -> Verdict {
        if let LogEvent::Interrupted(_) = record.event {
            self.signals += 1;
            self.cancelled.push(record.at);
        }
        let cuts = [FailureKind::Timeout, FailureKind::Lost];
        let is_cut = record.event.failure().is_some_and(|it| cuts.contains(&it.kind));
        if is_cut || record.event == LogEvent::Cancelled {
            self.cancelled.push(record.at);
        }
        let Some(task) = record.task else { return Ok(()) };
        let place = (record.file.to_string(), record.line);
        if let LogEvent::Attempt { .. } | LogEvent::Iteration { .. } = record.event {
            self.since.insert(task, Since { at: record.at, turns: BTreeSet::new() });
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
            // It is cut short before it has taken the shell's place.
            Effect::Terminate(_) => self.replaces.clear(),
            _ => {}
        }
        let Effect::Log(record) = effect else { return Ok(()) };
        self.log(record).map_err(|what| format!("line {}: {what}", record.line))
    }

    fn event(&mut self, now: Time, event: &Event) -> Verdict {
        match event {
            // Another program stands in the shell's place, and no group is left to be run, unless it has
            // run out of time there.
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
            self.cancelled.push(look.now);
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
