//! Nothing of a failed attempt or a cancelled branch is left when the script goes on, and nothing
//! at all when it is over.

use std::collections::BTreeSet;

use ftsh::machine::effect::TaskId;
use ftsh::machine::record::LogEvent;
use ftsh::machine::status::{Doing, InProgress};
use ftsh::machine::{Effect, Outcome, Time};

use super::{Look, Oracle, Verdict};

/// What a failed attempt or a cancelled branch started is gone.
#[derive(Default)]
pub struct Leftovers {
    /// Tries that failed: the task, the line and when they began.
    failed: BTreeSet<(TaskId, u32, Time)>,
}

impl Oracle for Leftovers {
    fn name(&self) -> &'static str {
        "leftovers"
    }

    fn effect(&mut self, _: Time, effect: &Effect) -> Verdict {
        if let Effect::Log(record) = effect
            && let (LogEvent::TryFailed { elapsed, .. }, Some(task)) = (&record.event, record.task)
        {
            let began = Time::after(record.at - (Time::START + *elapsed));
            self.failed.insert((task, record.line, began));
        }
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let tasks = look.tasks();
        for start in look.families.starts.values() {
            let is_known = tasks.contains_key(&start.task);
            if look.families.is_ending(start.scope) || look.families.is_spared(start.scope) {
                continue;
            }
            if !is_known && !look.families.ended.contains(&start.process) && look.outcome.is_none()
            {
                return Err(format!("`{}` runs for a task that is gone", start.text));
            }
            for within in start.tries.iter().filter(|within| !within.condition) {
                let place = (within.task, within.line, within.started);
                let now = tasks.get(&within.task).and_then(|task| {
                    let same = |line, started| (line, started) == (within.line, within.started);
                    task.tries.iter().find(|tried| same(tried.line, tried.started))
                });
                let is_later = now.is_some_and(|tried| tried.attempt > within.attempt);
                if is_later || (now.is_none() && self.failed.contains(&place)) {
                    let (attempt, line) = (within.attempt, within.line);
                    let what = if is_later { "the next attempt" } else { "the end" };
                    return Err(format!(
                        "`{}` of attempt {attempt} at line {line} is alive at {what}",
                        start.text
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What is in progress is what the tasks say, and nothing when the run is over.
pub struct Nothing {
    /// Whether the run has a deadline, whose timer may be left.
    pub limited: bool,
}

impl Oracle for Nothing {
    fn name(&self) -> &'static str {
        "nothing is left"
    }

    fn look(&mut self, look: &Look) -> Verdict {
        let found = look.in_progress;
        if let Some(outcome) = look.outcome {
            let timers = found.timers.saturating_sub(usize::from(self.limited));
            let over = InProgress {
                tasks: 1,
                commands: 0,
                operations: 0,
                scopes: 1,
                emptying: 0,
                timers: 0,
            };
            if (InProgress { timers, ..found }) != over {
                return Err(format!("{found:?} when the run is over"));
            }
            let fine = |start: &&super::families::Start| {
                let is_daemon = look.families.ended.contains(&start.process);
                (is_daemon && *outcome == Outcome::Succeeded)
                    || look.families.is_spared(start.scope)
            };
            return match look.families.starts.values().find(|start| !fine(start)) {
                Some(start) => Err(format!("`{}` outlives the run", start.text)),
                None => Ok(()),
            };
        }
        let count = |is: fn(&Doing) -> bool| {
            look.status.tasks.iter().filter(|task| is(&task.doing)).count()
        };
        let said = InProgress {
            tasks: look.status.tasks.len(),
            commands: count(|doing| matches!(doing, Doing::Command(_))),
            operations: count(|doing| matches!(doing, Doing::Files)),
            emptying: count(|doing| matches!(doing, Doing::Ending)),
            ..found
        };
        if said != found {
            return Err(format!("{found:?}, but the tasks say {said:?}"));
        }
        Ok(())
    }
}
