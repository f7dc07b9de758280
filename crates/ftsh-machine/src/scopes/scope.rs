//! Families of processes: what belongs to an attempt, a branch or the script, and how it is emptied.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Machine;
use crate::atomic::transaction::Scratch;
use crate::channels::Passed;
use crate::effect::{Effect, PassId, ScopeId};
use crate::tasks::flow::Flow;
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::tasks::timer::{Timer, TimerKey};
use ftsh_syntax::ast::Name;

/// The scopes in use.
#[derive(Debug, Default)]
pub struct Scopes {
    scopes: BTreeMap<ScopeId, Scope>,
}

#[derive(Debug)]
struct Scope {
    parent: Option<ScopeId>,
    /// Whether the driver knows it: a command ran in it or below it.
    opened: bool,
    /// Whether all in it was told to end.
    ending: bool,
    /// The scopes in it.
    inner: BTreeSet<ScopeId>,
    grace: Option<TimerKey>,
    /// The directory of the attempt that it is of, removed when nothing runs there any more.
    scratch: Option<Scratch>,
    /// How the attempt that it belongs to has gone through a channel.
    pass: Option<Box<Pass>>,
}

/// An attempt's way through a channel.
#[derive(Debug)]
pub struct Pass {
    /// What the driver knows it by.
    pub id: PassId,
    /// The channel.
    pub channel: Name,
    /// What became of the attempt, as far as that is known.
    pub passed: Passed,
}

/// What goes with scopes.
#[derive(Default)]
struct Gone {
    timers: Vec<TimerKey>,
    passes: Vec<Pass>,
}

impl Scopes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.scopes.len()
    }

    /// An attempt has a directory, for as long as something of it may run.
    pub fn keep(&mut self, scope: ScopeId, scratch: Scratch) {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.scratch = Some(scratch);
        }
    }

    fn is_opened(&self, scope: ScopeId) -> bool {
        self.scopes.get(&scope).is_some_and(|scope| scope.opened)
    }

    /// Gives a pass to the scope of the attempt that has it.
    pub fn give(&mut self, scope: ScopeId, pass: Option<Pass>) {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.pass = pass.map(Box::new);
        }
    }

    /// The pass of a scope.
    pub fn pass(&self, scope: ScopeId) -> Option<&Pass> {
        self.scopes.get(&scope)?.pass.as_deref()
    }

    /// The same, to be changed.
    pub fn pass_mut(&mut self, scope: ScopeId) -> Option<&mut Pass> {
        self.scopes.get_mut(&scope)?.pass.as_deref_mut()
    }

    /// Forgets all ways through channels: the scopes of the attempts that had gone through.
    pub fn lose_passes(&mut self) -> BTreeSet<ScopeId> {
        let scopes = self.scopes.iter_mut();
        scopes.filter_map(|(id, scope)| scope.pass.take().map(|_| *id)).collect()
    }

    /// Forgets a scope and those in it.
    fn remove(&mut self, scope: ScopeId) -> Gone {
        let mut gone = Gone::default();
        let mut left = vec![scope];
        while let Some(id) = left.pop() {
            let Some(scope) = self.scopes.remove(&id) else { continue };
            gone.timers.extend(scope.grace);
            gone.passes.extend(scope.pass.map(|pass| *pass));
            left.extend(scope.inner);
            if let Some(parent) = scope.parent.and_then(|parent| self.scopes.get_mut(&parent)) {
                parent.inner.remove(&id);
            }
        }
        gone
    }
}

impl Machine {
    /// Makes a scope inside `parent`. The driver hears of it with the first command in it.
    pub(crate) fn new_scope(&mut self, parent: Option<ScopeId>) -> ScopeId {
        let id = match parent {
            Some(_) => ScopeId(self.next_id()),
            None => ScopeId::SCRIPT,
        };
        let scope = Scope {
            parent,
            opened: false,
            ending: false,
            inner: BTreeSet::new(),
            grace: None,
            scratch: None,
            pass: None,
        };
        self.scopes.scopes.insert(id, scope);
        if let Some(parent) = parent.and_then(|parent| self.scopes.scopes.get_mut(&parent)) {
            parent.inner.insert(id);
        }
        id
    }

    /// The scope around another one.
    pub(crate) fn scope_around(&self, scope: ScopeId) -> Option<ScopeId> {
        self.scopes.scopes.get(&scope)?.parent
    }

    /// Tells the driver of a scope, and first of those around it.
    pub(crate) fn open_scope(&mut self, scope: ScopeId) {
        let mut chain = Vec::new();
        let mut next = Some(scope);
        while let Some(id) = next {
            let Some(scope) = self.scopes.scopes.get_mut(&id) else { break };
            if std::mem::replace(&mut scope.opened, true) {
                break;
            }
            chain.push((id, scope.parent, scope.pass.as_ref().map(|pass| pass.id)));
            next = scope.parent;
        }
        for (scope, parent, pass) in chain.into_iter().rev() {
            let Some(parent) = parent else { continue };
            self.effects.push_back(Effect::OpenScope { scope, parent, pass });
        }
    }

