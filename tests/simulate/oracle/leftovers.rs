//! Nothing of a failed attempt or a canceled branch is left when the script continues, and nothing
//! at all at the end.

use std::collections::BTreeSet;

use ftsh_machine::Outcome;
use ftsh_machine::effect::ScopeId;
use ftsh_machine::status::{Doing, InProgress};

use super::families::Within;
use super::{Look, Oracle, Verdict};
use crate::program::Promises;

/// Processes of a failed attempt or a canceled branch are gone, and with `no leftovers` those of
/// each attempt.
pub(super) struct Leftovers(pub Promises);

impl Oracle for Leftovers {
    fn name(&self) -> &'static str {
        "leftovers"
    }

    fn look(&mut self, look: &Look) -> Verdict {
        if look.outcome.is_some() {
            return Ok(());
        }
        let tasks = &look.tasks;
        let families = look.families;
        let present: BTreeSet<ScopeId> =
            tasks.values().flat_map(|task| task.tries.iter().map(|tried| tried.scope)).collect();
        for start in families.starts.values() {
            if families.is_ending(start.scope) || families.is_spared(start.scope) {
                continue;
            }
            let is_gone = !tasks.contains_key(&start.task) && !look.spares_a_group();
            if is_gone && !families.ended.contains_key(&start.process) {
                return Err(format!("`{}` runs for a task that is gone", start.text));
            }
            let is_strict = |within: &Within| {
                let promise = self.0.tries.get(&(within.file.clone(), within.line));
                !within.condition && promise.is_some_and(|limits| limits.no_leftovers)
            };
            let is_over = |within: &Within| {
                let is_kept = families.handed_over.contains(&within.scope) && !is_strict(within);
                !present.contains(&within.scope) && !is_kept
            };
            // `keep` moves processes out of their attempts.
            let is_kept = |scope| {
                families.handed_over.contains(&start.scope)
                    && !families.is_within(start.scope, scope)
            };
            let left = |within: &&Within| is_over(within) && !is_kept(within.scope);
            if let Some(within) = start.tries.iter().find(left) {
                let (attempt, line, text) = (within.attempt, within.line, &start.text);
                return Err(format!("`{text}` outlives attempt {attempt} at line {line}"));
            }
        }
        Ok(())
    }
}

/// The tasks account for all work in progress, and nothing is left at the end of the run.
pub(super) struct Nothing {
    /// True if the run has a deadline, whose timer may remain.
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
                relays: 0,
                scopes: 1,
                emptying: 0,
                timers: 0,
            };
            if (InProgress { timers, ..found }) != over {
                return Err(format!("{found:?} when the run is over"));
            }
            let fine = |start: &&super::families::Start| {
                let is_daemon = look.families.ended.contains_key(&start.process);
                let may_stay = *outcome == Outcome::Succeeded || look.families.is_replaced;
                (is_daemon && may_stay) || look.families.is_spared(start.scope)
            };
            return match look.families.starts.values().find(|start| !fine(start)) {
                Some(start) => Err(format!("`{}` outlives the run", start.text)),
                None => Ok(()),
            };
        }
        let count = |is: fn(&Doing) -> bool| {
            look.status.tasks.iter().filter(|task| is(&task.doing)).count()
        };
        let commands = count(|doing| match doing {
            Doing::Command(_) | Doing::Printing => true,
            Doing::Branches(branches) => branches.printing,
            _ => false,
        });
        let elsewhere = count(|doing| matches!(doing, Doing::Elsewhere(_)));
        // Tasks that wait for a machine may be on their way to it.
        let most = elsewhere + count(|doing| matches!(doing, Doing::Placing));
        let said = InProgress {
            tasks: look.status.tasks.len(),
            commands: found.commands.clamp(commands + elsewhere, commands + most),
            operations: count(|doing| matches!(doing, Doing::Files | Doing::Entering(_))),
            emptying: count(|doing| matches!(doing, Doing::Ending)),
            ..found
        };
        if said != found {
            return Err(format!("{found:?}, but the tasks say {said:?}"));
        }
        Ok(())
    }
}
