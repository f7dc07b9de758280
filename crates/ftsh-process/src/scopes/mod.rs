//! Scopes: families of processes that end together.
//!
//! [`ScopeTree`] receives events (scopes open, commands start and end, processes are found) and
//! returns actions (processes to signal, results to report). It starts and signals no processes
//! itself, so tests can try any order of events.

mod containment;
mod emptying;
mod groups;
mod subreaper;
mod system;
mod terminate;
#[cfg(test)]
mod tests;
mod tree;

use std::time::Instant;

use bstr::BString;

pub(crate) use self::system::{EndStep, EndedCommand, OrphanList, ScopeAction, ScopeQueries};

use self::containment::Containment;
use self::groups::Groups;
use self::subreaper::Subreaper;
use self::tree::Tree;
use crate::tag::LimitGrants;
use ftsh_machine::effect::{ProcessId, ScopeId, Signal};

/// All scopes with their processes, and the progress of emptying.
pub(crate) struct ScopeTree {
    tree: Tree,
    containment: Box<dyn Containment>,
    /// True if a process of a command has ended since the last scope was opened.
    has_ended: bool,
    /// Validity of the time limits that commands of the scopes inherit.
    pub grants: LimitGrants,
}

impl ScopeTree {
    /// Creates a tree with only the script's scope. `adopts` is true if this process is a
    /// subreaper.
    pub(crate) fn new(adopts: bool) -> Self {
        let containment: Box<dyn Containment> =
            if adopts { Box::new(Subreaper::default()) } else { Box::new(Groups::default()) };
        Self { tree: Tree::new(), containment, has_ended: false, grants: LimitGrants::default() }
    }

    /// True if orphans become children of this process.
    pub(crate) fn adopts(&self) -> bool {
        self.containment.adopts()
    }

    /// Returns the next action, if any.
    pub(crate) fn take_action(&mut self) -> Option<ScopeAction> {
        self.tree.take_action()
    }

    /// Opens a scope inside another. Existing orphans are assigned to scopes first, so none goes to
    /// the new scope.
    pub(crate) fn open(
        &mut self,
        scope: ScopeId,
        parent: ScopeId,
        system: &mut dyn ScopeQueries,
        now: Instant,
    ) {
        if std::mem::take(&mut self.has_ended) {
            self.containment.adopt(&mut self.tree, system, now);
        }
        self.tree.open(scope, parent);
    }

    /// Opens a scope outside all others.
    pub(crate) fn open_apart(&mut self, scope: ScopeId) {
        self.tree.open_apart(scope);
    }

    /// Sets the first signal for the processes of an open scope.
    pub(crate) fn set_signal(&mut self, scope: ScopeId, signal: Signal) {
        self.tree.set_signal(scope, signal);
    }

    /// Takes a step towards the end of everything in a scope.
    pub(crate) fn end(&mut self, scope: ScopeId, step: EndStep, now: Instant) {
        match step {
            EndStep::First => self.terminate(scope, now),
            EndStep::Escalate => self.escalate(scope),
            EndStep::Kill { strong } => self.kill(scope, strong, now),
        }
    }

    /// Closes a scope and moves its running processes to another scope.
    pub(crate) fn hand_over(
        &mut self,
        scope: ScopeId,
        into: ScopeId,
        system: &mut dyn ScopeQueries,
    ) {
        if scope == into {
            return;
        }
        let Some(old) = self.remove(scope, into) else { return };
        // Without child processes, names of closed scopes are no longer needed.
        if self.containment.adopts() && self.tree.remembers_many() && system.has_no_children() {
            self.tree.forget_names();
        }
        self.tree.adopt_scope(into, old);
        self.forget_some_groups(into, system);
    }

    fn remove(&mut self, scope: ScopeId, heir: ScopeId) -> Option<tree::ScopeMembers> {
        let old = self.tree.remove(scope, heir)?;
        self.grants.end(scope);
        if scope != ScopeId::SCRIPT {
            self.containment.moved(scope, heir);
        }
        Some(old)
    }

    fn forget_some_groups(&mut self, scope: ScopeId, system: &mut dyn ScopeQueries) {
        if self.tree.has_many_groups(scope) {
            self.tree.forget_dead_groups(scope, system);
        }
    }

    /// Registers a command that is about to start.
    pub(crate) fn begin(&mut self, scope: ScopeId, process: ProcessId) {
        self.tree.begin(scope, process);
    }

    /// Records the process of a command. Returns false if the machine no longer waits for the
    /// command.
    pub(crate) fn started(&mut self, process: ProcessId, pid: i32) -> bool {
        let Some(member) = self.tree.start(process, pid) else { return false };
        if !member.is_awaited {
            self.tree.act(ScopeAction::KillGroup(pid));
        }
        self.catch_up(member.scope, pid);
        member.is_awaited
    }

    /// Records the end of a command, after its process, if any, was reaped.
    pub(crate) fn ended(
        &mut self,
        process: ProcessId,
        system: &mut dyn ScopeQueries,
    ) -> Option<EndedCommand> {
        let member = self.tree.end(process, system)?;
        self.has_ended |= member.pid.is_some();
        self.forget_some_groups(member.scope, system);
        let heard = self.tree.emptying_above(member.scope).is_empty();
        Some(EndedCommand { scope: member.scope, is_awaited: member.is_awaited && heard })
    }

    /// Reaps ended orphans. Returns the living ones, or none if they cannot be listed now.
    pub(crate) fn reap(&mut self, system: &mut dyn ScopeQueries) -> Option<Vec<i32>> {
        self.containment.reap(&mut self.tree, system)
    }

    /// Assigns new orphans to scopes.
    pub(crate) fn adopt(&mut self, system: &mut dyn ScopeQueries, now: Instant) {
        self.containment.adopt(&mut self.tree, system, now);
    }

    /// Returns a scope and all scopes inside.
    pub(crate) fn inside(&self, scope: ScopeId) -> Vec<ScopeId> {
        self.tree.subtree(scope)
    }

    /// Returns processes of a scope and of the scopes inside from which all others descend: the
    /// running commands and the known orphans. Without a subreaper, orphans are missing.
    pub(crate) fn roots(&self, scope: ScopeId, system: &mut dyn ScopeQueries) -> Vec<i32> {
        let mut roots = self.tree.running_in(&self.tree.subtree(scope));
        if self.adopts() {
            let orphans = self.containment.others(&self.tree, system, scope);
            roots.extend(orphans.into_iter().map(|orphan| orphan.pid));
        }
        roots
    }

    /// Returns the names of these processes, after orphans were assigned to scopes.
    pub(crate) fn names(&mut self, scope: ScopeId, system: &mut dyn ScopeQueries) -> Vec<BString> {
        self.adopt(system, Instant::now());
        let roots = self.roots(scope, system);
        roots.into_iter().map(|pid| system.name(pid).into()).collect()
    }

    /// True if any scope is being emptied.
    pub(crate) fn is_emptying(&self) -> bool {
        !self.tree.emptying.is_empty()
    }

    /// Marks all scopes being emptied for a check, since an event may have been missed.
    pub(crate) fn suspect_all(&mut self) {
        self.tree.suspect_all();
    }

    /// Returns a scope and the scopes around it, innermost first.
    pub(crate) fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        self.tree.around(scope)
    }
}
