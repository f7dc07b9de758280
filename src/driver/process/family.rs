//! Families of processes: which there are, and how they are emptied.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::command::Stage;
use super::{ProcessDriver, sys};
use crate::machine::effect::{ProcessId, ScopeId};
use crate::machine::event::Event;
use crate::machine::record::LogEvent;

/// How often what can't be waited for is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// All scopes with something in them.
#[derive(Default)]
pub struct Families {
    scopes: HashMap<ScopeId, Scope>,
    /// Scopes being emptied that may be empty now.
    dirty: BTreeSet<ScopeId>,
    /// Scopes being emptied.
    emptying: BTreeSet<ScopeId>,
}

#[derive(Default)]
struct Scope {
    parent: Option<ScopeId>,
    below: BTreeSet<ScopeId>,
    commands: HashSet<ProcessId>,
    /// Groups whose leader has ended while others lived on.
    groups: HashSet<i32>,
    emptying: Option<Emptying>,
}

struct Emptying {
    since: Instant,
    killing: bool,
    processes: usize,
    look: Option<Instant>,
}

impl Families {
    /// A new scope inside another one.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        self.scopes.entry(scope).or_default().parent = Some(parent);
        self.scopes.entry(parent).or_default().below.insert(scope);
    }

    /// A command begins.
    pub fn enter(&mut self, scope: ScopeId, process: ProcessId) {
        self.scopes.entry(scope).or_default().commands.insert(process);
    }

    /// A command is over; false if its scope is being emptied, and nobody wants to hear of it.
    pub fn leave(&mut self, scope: ScopeId, process: ProcessId) -> bool {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.commands.remove(&process);
        }
        let above = self.emptying_above(scope);
        self.dirty.extend(&above);
        above.is_empty()
    }

    /// The scopes being emptied among this one and those around it.
    fn emptying_above(&self, scope: ScopeId) -> Vec<ScopeId> {
        if self.emptying.is_empty() {
            return Vec::new();
        }
        let up = |id: &ScopeId| self.scopes.get(id)?.parent;
        std::iter::successors(Some(scope), up).filter(|id| self.emptying.contains(id)).collect()
    }

    /// A command's process has ended, but others of its group may live on.
    pub fn note_group(&mut self, scope: ScopeId, group: i32) {
        if is_group_alive(group) {
            self.scopes.entry(scope).or_default().groups.insert(group);
        }
    }

    fn remove(&mut self, scope: ScopeId) -> Option<Scope> {
        let old = self.scopes.remove(&scope)?;
        if let Some(parent) = old.parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            parent.below.remove(&scope);
        }
        self.emptying.remove(&scope);
        self.dirty.remove(&scope);
        Some(old)
    }

    /// A scope and all below it.
    fn subtree(&self, scope: ScopeId) -> Vec<ScopeId> {
        let mut all = vec![scope];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            all.extend(self.scopes.get(id).into_iter().flat_map(|scope| &scope.below));
            next += 1;
        }
        all
    }

    /// When a scope that is being emptied has to be looked at again.
    pub fn next_due(&self) -> Option<Instant> {
        let emptying = self.emptying.iter().filter_map(|id| self.scopes.get(id));
        emptying.filter_map(|scope| scope.emptying.as_ref()?.look).min()
    }
}

fn is_group_alive(group: i32) -> bool {
    sys::kill(-group, 0) != Err(nix::errno::Errno::ESRCH)
}

impl ProcessDriver {
    /// Asks all of a scope to end.
    pub(super) fn terminate(&mut self, scope: ScopeId) {
        let since = Instant::now();
        let emptying = Emptying { since, killing: false, processes: 0, look: None };
        self.families.scopes.entry(scope).or_default().emptying = Some(emptying);
        self.families.emptying.insert(scope);
        self.families.dirty.insert(scope);
        self.log(0, LogEvent::Emptying { scope: scope.0, kill: false });
        self.cancel_workers(scope);
        let count = self.signal(scope, &[libc::SIGTERM, libc::SIGCONT]);
        if let Some(emptying) = self.emptying_mut(scope) {
            emptying.processes = count;
        }
    }

    /// The grace period is over.
    pub(super) fn kill(&mut self, scope: ScopeId, strong: bool) {
        let Some(emptying) = self.emptying_mut(scope) else { return };
        emptying.killing = true;
        self.log(0, LogEvent::Emptying { scope: scope.0, kill: true });
        self.signal(scope, &[libc::SIGKILL]);
        self.families.dirty.insert(scope);
        if !strong {
            self.emptied(scope);
        }
    }

