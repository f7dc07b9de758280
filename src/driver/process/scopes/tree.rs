//! Families of processes: who belongs to which scope.
//!
//! Where the shell is a subreaper, every process without a parent comes to it, so that all of a
//! scope's processes descend from children of ours: commands, which are known, and orphans, whose
//! environment tells whose they were. A scope without either has no process left.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::super::marks::Leases;
use super::super::procs::features::Containment;
use super::super::procs::list::{self, Marked};
use super::super::{ProcessDriver, sys};
use super::remaining::LastScan;
use crate::machine::effect::{ProcessId, ScopeId};
use crate::machine::record::LogEvent;

/// More names of scopes that ended well than this are forgotten.
const MOST_HANDED: usize = 100_000;

/// So many are kept without a look whether they are needed.
const FEW_HANDED: usize = 100;

/// Groups without members are forgotten after so many.
const BETWEEN_GROUPS: usize = 64;

/// A process that is being loaded for this long isn't.
const LOADING: Duration = Duration::from_secs(1);

/// All scopes, and the processes that lost their parents.
pub struct ScopeTree {
    pub(in super::super) scopes: HashMap<ScopeId, Scope>,
    /// Orphans that came to us, by process id.
    orphans: HashMap<i32, Orphan>,
    /// Where processes of scopes that are over belong now.
    handed: HashMap<ScopeId, ScopeId>,
    /// Scopes being emptied.
    pub(in super::super) emptying: BTreeSet<ScopeId>,
    /// Scopes being emptied that have to be looked at.
    pub(in super::super) dirty: BTreeSet<ScopeId>,
    /// When all processes were last looked at.
    pub(super) last_scan: Option<LastScan>,
    /// Orphans that can't be told yet: since when, and whose they would be if they never can.
    unclear: HashMap<i32, (Instant, ScopeId)>,
    /// How many commands had ended when the last scope was opened.
    ended: usize,
    /// How long the limits of scopes count elsewhere.
    pub(in super::super) leases: Leases,
}

/// A scope.
#[derive(Default)]
pub struct Scope {
    parent: Option<ScopeId>,
    below: BTreeSet<ScopeId>,
    pub commands: HashSet<ProcessId>,
    /// Groups whose leader has ended; others may live on.
    pub groups: HashSet<i32>,
    pub(in super::super) emptying: Option<super::terminate::Emptying>,
}

struct Orphan {
    scope: ScopeId,
    depth: usize,
}

impl ScopeTree {
    /// Only the script's scope.
    pub fn new() -> Self {
        Self {
            scopes: HashMap::from([(ScopeId::SCRIPT, Scope::default())]),
            orphans: HashMap::new(),
            handed: HashMap::new(),
            emptying: BTreeSet::new(),
            dirty: BTreeSet::new(),
            last_scan: None,
            unclear: HashMap::new(),
            ended: 0,
            leases: Leases::default(),
        }
    }

