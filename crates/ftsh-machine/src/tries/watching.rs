//! The clauses `stalled` and `memory`: attempts that end because of their processes.
//!
//! The driver watches the scope of an attempt from its first command on, and reports each condition
//! at most once. A remote branch is watched on its machine by the conditions around it.

use std::sync::Arc;

use crate::effect::{Effect, ScopeId, TaskId};
use crate::event::MemoryUse;
use crate::interface::watch::Watch;
use crate::outcome::{Failure, FailureKind, Human, shorten};
use crate::scopes::tree::ScopeWatch;
use crate::tasks::core::Core;
use crate::tasks::frame::{FrameKind, TryFrame, TryPhase};
use crate::tasks::task::Task;
use crate::unwind::propagate::RunningWork;
use ftsh_syntax::size::HumanBytes;

/// Condition that the processes of a scope met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// No progress for the time of `stalled`.
    Stalled,
    /// More memory than the size of `memory`.
    Memory(MemoryUse),
}

impl Core {
    /// Watches the scope of an attempt that begins.
    pub(crate) fn watch_attempt(&mut self, scope: ScopeId, owner: TaskId, frame: &TryFrame) {
        let conditions = frame.conditions();
        if !conditions.is_empty() {
            let attempt = Some(frame.id);
            self.scopes.set_watch(scope, ScopeWatch { conditions, owner, attempt });
        }
    }

    /// Watches the scope of the branch for which the machine was created.
    pub(crate) fn watch_root(&mut self, branch: TaskId) {
        let Some(scope) = self.tasks.get(branch).map(|branch| branch.scope) else { return };
        let Some(conditions) = self.remote.root().map(|root| root.conditions) else { return };
        if !conditions.is_empty() {
            let watch = ScopeWatch { conditions, owner: branch, attempt: None };
            self.scopes.set_watch(scope, watch);
        }
    }

    /// Returns the conditions of all attempts around the current instruction of a task.
    pub(crate) fn conditions_around(&self, task: &Task) -> Watch {
        let frames = self.tasks.and_around(task).flat_map(|task| &task.frames);
        frames.fold(Watch::default(), |all, frame| match &frame.kind {
            FrameKind::Try(frame) if frame.phase == TryPhase::Attempt => {
                all.and(frame.conditions())
            }
            _ => all,
        })
    }

    /// Watches all scopes again, because another process continues the run.
    pub(crate) fn watch_again(&mut self) {
        for (scope, watch) in self.scopes.watched() {
            self.requests.push(Effect::Watch { scope, watch });
        }
    }
}

impl TryFrame {
    /// Returns the conditions that the clauses set.
    pub(crate) fn conditions(&self) -> Watch {
        Watch { stalled: self.clauses.stalled, memory: self.clauses.memory }
    }
}

/// Creates the failure of work whose processes met a condition.
pub(crate) fn breached(
    task: &Task,
    conditions: Watch,
    breach: &Breach,
    running: RunningWork,
    caught: Option<Arc<Failure>>,
) -> Arc<Failure> {
    let (kind, code, predicate) = match breach {
        Breach::Stalled => {
            let time = conditions.stalled.unwrap_or_default();
            (FailureKind::Stalled, 124, format!("made no progress for {}", Human(time)))
        }
        Breach::Memory(memory) => {
            let limit = conditions.memory.unwrap_or_default();
            (FailureKind::Memory, 137, over_memory(limit, memory))
        }
    };
    let message = match running.command.as_str() {
        "" => format!("the processes {predicate}"),
        command => format!("`{}` {predicate}", shorten(command)),
    };
    running.failure(task, kind, code, message, caught)
}

fn over_memory(limit: u64, memory: &MemoryUse) -> String {
    let MemoryUse { used, largest, size } = memory;
    let (used, limit, size) = (HumanBytes(*used), HumanBytes(limit), HumanBytes(*size));
    format!(
        "used {used} of memory, more than {limit}; the largest process is `{largest}` with {size}"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_largest_process_is_named() {
        let memory = MemoryUse { used: 2_140_000_000, largest: "cc1".into(), size: 900_000_000 };
        let text = "used 2.14 GB of memory, more than 2 GB; \
                    the largest process is `cc1` with 900 MB";
        assert_eq!(over_memory(2_000_000_000, &memory), text);
    }

    #[test]
    fn the_tighter_conditions_hold() {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        let outer = Watch { stalled: minutes(2), memory: Some(1000) };
        let inner = Watch { stalled: minutes(3), memory: None };
        assert_eq!(outer.and(inner), outer);
        assert_eq!(inner.and(Watch::default()), inner);
        assert!(Watch::default().is_empty());
    }
}
