//! Scopes, and the tasks waiting for scopes to end.

use std::collections::{BTreeMap, BTreeSet};

use crate::channels::Passed;
use crate::effect::{PassId, ScopeId, TaskId, ViewId, Watch};
use crate::endings::{Retry, Thrown};
use crate::nesting::Nesting;
use crate::outcome::FailureKind;
use crate::resources::ResourceHandle;
use crate::scheduler::TimerKey;
use crate::transactions::Scratch;
use ftsh_syntax::ast::Name;
use ftsh_syntax::signal::Signal;

/// Scopes in use.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    states: BTreeMap<ScopeId, ScopeState>,
    nesting: Nesting,
    /// Tasks waiting for the end of a scope.
    emptying: BTreeMap<ScopeId, TaskId>,
    /// Scope emptied because of a signal.
    interrupted: Option<ScopeId>,
    /// First signal for the processes of the script's own scope.
    root_signal: Signal,
}

#[derive(Debug, Default)]
struct ScopeState {
    /// True if the driver knows the scope, because a command ran inside.
    opened: bool,
    /// True if the scope was terminated.
    ending: bool,
    /// First signal for the processes of a canceled scope.
    signal: Signal,
    /// True if the driver knows the signal.
    signal_sent: bool,
    /// Timer of SIGTERM after another signal.
    escalation: Option<TimerKey>,
    /// Timer of the kill timeout.
    grace: Option<TimerKey>,
    /// Scratch directory of the scope's attempt, removed after the scope has ended.
    scratch: Option<Scratch>,
    /// View of the scope's attempt, dropped after the scope has ended.
    view: Option<ResourceHandle<ViewId>>,
    /// Pass of the scope's attempt through a channel.
    pass: Option<Box<ChannelPass>>,
    /// Conditions on the processes of the scope.
    watch: Option<Box<ScopeWatch>>,
}

/// Conditions on the processes of a scope, and the work that ends by them.
#[derive(Debug)]
pub(crate) struct ScopeWatch {
    /// Conditions.
    pub conditions: Watch,
    /// Task of the work.
    pub owner: TaskId,
    /// Id of the `try` whose attempt ends; `None` if the whole task ends.
    pub attempt: Option<u64>,
}

/// Pass of an attempt through a channel.
#[derive(Debug)]
pub(crate) struct ChannelPass {
    /// Id of the pass.
    pub id: PassId,
    /// Name of the channel.
    pub channel: Name,
    /// Result of the attempt, as far as known.
    pub passed: Passed,
}

/// Resources of removed scopes.
#[derive(Default)]
pub(crate) struct RemovedScopes {
    /// Armed timers.
    pub timers: Vec<TimerKey>,
    /// Passes through channels.
    pub passes: Vec<ChannelPass>,
}

impl Scopes {
    /// Returns the number of scopes.
    pub(crate) fn count(&self) -> usize {
        self.states.len()
    }

    /// Adds a scope inside `parent`, with the signal of the parent.
    pub(crate) fn add(&mut self, id: ScopeId, parent: Option<ScopeId>) {
        let signal = parent.map_or(self.root_signal, |parent| self.signal(parent));
        self.states.insert(id, ScopeState { signal, ..ScopeState::default() });
        if let Some(parent) = parent {
            self.nesting.insert(id, parent);
        }
    }

    /// Marks a scope and its parents as known to the driver. Returns the newly known scopes with
    /// parent and pass, outer scopes first.
    pub(crate) fn open(&mut self, scope: ScopeId) -> Vec<(ScopeId, ScopeId, Option<PassId>)> {
        let mut opened = Vec::new();
        for id in self.nesting.around(scope) {
            let scope = self.states.get_mut(&id).filter(|scope| !scope.opened);
            let Some(scope) = scope else { break };
            scope.opened = true;
            let pass = scope.pass.as_ref().map(|pass| pass.id);
            opened.extend(self.nesting.parent(id).map(|parent| (id, parent, pass)));
        }
        opened.reverse();
        opened
    }

    /// Returns the nesting of the scopes.
    pub(crate) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// Returns true if a scope exists and has not been terminated.
    pub(crate) fn goes_on(&self, scope: ScopeId) -> bool {
        self.states.get(&scope).is_some_and(|scope| !scope.ending)
    }

    /// Returns the first signal for the processes of a scope.
    pub(crate) fn signal(&self, scope: ScopeId) -> Signal {
        self.states.get(&scope).map_or(self.root_signal, |scope| scope.signal)
    }

    /// Sets the first signal for the processes of a scope, in which nothing ran yet.
    pub(crate) fn set_signal(&mut self, scope: ScopeId, signal: Signal) {
        if let Some(scope) = self.states.get_mut(&scope) {
            scope.signal = signal;
        }
    }

