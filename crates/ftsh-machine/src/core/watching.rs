//! The clauses `stalled` and `memory`: attempts that end because of their processes.
//!
//! The driver watches the scope of an attempt from its first command on, and reports each condition
//! at most once. A remote branch is watched on its machine by the conditions around it.

use super::{parts::Core, scopes::ScopeWatch};
use crate::attempts::{TryFrame, TryPhase};
use crate::effect::{Effect, ScopeId, TaskId, Watch};
use crate::frames::FrameKind;
use crate::tasks::Task;

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
