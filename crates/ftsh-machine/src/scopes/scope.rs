//! Families of processes: what belongs to an attempt, a branch or the script, and how it is emptied.

use std::time::Duration;

use crate::channels::Passed;
use crate::effect::{Effect, ScopeId};
use crate::scopes::tree::Gone;
use crate::tasks::core::Core;
use crate::tasks::flow::Flow;
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::tasks::timer::Timer;
use crate::unwind::Unwinder;

impl Core {
    /// Makes a scope inside `parent`. The driver hears of it with the first command in it.
    pub(crate) fn new_scope(&mut self, parent: Option<ScopeId>) -> ScopeId {
        let id = match parent {
            Some(_) => ScopeId(self.requests.next_id()),
            None => ScopeId::SCRIPT,
        };
        self.scopes.add(id, parent);
        id
    }

    /// Tells the driver of a scope, and first of those around it.
    pub(crate) fn open_scope(&mut self, scope: ScopeId) {
        for (scope, parent, pass) in self.scopes.open(scope) {
            self.requests.push(Effect::OpenScope { scope, parent, pass });
        }
    }

    /// Ends a scope that succeeded: what it left running belongs to the one around it.
    pub(crate) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.scopes.note_passed(scope, Passed::Succeeded);
        self.merge(scope, into);
    }

    /// Has what runs in a scope belong to the one around it.
    pub(crate) fn merge(&mut self, scope: ScopeId, into: ScopeId) {
        if self.scopes.is_opened(scope) {
            self.requests.push(Effect::HandOver { scope, into });
        }
        self.forget_scope(scope);
    }

    /// Has what runs in the scopes inside another one belong to that, but for those that are being
    /// emptied.
    pub(crate) fn merge_inner(&mut self, scope: ScopeId) {
        for inner in self.scopes.inner(scope) {
            if self.scopes.goes_on(inner) {
                self.merge(inner, scope);
            }
        }
    }

    /// Forgets a scope that is over, and gives back what it has of channels. The script's own is there
    /// again at once: a session goes on in it.
    pub(crate) fn forget_scope(&mut self, scope: ScopeId) {
        let Gone { timers, passes } = self.scopes.remove(scope);
        self.scheduler.cancel(timers);
        for pass in passes {
            self.requests.push(Effect::Leave(pass.id, pass.passed));
        }
        if scope == ScopeId::SCRIPT {
            self.new_scope(None);
        }
    }

    /// Tells everything in the scopes inside another one to end, except for those that are `spared` or
    /// around them.
    pub(crate) fn terminate_beside(&mut self, scope: ScopeId, spared: &[ScopeId]) {
        for inner in self.scopes.inner(scope) {
            if spared.iter().any(|spared| self.scopes.is_around(inner, *spared)) {
                if !spared.contains(&inner) {
                    self.terminate_beside(inner, spared);
                }
            } else if self.scopes.goes_on(inner) {
                self.terminate(inner, self.config.kill_timeout / 2);
            }
        }
    }

    /// Tells everything in a scope to end; whether there may be anything.
    fn terminate(&mut self, scope: ScopeId, grace: Duration) -> bool {
        if !self.scopes.is_opened(scope) {
            return false;
        }
        self.requests.push(Effect::Terminate(scope));
        let grace = self.scheduler.arm(self.now() + grace, Timer::KillGrace(scope));
        let before = self.scopes.terminate(scope, grace);
        self.scheduler.cancel(before);
        true
    }

    /// What was told to end had its time.
    pub(crate) fn grace_passed(&mut self, scope: ScopeId) {
        self.scopes.end_grace(scope);
        self.kill(scope);
    }

    /// Kills what is left of a scope. A run that was told to end does so even if something can't be
    /// killed.
    pub(crate) fn kill(&mut self, scope: ScopeId) {
        let strong = self.config.kill_strong && !self.scopes.is_interrupted(scope);
        self.requests.push(Effect::Kill { scope, strong });
    }
}

impl Unwinder<'_> {
    /// Empties a scope of the task, then goes on with `after`.
    pub(crate) fn empty(&mut self, task: &mut Task, scope: ScopeId, after: AfterEmptied) -> Flow {
        self.empty_within(task, scope, self.core.config.kill_timeout, after)
    }

    /// The same with this time from SIGTERM to SIGKILL.
    pub(crate) fn empty_within(
        &mut self,
        task: &mut Task,
        scope: ScopeId,
        grace: Duration,
        after: AfterEmptied,
    ) -> Flow {
        if self.core.terminate(scope, grace) {
            task.since = self.core.now();
            Flow::Wait(State::Emptying(scope, after))
        } else {
            self.core.forget_scope(scope);
            self.emptied(task, after)
        }
    }

    /// Goes on with a task whose scope is empty.
    pub(crate) fn emptied(&mut self, task: &mut Task, after: AfterEmptied) -> Flow {
        if after.is_for_a_try()
            && let Some(dropped) = task.top_try().and_then(|frame| frame.dropped.as_ref())
        {
            let told = dropped.told();
            return self.core.committer().ask_output(task, told, after);
        }
        match after {
            AfterEmptied::EndFinally(thrown) => self.finally_failed(task, thrown),
            AfterEmptied::NextGroup => self.clean(task),
            AfterEmptied::Leave(ending) => Flow::Exiting(ending),
            AfterEmptied::Throw(thrown, scope) => {
                task.scope = scope;
                Flow::Throw(thrown)
            }
            AfterEmptied::Clean(cleaning) => self.begin_cleaning(task, *cleaning),
            AfterEmptied::Fail(thrown) => Flow::AttemptFailed(thrown),
            AfterEmptied::End(ending) => Flow::Exited(ending),
            AfterEmptied::Finish(outcome) => Flow::Finish(outcome),
        }
    }
}