    /// Sets the first signal for the processes of the script's own scope.
    pub(crate) fn set_root_signal(&mut self, signal: Signal) {
        self.root_signal = signal;
        self.set_signal(ScopeId::SCRIPT, signal);
    }

    /// Returns the scopes known to the driver, among a scope and its inner scopes, whose signals the
    /// driver must still learn. Outer scopes come first.
    pub(crate) fn take_signals(&mut self, scope: ScopeId) -> Vec<(ScopeId, Signal)> {
        let mut signals = Vec::new();
        for id in self.nesting.within(scope) {
            let Some(scope) = self.states.get_mut(&id) else { continue };
            let is_usual = scope.signal == Signal::default();
            if scope.opened && !is_usual && !std::mem::replace(&mut scope.signal_sent, true) {
                signals.push((id, scope.signal));
            }
        }
        signals
    }

    /// Sets the timer of SIGTERM. Returns the previous timer.
    pub(crate) fn set_escalation(
        &mut self,
        scope: ScopeId,
        timer: Option<TimerKey>,
    ) -> Option<TimerKey> {
        std::mem::replace(&mut self.states.get_mut(&scope)?.escalation, timer)
    }

    /// Marks a scope as terminated, with the timer of its kill timeout. Returns the previous timer.
    pub(crate) fn terminate(&mut self, scope: ScopeId, grace: TimerKey) -> Option<TimerKey> {
        let scope = self.states.get_mut(&scope)?;
        scope.ending = true;
        scope.grace.replace(grace)
    }

    /// Marks the kill timeout of a scope as passed.
    pub(crate) fn end_grace(&mut self, scope: ScopeId) {
        if let Some(scope) = self.states.get_mut(&scope) {
            scope.grace = None;
        }
    }

    /// Returns true if a scope is emptied because of a signal.
    pub(crate) fn is_interrupted(&self, scope: ScopeId) -> bool {
        self.interrupted == Some(scope)
    }

    /// Returns the number of scopes for whose end a task waits.
    pub(crate) fn emptying(&self) -> usize {
        self.emptying.len()
    }

    /// Makes a task wait for the end of a scope.
    pub(crate) fn await_end(&mut self, scope: ScopeId, task: TaskId) {
        self.emptying.insert(scope, task);
    }

    /// Ends the wait for the end of a scope.
    pub(crate) fn forget_wait(&mut self, scope: ScopeId) {
        self.emptying.remove(&scope);
    }

    /// Marks a scope as empty. Returns the task waiting for its end.
    pub(crate) fn end(&mut self, scope: ScopeId) -> Option<TaskId> {
        self.interrupted.take_if(|interrupted| *interrupted == scope);
        self.emptying.remove(&scope)
    }

    /// Marks a scope as emptied because of a signal.
    pub(crate) fn interrupt(&mut self, scope: ScopeId) {
        self.interrupted = Some(scope);
    }

    /// Keeps a scratch directory for the lifetime of a scope.
    pub(crate) fn set_scratch(&mut self, scope: ScopeId, scratch: Scratch) {
        if let Some(scope) = self.states.get_mut(&scope) {
            scope.scratch = Some(scratch);
        }
    }

    /// Keeps a view for the lifetime of a scope.
    pub(crate) fn set_view(&mut self, scope: ScopeId, view: ResourceHandle<ViewId>) {
        if let Some(scope) = self.states.get_mut(&scope) {
            scope.view = Some(view);
        }
    }

    /// Returns true if the driver knows a scope.
    pub(crate) fn is_opened(&self, scope: ScopeId) -> bool {
        self.states.get(&scope).is_some_and(|scope| scope.opened)
    }

    /// Gives a pass to an attempt's scope.
    pub(crate) fn set_pass(&mut self, scope: ScopeId, pass: Option<ChannelPass>) {
        if let Some(scope) = self.states.get_mut(&scope) {
            scope.pass = pass.map(Box::new);
        }
    }

    /// Returns the pass of a scope.
    pub(crate) fn pass(&self, scope: ScopeId) -> Option<&ChannelPass> {
        self.states.get(&scope)?.pass.as_deref()
    }

    /// Returns the pass of a scope, mutable.
    pub(crate) fn pass_mut(&mut self, scope: ScopeId) -> Option<&mut ChannelPass> {
        self.states.get_mut(&scope)?.pass.as_deref_mut()
    }

    /// Sets conditions, if any, on the processes of a scope that the driver does not know yet. The
    /// driver watches the scope from its first command on, and reports each condition at most once.
    pub(crate) fn set_watch(&mut self, scope: ScopeId, watch: ScopeWatch) {
        if let Some(scope) = self.states.get_mut(&scope).filter(|_| !watch.conditions.is_empty()) {
            scope.watch = Some(Box::new(watch));
        }
    }

