//! No command begins after the deadline around it, and none survives the deadline unattended.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh_machine::effect::{ScopeId, TaskId};
use ftsh_machine::record::LogEvent;
use ftsh_machine::time::Deadline;
use ftsh_machine::{Config, Effect, Time};

use super::families::Within;
use super::{Look, Oracle, Verdict};
use crate::program::Promises;

pub(super) struct Deadlines {
    limits: BTreeMap<(String, u32), (Option<Duration>, Option<Duration>)>,
    /// Starts of attempts. Repeated entries of the same try count as one.
    attempts: BTreeMap<(TaskId, u32, u64), Time>,
    /// Times at which passed deadlines were first noticed. A late machine cancels then.
    cuts: BTreeMap<ScopeId, Time>,
    run: Deadline,
    /// Remaining time of `finally` groups in progress after a limit or a late cancellation.
    share: Duration,
}

impl Deadlines {
    pub(super) fn new(promises: &Promises, config: &Config) -> Self {
        let limits = promises.tries.iter().map(|(place, it)| (place.clone(), (it.limit, it.each)));
        Self {
            limits: limits.collect(),
            attempts: BTreeMap::new(),
            cuts: BTreeMap::new(),
            run: config.deadline,
            share: config.kill_timeout / 2,
        }
    }

    /// Returns the deadline of a command within this try.
    fn deadline(&self, within: &Within) -> Time {
        let place = (within.file.clone(), within.line);
        let (limit, each) = self.limits.get(&place).copied().unwrap_or_default();
        let whole = limit.map_or(Time::NEVER, |limit| within.started + limit);
        let attempt = self.attempts.get(&(within.task, within.line, within.attempt));
        let limit = match (each, attempt) {
            (Some(each), Some(began)) if !within.condition => whole.min(*began + each),
            _ => whole,
        };
        if within.outlasted { limit + self.share } else { limit }
    }
}

impl Oracle for Deadlines {
    fn name(&self) -> &'static str {
        "deadlines"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        if let Effect::Log(record) = effect
            && let (LogEvent::Attempt { number, .. }, Some(task)) = (&record.event, record.task)
        {
            self.attempts.insert((task, record.line, *number), record.at);
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let now = look.now;
        for start in look.started {
            let counting = start.tries.iter().filter(|within| within.counts);
            let limits = counting.map(|within| (self.deadline(within), within.line));
            let run = if start.in_finally { self.run + self.share } else { self.run };
            let around = start.cleaning.unwrap_or(run).moment().map(|limit| (limit, 0));
            let first = limits.chain(around).min_by_key(|limit| limit.0);
            if let Some((deadline, line)) = first
                && start.at >= deadline
                // A signal in the same turn has ended the enclosing cleanup.
                && !look.families.is_ending(start.scope)
            {
                return Err(format!(
                    "`{}` began at {:?}, after the deadline {deadline:?} of line {line}",
                    start.text, start.at
                ));
            }
        }
        let tasks = &look.tasks;
        let share = if look.spares_a_group() { self.share } else { Duration::ZERO };
        for start in look.families.starts.values() {
            if let Some(limit) = start.cleaning
                && limit.is_past(now)
                && !look.families.is_ending(start.scope)
                && !look.families.is_spared(start.scope)
                && !look.families.is_kept(start.scope)
            {
                let text = &start.text;
                return Err(format!("`{text}` outlives the time of `finally`, {limit:?}"));
            }
            for within in &start.tries {
                let is_on = tasks
                    .get(&within.task)
                    .is_some_and(|task| task.tries.iter().any(|tried| tried.scope == within.scope));
                if !is_on || !within.counts || within.condition || self.deadline(within) > now {
                    continue;
                }
                // `keep` moved the process out of the `try`.
                if look.families.handed_over.contains(&start.scope)
                    && !look.families.is_within(start.scope, within.scope)
                {
                    continue;
                }
                let cut = *self.cuts.entry(within.scope).or_insert(now);
                if cut + share <= now
                    && !look.families.is_ending(start.scope)
                    // In weak mode, surviving processes are left alone.
                    && !look.families.is_spared(start.scope)
                {
                    let (text, line) = (&start.text, within.line);
                    return Err(format!("`{text}` outlives the deadline of line {line}"));
                }
            }
        }
        Ok(())
    }
}