    /// Ends a scope that succeeded: what it left running belongs to the one around it.
    pub(crate) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.note_passed(scope, Passed::Succeeded);
        self.merge(scope, into);
    }

    /// Has what runs in a scope belong to the one around it.
    pub(crate) fn merge(&mut self, scope: ScopeId, into: ScopeId) {
        if self.scopes.is_opened(scope) {
            self.effects.push_back(Effect::HandOver { scope, into });
        }
        self.forget_scope(scope);
    }

    /// Has what runs in the scopes inside another one belong to that, but for those that are being
    /// emptied.
    pub(crate) fn merge_inner(&mut self, scope: ScopeId) {
        let inner = self.scopes.scopes.get(&scope).map(|scope| scope.inner.clone());
        for inner in inner.unwrap_or_default() {
            if self.scopes.scopes.get(&inner).is_some_and(|inner| !inner.ending) {
                self.merge(inner, scope);
            }
        }
    }

    /// Forgets a scope that is over, and gives back what it has of channels. The script's own is there
    /// again at once: a session goes on in it.
    fn forget_scope(&mut self, scope: ScopeId) {
        let Gone { timers, passes } = self.scopes.remove(scope);
        self.timers.cancel(timers);
        self.effects.extend(passes.into_iter().map(|pass| Effect::Leave(pass.id, pass.passed)));
        if scope == ScopeId::SCRIPT {
            self.new_scope(None);
        }
    }

    /// Empties a scope of the task, then goes on with `after`.
    pub(crate) fn empty(&mut self, task: &mut Task, scope: ScopeId, after: AfterEmptied) -> Flow {
        self.empty_within(task, scope, self.config.kill_timeout, after)
    }

    /// The same with this time from SIGTERM to SIGKILL.
    pub(crate) fn empty_within(
        &mut self,
        task: &mut Task,
        scope: ScopeId,
        grace: Duration,
        after: AfterEmptied,
    ) -> Flow {
        if self.terminate(scope, grace) {
            task.since = self.now;
            Flow::Wait(State::Emptying(scope, after))
        } else {
            self.forget_scope(scope);
            self.emptied(task, after)
        }
    }

    /// Tells everything in the scopes inside another one to end, except for those that are `spared` or
    /// around them.
    pub(crate) fn terminate_beside(&mut self, scope: ScopeId, spared: &[ScopeId]) {
        let inner = self.scopes.scopes.get(&scope).map(|scope| scope.inner.clone());
        for inner in inner.unwrap_or_default() {
            if spared.iter().any(|spared| self.is_around(inner, *spared)) {
                if !spared.contains(&inner) {
                    self.terminate_beside(inner, spared);
                }
            } else if self.scopes.scopes.get(&inner).is_some_and(|inner| !inner.ending) {
                self.terminate(inner, self.config.kill_timeout / 2);
            }
        }
    }

    /// Returns true if a scope is another one or around it.
    fn is_around(&self, outer: ScopeId, inner: ScopeId) -> bool {
        std::iter::successors(Some(inner), |scope| self.scope_around(*scope))
            .any(|scope| scope == outer)
    }

    /// Tells everything in a scope to end; whether there may be anything.
    fn terminate(&mut self, scope: ScopeId, grace: Duration) -> bool {
        if !self.scopes.is_opened(scope) {
            return false;
        }
        self.effects.push_back(Effect::Terminate(scope));
        let grace = self.timers.arm(self.now + grace, Timer::KillGrace(scope));
        if let Some(entry) = self.scopes.scopes.get_mut(&scope) {
            entry.ending = true;
            let before = entry.grace.replace(grace);
            self.timers.cancel(before);
        }
        true
    }

    /// What was told to end had its time.
    pub(crate) fn grace_passed(&mut self, scope: ScopeId) {
        if let Some(entry) = self.scopes.scopes.get_mut(&scope) {
            entry.grace = None;
        }
        self.kill(scope);
    }

    /// Whether what is left of a scope has been killed already, but for what can't be.
    pub(crate) fn is_killed(&self, scope: ScopeId) -> bool {
        self.scopes.scopes.get(&scope).is_some_and(|scope| scope.grace.is_none())
    }

    /// Kills what is left of a scope. A run that was told to end does so even if something can't be
    /// killed.
    pub(crate) fn kill(&mut self, scope: ScopeId) {
        let strong = self.config.kill_strong && self.interrupted != Some(scope);
        self.effects.push_back(Effect::Kill { scope, strong });
    }

    /// The driver says that nothing is left of a scope.
    pub(crate) fn scope_emptied(&mut self, scope: ScopeId) {
        self.interrupted.take_if(|interrupted| *interrupted == scope);
        self.forget_scope(scope);
        let waits =
            |task: &Task| matches!(task.state, State::Emptying(waited, _) if waited == scope);
        let Some(owner) = self.emptying.remove(&scope) else { return };
        if !self.tasks.get(&owner).is_some_and(|task| waits(task)) {
            return;
        }
        self.resume(owner, |machine, task| {
            match std::mem::replace(&mut task.state, State::Ready) {
                State::Emptying(_, after) => machine.emptied(task, after),
                _ => Flow::Throw(task.broken("a scope is empty that nothing waits for")),
            }
        });
    }

    /// Goes on with a task whose scope is empty.
    pub(crate) fn emptied(&mut self, task: &mut Task, after: AfterEmptied) -> Flow {
        if after.is_for_a_try()
            && let Some(dropped) = task.top_try().and_then(|frame| frame.dropped.as_ref())
        {
            let told = dropped.told();
            return self.ask_output(task, told, after);
        }
        match after {
            AfterEmptied::EndFinally(thrown) => self.finally_failed(task, thrown),
            AfterEmptied::NextGroup => self.clean(task),
            AfterEmptied::Leave(ending) => Flow::End(ending),
            AfterEmptied::Throw(thrown, scope) => {
                task.scope = scope;
                Flow::Throw(thrown)
            }
            AfterEmptied::Clean(cleaning) => self.begin_cleaning(task, *cleaning),
            AfterEmptied::Fail(thrown) => self.attempt_failed(task, thrown),
            AfterEmptied::End(ending) => Flow::Ended(ending),
            AfterEmptied::Finish(outcome) => {
                self.outcome = Some(outcome);
                Flow::Wait(State::Ready)
            }
        }
    }
}