    /// What one scope left running belongs to another one.
    pub(super) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        let Some(old) = self.families.remove(scope) else { return };
        for &below in &old.below {
            self.families.open(below, into);
        }
        for process in &old.commands {
            if let Some(command) = self.commands.get_mut(process) {
                command.scope = into;
            }
        }
        let new = self.families.scopes.entry(into).or_default();
        new.commands.extend(old.commands);
        new.groups.extend(old.groups);
    }

    fn emptying_mut(&mut self, scope: ScopeId) -> Option<&mut Emptying> {
        self.families.scopes.get_mut(&scope)?.emptying.as_mut()
    }

    /// Interrupts the workers of a scope: what hasn't started never will.
    fn cancel_workers(&mut self, scope: ScopeId) {
        for id in self.families.subtree(scope) {
            let Some(scope) = self.families.scopes.get_mut(&id) else { continue };
            scope.commands.retain(|process| {
                let Some(command) = self.commands.get(process) else { return false };
                let (Stage::Starting(handle) | Stage::Working(handle)) = &command.stage else {
                    return true;
                };
                if !self.pool.cancel(handle) {
                    return true; // too late: it will show up as a process
                }
                self.waiting.remove(&handle.ticket);
                self.commands.remove(process);
                false
            });
        }
    }

    /// Sends signals to all processes of a scope; says to how many groups.
    fn signal(&mut self, scope: ScopeId, signals: &[i32]) -> usize {
        let mut groups = Vec::new();
        for id in self.families.subtree(scope) {
            let Some(scope) = self.families.scopes.get(&id) else { continue };
            groups.extend(&scope.groups);
            groups.extend(scope.commands.iter().filter_map(|process| {
                match self.commands.get(process)?.stage {
                    Stage::Running(pid) => Some(pid),
                    Stage::Starting(_) | Stage::Working(_) => None,
                }
            }));
        }
        for &group in &groups {
            for &signal in signals {
                if sys::kill(-group, signal).is_ok() {
                    self.log(0, LogEvent::Signaled { pid: -group, signal });
                }
            }
        }
        groups.len()
    }

    /// A process turned up: one that started while its scope was already being emptied gets what
    /// the others got.
    pub(super) fn catch_up(&mut self, scope: ScopeId, pid: i32) {
        for id in self.families.emptying_above(scope) {
            let killing = self.emptying_mut(id).is_some_and(|emptying| emptying.killing);
            let signals: &[i32] =
                if killing { &[libc::SIGKILL] } else { &[libc::SIGTERM, libc::SIGCONT] };
            for &signal in signals {
                let _ = sys::kill(-pid, signal);
            }
        }
    }

    /// Reports the scopes that are empty by now.
    pub(super) fn settle(&mut self) {
        let now = Instant::now();
        let due = |id: &&ScopeId| {
            let emptying = self.families.scopes.get(id).and_then(|scope| scope.emptying.as_ref());
            emptying.and_then(|emptying| emptying.look).is_some_and(|look| look <= now)
        };
        let due: Vec<ScopeId> = self.families.emptying.iter().filter(due).copied().collect();
        let mut dirty = std::mem::take(&mut self.families.dirty);
        dirty.extend(due);
        for scope in dirty {
            self.settle_scope(scope, now);
        }
    }

    fn settle_scope(&mut self, scope: ScopeId, now: Instant) {
        let mut busy = false;
        let mut lingering = false;
        for id in self.families.subtree(scope) {
            let Some(scope) = self.families.scopes.get_mut(&id) else { continue };
            busy |= !scope.commands.is_empty();
            scope.groups.retain(|&group| is_group_alive(group));
            lingering |= !scope.groups.is_empty();
        }
        if !busy && !lingering {
            return self.emptied(scope);
        }
        if lingering && self.emptying_mut(scope).is_some_and(|emptying| emptying.killing) {
            self.signal(scope, &[libc::SIGKILL]);
        }
        if let Some(emptying) = self.emptying_mut(scope) {
            emptying.look = lingering.then(|| now + LOOK_AGAIN);
        }
    }

    fn emptied(&mut self, scope: ScopeId) {
        let Some(emptying) = self.emptying_mut(scope) else { return };
        let elapsed = emptying.since.elapsed();
        let processes = emptying.processes;
        self.log(0, LogEvent::Emptied { scope: scope.0, processes, elapsed });
        for id in self.families.subtree(scope).into_iter().rev() {
            let left = self.families.remove(id);
            for process in left.into_iter().flat_map(|scope| scope.commands) {
                if let Some(command) = self.commands.get_mut(&process) {
                    command.wanted = false;
                }
            }
        }
        self.ready.push_back(Event::Emptied { scope });
    }
}
