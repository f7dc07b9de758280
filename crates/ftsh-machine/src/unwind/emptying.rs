//! Scopes emptied before their tasks continue.

use std::time::Duration;

use super::Unwinder;
use crate::atomic::Committer;
use crate::core::Flow;
use crate::dropped::OutputHolder;
use crate::effect::ScopeId;
use crate::endings::TaskEnding;
use crate::outcome::FailureKind;
use crate::tasks::{AfterEmptied, Task, TaskState};

impl Unwinder<'_> {
    /// Empties a scope of a task, then continues with `after`.
    pub(crate) fn empty(&mut self, task: &mut Task, scope: ScopeId, after: AfterEmptied) -> Flow {
        self.empty_within(task, scope, self.core.config().kill_timeout, after)
    }

    /// Empties a scope like `empty`, with another time from the first signal to SIGKILL.
    pub(crate) fn empty_within(
        &mut self,
        task: &mut Task,
        scope: ScopeId,
        grace: Duration,
        after: AfterEmptied,
    ) -> Flow {
        if self.core.terminate(scope, grace) {
            task.since = self.core.now();
            Flow::Wait(TaskState::Emptying(scope, after))
        } else {
            self.core.forget_scope(scope);
            self.emptied(task, after)
        }
    }

    /// Continues a task whose scope is empty.
    pub(crate) fn emptied(&mut self, task: &mut Task, after: AfterEmptied) -> Flow {
        let dropped = match after {
            AfterEmptied::Fail(_) | AfterEmptied::Leave(TaskEnding::Exited(1..)) => {
                let part = task.top_try().and_then(|frame| frame.dropped.values().next());
                part.map(|part| part.iter().map(OutputHolder::sink).collect())
            }
            AfterEmptied::End(TaskEnding::Failed(ref thrown))
                if thrown.failure.kind != FailureKind::Canceled =>
            {
                self.core.tasks().hedge_errors(task)
            }
            AfterEmptied::End(TaskEnding::Exited(1..)) => self.core.tasks().hedge_errors(task),
            _ => None,
        };
        if let Some(sinks) = dropped {
            return Committer::new(self.core).query_output(task, sinks, after);
        }
        match after {
            AfterEmptied::EndFinally(thrown) => self.finally_failed(task, thrown),
            AfterEmptied::NextGroup => self.continue_cleanup(task),
            AfterEmptied::Commit(then) => Committer::new(self.core).view_is_empty(task, then),
            AfterEmptied::Leave(ending) => Flow::Exiting(ending),
            AfterEmptied::Throw(thrown, scope) => {
                task.scope = scope;
                Flow::Throw(thrown)
            }
            AfterEmptied::Clean(cancellation) => self.begin_cleanup(task, *cancellation),
            AfterEmptied::Fail(thrown) => Flow::AttemptFailed(thrown),
            AfterEmptied::End(ending) => Flow::Exited(ending),
            AfterEmptied::Finish(outcome) => Flow::Finish(outcome),
        }
    }
}
