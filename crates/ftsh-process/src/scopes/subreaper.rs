//! Where this process is a subreaper, every process without a parent comes to it, so that all of a
//! scope's processes descend from children of ours: commands, which are known, and orphans, whose
//! environment tells whose they were. A scope without either has no process left.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::super::procs::list::Marked;
use super::Action;
use super::containment::{Containment, Other};
use super::system::System;
use super::tree::Tree;
use ftsh_machine::effect::ScopeId;
use ftsh_machine::record::LogEvent;

/// A process that is being loaded for this long isn't.
const LOADING: Duration = Duration::from_secs(1);
/// The end of all is told, but for those that nobody may wait for.
const SLOWEST_LOOK: Duration = Duration::from_secs(1);

/// The orphans.
#[derive(Default)]
pub struct Subreaper {
    /// By process id.
    orphans: HashMap<i32, Orphan>,
    /// Those that can't be told yet: since when, and whose they would be if they never can.
    unclear: HashMap<i32, (Instant, ScopeId)>,
}

struct Orphan {
    scope: ScopeId,
    depth: usize,
}

impl Subreaper {
    fn bury(&mut self, tree: &mut Tree, ended: &[i32]) {
        for pid in ended {
            self.unclear.remove(pid);
            match self.orphans.remove(pid) {
                Some(orphan) => tree.suspect(orphan.scope),
                None => tree.suspect_all(),
            }
        }
    }

    /// Finds out whose an orphan is; false if that can't be told yet.
    fn adopt_one(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn System,
        pid: i32,
        now: Instant,
    ) -> bool {
        let marked = system.mark(pid);
        let (scope, depth) = if let Marked::Ours(mark) = marked {
            (tree.today(mark.scope), mark.depth)
        } else {
            // What it is taken for when it is first seen: other scopes may open before it is clear.
            let first = self.unclear.get(&pid).copied();
            let (since, scope) = first.unwrap_or_else(|| (now, tree.guess(system.group(pid))));
            self.unclear.insert(pid, (since, scope));
            if marked.is_open() && now - since < LOADING {
                return false;
            }
            (tree.today(scope), 0)
        };
        self.unclear.remove(&pid);
        self.orphans.insert(pid, Orphan { scope, depth });
        tree.suspect(scope);
        tree.act(Action::Log(LogEvent::Adopted { pid, command: system.name(pid) }));
        true
    }
}

impl Containment for Subreaper {
    fn adopts(&self) -> bool {
        true
    }

    fn slowest_look(&self) -> Duration {
        SLOWEST_LOOK
    }

    fn reap(&mut self, tree: &mut Tree, system: &mut dyn System) -> Option<Vec<i32>> {
        let orphans = system.orphans()?;
        self.bury(tree, &orphans.ended);
        Some(orphans.alive)
    }

    fn adopt(&mut self, tree: &mut Tree, system: &mut dyn System, now: Instant) -> bool {
        if system.has_no_children() {
            return true;
        }
        let Some(orphans) = self.reap(tree, system) else { return false };
        let mut certain = true;
        for pid in orphans {
            certain &= self.orphans.contains_key(&pid) || self.adopt_one(tree, system, pid, now);
        }
        certain
    }

    fn scan(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn System,
        _scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool {
        self.adopt(tree, system, now)
    }

    fn others(&self, tree: &Tree, _system: &mut dyn System, scope: ScopeId) -> Vec<Other> {
        let scopes: HashSet<ScopeId> = tree.subtree(scope).into_iter().collect();
        let of_scopes = self.orphans.iter().filter(|(_, orphan)| scopes.contains(&orphan.scope));
        of_scopes.map(|(&pid, orphan)| Other { pid, depth: orphan.depth, nested: false }).collect()
    }

    fn moved(&mut self, from: ScopeId, to: ScopeId) {
        for orphan in self.orphans.values_mut().filter(|orphan| orphan.scope == from) {
            orphan.scope = to;
        }
    }
}