    /// A new scope inside another one.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        if let Some(before) = self.scope(scope).parent.replace(parent)
            && let Some(before) = self.scopes.get_mut(&before)
        {
            before.below.remove(&scope);
        }
        self.scope(parent).below.insert(scope);
    }

    /// A scope; one that was never opened is the script's.
    pub fn scope(&mut self, scope: ScopeId) -> &mut Scope {
        if scope != ScopeId::SCRIPT && !self.scopes.contains_key(&scope) {
            self.scope(ScopeId::SCRIPT).below.insert(scope);
        }
        self.scopes.entry(scope).or_insert_with(|| Scope {
            parent: (scope != ScopeId::SCRIPT).then_some(ScopeId::SCRIPT),
            ..Scope::default()
        })
    }

    /// A command begins.
    pub fn enter(&mut self, scope: ScopeId, process: ProcessId) {
        self.scope(scope).commands.insert(process);
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
    pub fn emptying_above(&self, scope: ScopeId) -> Vec<ScopeId> {
        if self.emptying.is_empty() {
            return Vec::new();
        }
        let up = |id: &ScopeId| self.scopes.get(id)?.parent;
        std::iter::successors(Some(scope), up).filter(|id| self.emptying.contains(id)).collect()
    }

    /// A command's process has ended, but others of its group may live on.
    pub fn note_group(&mut self, scope: ScopeId, group: i32) {
        let groups = &mut self.scope(scope).groups;
        groups.insert(group);
        if groups.len().is_multiple_of(BETWEEN_GROUPS) {
            groups.retain(|&group| sys::is_group_alive(group));
        }
    }

    /// Takes a scope out of the tree; processes that say they are of it are another one's now.
    pub fn remove(&mut self, scope: ScopeId, heir: ScopeId) -> Option<Scope> {
        let mut old = self.scopes.remove(&scope)?;
        self.emptying.remove(&scope);
        self.dirty.remove(&scope);
        self.leases.end(scope);
        if scope == ScopeId::SCRIPT {
            let kept = Scope { below: std::mem::take(&mut old.below), ..Scope::default() };
            self.scopes.insert(scope, kept);
            return Some(old);
        }
        if let Some(parent) = old.parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            parent.below.remove(&scope);
        }
        // What nobody remembers is the script's.
        if heir != ScopeId::SCRIPT {
            if self.handed.len() >= MOST_HANDED {
                self.handed.clear();
            }
            self.handed.insert(scope, heir);
        }
        for orphan in self.orphans.values_mut().filter(|orphan| orphan.scope == scope) {
            orphan.scope = heir;
        }
        Some(old)
    }

    /// The scope around this one.
    pub fn parent(&self, scope: ScopeId) -> ScopeId {
        self.scopes.get(&scope).and_then(|scope| scope.parent).unwrap_or(ScopeId::SCRIPT)
    }

    /// A scope and those around it, from the inside out.
    pub fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        let up = |id: &ScopeId| (*id != ScopeId::SCRIPT).then(|| self.parent(*id));
        std::iter::successors(Some(scope), up).collect()
    }

    /// A scope and all below it.
    pub fn subtree(&self, scope: ScopeId) -> Vec<ScopeId> {
        let mut all = vec![scope];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            all.extend(self.scopes.get(id).into_iter().flat_map(|scope| &scope.below));
            next += 1;
        }
        all
    }

    /// The orphans of these scopes, and how many nested shells each came through.
    pub fn orphans_of(&self, scopes: &[ScopeId]) -> Vec<(i32, usize)> {
        let scopes: HashSet<&ScopeId> = scopes.iter().collect();
        let of_scopes = self.orphans.iter().filter(|(_, orphan)| scopes.contains(&orphan.scope));
        of_scopes.map(|(&pid, orphan)| (pid, orphan.depth)).collect()
    }

    /// The scope that a scope named by a process is today. One that nobody remembers ended well, long
    /// ago.
    pub fn today(&self, mut scope: ScopeId) -> ScopeId {
        while !self.scopes.contains_key(&scope) {
            scope = self.handed.get(&scope).copied().unwrap_or(ScopeId::SCRIPT);
        }
        scope
    }

    /// Where a process without a mark belongs: to the scope of its group, else to the innermost one
    /// that everything running is in.
    fn guess(&self, pid: i32, group_of: impl Fn(i32) -> Option<ScopeId>) -> ScopeId {
        let group = list::one(pid).map(|process| process.group);
        let by_group = group.and_then(|group| {
            let with_group = || {
                let found = self.scopes.iter().find(|(_, scope)| scope.groups.contains(&group));
                found.map(|(&id, _)| id)
            };
            group_of(group).or_else(with_group)
        });
        by_group.unwrap_or_else(|| {
            let mut id = ScopeId::SCRIPT;
            while let Some(scope) = self.scopes.get(&id)
                && scope.commands.is_empty()
                && scope.below.len() == 1
                && let Some(&below) = scope.below.first()
            {
                id = below;
            }
            id
        })
    }
}

