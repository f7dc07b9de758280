//! Scopes: what is ended together, and how that is done for certain.
//!
//! [`ScopeTree`] is told what happens (scopes open, commands start and end, processes are seen) and says
//! what is to be done (whom to ask to end, whom to kill, what to report). It starts and signals nothing
//! itself, so any order of events can be tried.

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

pub use self::system::{Orphans, System};

use self::containment::Containment;
use self::groups::Groups;
use self::subreaper::Subreaper;
use self::tree::Tree;
use super::marks::Leases;
use ftsh_machine::effect::{ProcessId, ScopeId};
use ftsh_machine::record::LogEvent;

/// What is to be done, in the order in which it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send SIGTERM and SIGCONT to a process or, if negative, to a group.
    Ask(i32),
    /// Send SIGKILL to the group of a command whose scope was gone when it started.
    KillGroup(i32),
    /// Kill processes with all their descendants; answered by [`ScopeTree::killed`].
    KillTrees(ScopeId, Vec<i32>),
    /// Whatever hasn't been started of a command never shall. If it isn't too late for that, it is over.
    Cancel(ProcessId),
    /// A scope is empty, or given up: say so.
    Emptied(ScopeId),
    /// Tell the log.
    Log(LogEvent),
}

/// A command that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedCommand {
    /// Its scope.
    pub scope: ScopeId,
    /// Whether anybody wants to hear of it.
    pub wanted: bool,
}

/// All scopes, what is in them, and how far those have come that are being emptied.
pub struct ScopeTree {
    tree: Tree,
    containment: Box<dyn Containment>,
    /// Whether a process of a command has ended since a scope was last opened.
    has_ended: bool,
    /// How long the limits of scopes count elsewhere.
    pub leases: Leases,
}

impl ScopeTree {
    /// Only the script's scope. `adopts` says whether orphans come to this process.
    pub fn new(adopts: bool) -> Self {
        let containment: Box<dyn Containment> =
            if adopts { Box::new(Subreaper::default()) } else { Box::new(Groups::default()) };
        Self { tree: Tree::new(), containment, has_ended: false, leases: Leases::default() }
    }

    /// Whether orphans come to this process.
    pub fn adopts(&self) -> bool {
        self.containment.adopts()
    }

    /// What is to be done next, if anything is.
    pub fn take_action(&mut self) -> Option<Action> {
        self.tree.take_action()
    }

    /// A new scope inside another one. What came to us before is none of its.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId, system: &mut dyn System, now: Instant) {
        if std::mem::take(&mut self.has_ended) {
            self.containment.adopt(&mut self.tree, system, now);
        }
        self.tree.open(scope, parent);
    }

    /// A new scope that is in no other one.
    pub fn open_apart(&mut self, scope: ScopeId) {
        self.tree.open_apart(scope);
    }

    /// What one scope left running belongs to another one.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId, system: &mut dyn System) {
        if scope == into {
            return;
        }
        let Some(old) = self.remove(scope, into) else { return };
        // Without any process, there is none to be told whose it is.
        if self.containment.adopts() && self.tree.remembers_many() && system.has_no_children() {
            self.tree.forget_names();
        }
        self.tree.inherit(into, old);
        self.forget_some_groups(into, system);
    }

    fn remove(&mut self, scope: ScopeId, heir: ScopeId) -> Option<tree::Scope> {
        let old = self.tree.remove(scope, heir)?;
        self.leases.end(scope);
        if scope != ScopeId::SCRIPT {
            self.containment.moved(scope, heir);
        }
        Some(old)
    }

    fn forget_some_groups(&mut self, scope: ScopeId, system: &mut dyn System) {
        if self.tree.has_many_groups(scope) {
            self.tree.forget_dead_groups(scope, system);
        }
    }

    /// A command begins: it is to be started.
    pub fn begin(&mut self, scope: ScopeId, process: ProcessId) {
        self.tree.begin(scope, process);
    }

    /// A command was started; false if nobody wants to hear of it any more.
    pub fn started(&mut self, process: ProcessId, pid: i32) -> bool {
        let Some(member) = self.tree.start(process, pid) else { return false };
        if !member.wanted {
            self.tree.act(Action::KillGroup(pid));
        }
        self.catch_up(member.scope, pid);
        member.wanted
    }

    /// A command is over, its process waited for if it had one.
    pub fn ended(&mut self, process: ProcessId, system: &mut dyn System) -> Option<EndedCommand> {
        let member = self.tree.end(process)?;
        self.has_ended |= member.pid.is_some();
        self.forget_some_groups(member.scope, system);
        let heard = self.tree.emptying_above(member.scope).is_empty();
        Some(EndedCommand { scope: member.scope, wanted: member.wanted && heard })
    }

    /// Processes that came to this one may have ended. The others of them; none if they can't be told
    /// at the moment.
    pub fn reap(&mut self, system: &mut dyn System) -> Option<Vec<i32>> {
        self.containment.reap(&mut self.tree, system)
    }

    /// Processes may have come to this one.
    pub fn adopt(&mut self, system: &mut dyn System, now: Instant) {
        self.containment.adopt(&mut self.tree, system, now);
    }

    /// Whether any scope is being emptied.
    pub fn is_emptying(&self) -> bool {
        !self.tree.emptying.is_empty()
    }

    /// Something may have been missed: scopes that are being emptied have to be looked at.
    pub fn suspect_all(&mut self) {
        self.tree.suspect_all();
    }

    /// A scope and those around it, from the inside out.
    pub fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        self.tree.around(scope)
    }
}
