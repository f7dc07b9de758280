//! Scopes: creation, handing over and emptying of process families.

use std::time::Duration;

use super::{Core, Flow, scopes::RemovedScopes};
use crate::channels::Passed;
use crate::effect::{Effect, Query, ScopeId};
use crate::scheduler::Timer;
use crate::tasks::{AfterEmptied, Task, TaskState};
use ftsh_syntax::signal::Signal;

impl Core {
    /// Creates a scope inside `parent`. The driver learns of the scope with its first command.
    pub(crate) fn new_scope(&mut self, parent: Option<ScopeId>) -> ScopeId {
        let id = match parent {
            Some(_) => ScopeId(self.next_id()),
            None => ScopeId::SCRIPT,
        };
        self.scopes.add(id, parent);
        id
    }

    /// Announces a scope to the driver, after its parents.
    pub(crate) fn open_scope(&mut self, scope: ScopeId) {
        for (scope, parent, pass) in self.scopes.open(scope) {
            self.request(Effect::OpenScope { scope, parent, pass });
            if let Some(watch) = self.scopes.watch(scope).map(|watch| watch.conditions) {
                self.request(Effect::Watch { scope, watch });
            }
        }
    }

    /// Ends a successful scope. Processes left running move to the enclosing scope.
    pub(crate) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.scopes.note_passed(scope, Passed::Succeeded);
        self.merge(scope, into);
    }

    /// Moves the processes of a scope to the enclosing scope.
    pub(crate) fn merge(&mut self, scope: ScopeId, into: ScopeId) {
        if self.scopes.is_opened(scope) {
            self.request(Effect::HandOver { scope, into });
        }
        self.forget_scope(scope);
    }

    /// Moves the processes of the inner scopes to `scope`, except for scopes being emptied.
    pub(crate) fn merge_inner(&mut self, scope: ScopeId) {
        for inner in self.scopes.nesting().children(scope).collect::<Vec<_>>() {
            if self.scopes.goes_on(inner) {
                self.merge(inner, scope);
            }
        }
    }

    /// Removes an ended scope, and returns its passes to channels. The script's own scope is
    /// created again at once, for the rest of a session.
    pub(crate) fn forget_scope(&mut self, scope: ScopeId) {
        let RemovedScopes { timers, passes } = self.scopes.remove(scope);
        self.scheduler.cancel(timers);
        for pass in passes {
            self.request(Effect::Leave(pass.id, pass.passed));
        }
        if scope == ScopeId::SCRIPT {
            self.new_scope(None);
        }
    }

    /// Terminates the inner scopes of a scope, except for `spared` scopes and their parents.
    pub(crate) fn terminate_beside(&mut self, scope: ScopeId, spared: &[ScopeId]) {
        for inner in self.scopes.nesting().children(scope).collect::<Vec<_>>() {
            if spared.iter().any(|spared| self.scopes.nesting().is_inside(*spared, inner)) {
                if !spared.contains(&inner) {
                    self.terminate_beside(inner, spared);
                }
            } else if self.scopes.goes_on(inner) {
                self.terminate(inner, self.config.kill_timeout / 2);
            }
        }
    }

    /// Terminates a scope. Returns false if the scope never had processes.
    pub(crate) fn terminate(&mut self, scope: ScopeId, grace: Duration) -> bool {
        if !self.scopes.is_opened(scope) {
            return false;
        }
        let signals = self.scopes.take_signals(scope);
        // After a signal that no process survives, and without time between the signals, SIGTERM
        // has no purpose.
        let has_gentle = signals.iter().any(|(_, signal)| *signal != Signal::Kill);
        let escalates = has_gentle && !(grace / 2).is_zero();
        for (scope, signal) in signals {
            self.request(Effect::SetSignal(scope, signal));
        }
        self.request(Effect::Terminate(scope));
        if escalates {
            // SIGTERM then has the same time as the gentle signal before it.
            let timer = self.scheduler.arm(self.now() + grace / 2, Timer::Escalation(scope));
            let before = self.scopes.set_escalation(scope, Some(timer));
            self.scheduler.cancel(before);
        }
        let grace = self.scheduler.arm(self.now() + grace, Timer::KillGrace(scope));
        let before = self.scopes.terminate(scope, grace);
        self.scheduler.cancel(before);
        true
    }

    /// Ends what a success has left running in a scope, after the names are known for the log.
    pub(crate) fn end_leftovers(
        &mut self,
        task: &Task,
        scope: ScopeId,
        then: AfterEmptied,
    ) -> Flow {
        if !self.scopes.is_opened(scope) {
            return Flow::Empty(scope, then);
        }
        let operation = self.query(task, Query::Leftovers(scope));
        Flow::Wait(TaskState::ListingLeftovers(operation, scope, then))
    }

    /// Sends SIGTERM after the signal of `signal NAME`.
    pub(crate) fn escalate(&mut self, scope: ScopeId) {
        self.scopes.set_escalation(scope, None);
        self.request(Effect::Escalate(scope));
    }

    /// Handles the end of the kill timeout.
    pub(crate) fn grace_passed(&mut self, scope: ScopeId) {
        self.scopes.end_grace(scope);
        self.kill(scope);
    }

    /// Kills the processes left in a scope. An interrupted run ends even if a process cannot be
    /// killed.
    pub(crate) fn kill(&mut self, scope: ScopeId) {
        let escalation = self.scopes.set_escalation(scope, None);
        self.scheduler.cancel(escalation);
        let strong = self.config.kill_strong && !self.scopes.is_interrupted(scope);
        self.request(Effect::Kill { scope, strong });
    }
}