impl ProcessDriver {
    /// A new scope inside another one. What came to us before is none of its.
    pub(in super::super) fn open_scope(&mut self, scope: ScopeId, parent: ScopeId) {
        let since = std::mem::replace(&mut self.scopes.ended, self.children.ended());
        if self.children.ended() > since
            && matches!(self.containment, Containment::Subreaper)
            && !sys::has_no_children()
        {
            self.look_for_orphans();
        }
        self.scopes.open(scope, parent);
    }

    /// What one scope left running belongs to another one.
    pub(in super::super) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        if scope == into {
            return;
        }
        let Some(old) = self.scopes.remove(scope, into) else { return };
        // Without any process, there is none to be told whose it is.
        if matches!(self.containment, Containment::Subreaper)
            && self.scopes.handed.len() > FEW_HANDED
            && sys::has_no_children()
        {
            self.scopes.handed = HashMap::new();
        }
        for &below in &old.below {
            self.scopes.open(below, into);
        }
        for process in &old.commands {
            if let Some(command) = self.commands.get_mut(process) {
                command.scope = into;
            }
        }
        let new = self.scopes.scope(into);
        new.commands.extend(old.commands);
        for group in old.groups {
            self.scopes.note_group(into, group);
        }
    }

    /// An orphan has ended and is gone.
    pub(in super::super) fn orphan_ended(&mut self, pid: i32) {
        self.scopes.unclear.remove(&pid);
        if let Some(orphan) = self.scopes.orphans.remove(&pid) {
            let above = self.scopes.emptying_above(orphan.scope);
            self.scopes.dirty.extend(above);
        } else {
            self.scopes.dirty.extend(&self.scopes.emptying);
        }
    }

    /// Looks for orphans that came to us, and takes note of those that have ended. False if it
    /// can't be told yet of some whose they are, or whether there are more.
    pub(in super::super) fn look_for_orphans(&mut self) -> bool {
        let Some(orphans) = self.orphans() else { return false };
        let mut certain = true;
        for pid in orphans {
            certain &= self.scopes.orphans.contains_key(&pid) || self.adopt(pid);
        }
        certain
    }

    fn adopt(&mut self, pid: i32) -> bool {
        let mark = list::mark(pid, &self.marker);
        let (scope, depth) = if let Marked::Mark(place) = mark {
            (self.scopes.today(place.scope), place.depth)
        } else {
            let now = Instant::now();
            let guess = || {
                let of_group = |group| {
                    let process = self.children.get(group)?.process;
                    Some(self.commands.get(&process)?.scope)
                };
                (now, self.scopes.guess(pid, of_group))
            };
            // What it is taken for when it is first seen: other scopes may open before it is clear.
            let first = self.scopes.unclear.get(&pid).copied();
            let (since, scope) = first.unwrap_or_else(guess);
            self.scopes.unclear.insert(pid, (since, scope));
            if mark == Marked::Unclear && now - since < LOADING {
                return false;
            }
            (self.scopes.today(scope), 0)
        };
        self.scopes.unclear.remove(&pid);
        self.scopes.orphans.insert(pid, Orphan { scope, depth });
        let above = self.scopes.emptying_above(scope);
        self.scopes.dirty.extend(above);
        self.log(0, LogEvent::Adopted { pid, command: list::name(pid) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_scopes_that_are_over() {
        let mut scopes = ScopeTree::new();
        for id in 0..10 {
            let (outer, inner) = (ScopeId(2 * id + 1), ScopeId(2 * id + 2));
            scopes.open(outer, ScopeId::SCRIPT);
            scopes.open(inner, outer);
            assert_eq!(scopes.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT, outer, inner]);
            scopes.remove(inner, outer);
            assert_eq!(scopes.today(inner), outer);
            scopes.remove(outer, ScopeId::SCRIPT);
            assert_eq!(scopes.today(inner), ScopeId::SCRIPT);
        }
        assert_eq!(scopes.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT]);
    }
}