    /// Returns the conditions on a scope that has not been terminated.
    pub(crate) fn watch(&self, scope: ScopeId) -> Option<&ScopeWatch> {
        self.states.get(&scope).filter(|scope| !scope.ending)?.watch.as_deref()
    }

    /// Returns the scopes with conditions that the driver knows.
    pub(crate) fn watched(&self) -> Vec<(ScopeId, Watch)> {
        let known = self.states.iter().filter(|(_, scope)| scope.opened && !scope.ending);
        known.filter_map(|(id, scope)| Some((*id, scope.watch.as_ref()?.conditions))).collect()
    }

    /// Drops all passes. Returns the scopes of their attempts.
    pub(crate) fn lose_passes(&mut self) -> BTreeSet<ScopeId> {
        let scopes = self.states.iter_mut();
        scopes.filter_map(|(id, scope)| scope.pass.take().map(|_| *id)).collect()
    }

    /// Removes a scope with its inner scopes.
    pub(crate) fn remove(&mut self, scope: ScopeId) -> RemovedScopes {
        let mut gone = RemovedScopes::default();
        let mut left = vec![scope];
        while let Some(id) = left.pop() {
            left.extend(self.nesting.children(id));
            self.nesting.remove(id);
            let Some(scope) = self.states.remove(&id) else { continue };
            gone.timers.extend(scope.escalation.into_iter().chain(scope.grace));
            gone.passes.extend(scope.pass.map(|pass| *pass));
        }
        gone
    }

    /// Returns true if the processes left in a scope have already received SIGKILL.
    pub(crate) fn is_killed(&self, scope: ScopeId) -> bool {
        self.states.get(&scope).is_some_and(|scope| scope.grace.is_none())
    }
}

impl Scopes {
    /// Records the result of a scope's attempt, for the attempt's channel.
    pub(crate) fn note_passed(&mut self, scope: ScopeId, passed: Passed) {
        if let Some(pass) = self.pass_mut(scope) {
            pass.passed = passed;
        }
    }

    /// Records the failure of a scope's attempt.
    pub(crate) fn note_failed(&mut self, scope: ScopeId, thrown: &Thrown) {
        let is_failed = match thrown.retry {
            Retry::AsUsual | Retry::Never => thrown.failure.kind != FailureKind::Refused,
            Retry::Deferred(_) | Retry::BrokenPipe => false,
        };
        if is_failed {
            self.note_passed(scope, Passed::Failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes() -> Scopes {
        let mut scopes = Scopes::default();
        scopes.add(ScopeId::SCRIPT, None);
        scopes.add(ScopeId(1), Some(ScopeId::SCRIPT));
        scopes.add(ScopeId(2), Some(ScopeId(1)));
        scopes
    }

    #[test]
    fn outer_scopes_are_announced_first_and_once() {
        let mut scopes = scopes();
        let one = (ScopeId(1), ScopeId::SCRIPT, None);
        assert_eq!(scopes.open(ScopeId(2)), [one, (ScopeId(2), ScopeId(1), None)]);
        assert!(scopes.open(ScopeId(2)).is_empty());
        assert!(scopes.is_opened(ScopeId::SCRIPT));
    }

    #[test]
    fn inner_scopes_inherit_the_signal_that_the_driver_learns_once() {
        let mut scopes = scopes();
        scopes.set_signal(ScopeId(2), Signal::Int);
        scopes.add(ScopeId(3), Some(ScopeId(2)));
        scopes.open(ScopeId(2));
        assert_eq!(scopes.take_signals(ScopeId::SCRIPT), [(ScopeId(2), Signal::Int)]);
        scopes.open(ScopeId(3));
        assert_eq!(scopes.take_signals(ScopeId(1)), [(ScopeId(3), Signal::Int)]);
        assert_eq!(scopes.take_signals(ScopeId(1)), []);
    }

    #[test]
    fn inner_scopes_are_removed_with_the_outer() {
        let mut scopes = scopes();
        let name = Name::from("disk");
        let pass = ChannelPass { id: PassId(3), channel: name, passed: Passed::Neither };
        scopes.set_pass(ScopeId(2), Some(pass));
        let gone = scopes.remove(ScopeId(1));
        assert_eq!(gone.passes.iter().map(|pass| pass.id).collect::<Vec<_>>(), [PassId(3)]);
        assert_eq!((scopes.count(), scopes.nesting().iter().count()), (1, 0));
    }

    #[test]
    fn a_task_waits_for_the_end_of_a_scope() {
        let mut scopes = scopes();
        scopes.await_end(ScopeId(1), TaskId(5));
        scopes.interrupt(ScopeId(1));
        assert!(scopes.is_interrupted(ScopeId(1)));
        assert_eq!((scopes.emptying(), scopes.end(ScopeId(1))), (1, Some(TaskId(5))));
        assert!(!scopes.is_interrupted(ScopeId(1)) && scopes.emptying() == 0);
    }
}
