//! Containment by a subreaper.
//!
//! Every orphan becomes a child of this process. All processes of a scope therefore descend from
//! children of this process: commands, which are known, and orphans, whose tags name their scopes.
//! A scope without either has no processes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::containment::{Containment, StrayProcess};
use super::system::{ScopeAction, ScopeQueries};
use super::tree::Tree;
use crate::procs::TagLookup;
use ftsh_machine::effect::ScopeId;
use ftsh_machine::record::LogEvent;

/// Time after which a program that is still being loaded counts as untagged.
const LOADING_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that counts at most between two reads of a tag. If this process or the machine pauses, the
/// program is not loaded meanwhile either.
const MAX_STEP: Duration = Duration::from_millis(500);
/// Longest interval between two checks. The ends of all processes are reported, except those of
/// other users.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// Orphans of commands.
#[derive(Default)]
pub(super) struct Subreaper {
    /// Assigned orphans by process id.
    orphans: HashMap<i32, Orphan>,
    /// Orphans whose tag cannot be read yet.
    unclear: HashMap<i32, Unclear>,
}

struct Orphan {
    scope: ScopeId,
    depth: usize,
}

struct Unclear {
    /// Scope to assume if the tag is never readable. Guessed at the first sight of the orphan: other
    /// scopes may open later.
    scope: ScopeId,
    /// Time of the last read.
    last: Instant,
    waited: Duration,
}

impl Subreaper {
    fn remove_ended(&mut self, tree: &mut Tree, ended: &[i32]) {
        for pid in ended {
            self.unclear.remove(pid);
            match self.orphans.remove(pid) {
                Some(orphan) => tree.suspect(orphan.scope),
                None => tree.suspect_all(),
            }
        }
    }

    /// Assigns an orphan to a scope. Returns false if its tag cannot be read yet.
    fn adopt_one(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn ScopeQueries,
        pid: i32,
        now: Instant,
    ) -> bool {
        let tagged = system.tag(pid);
        let (scope, depth) = if let TagLookup::Ours(tag) = tagged {
            (tree.current_owner(tag.scope), tag.depth)
        } else {
            let unclear = self.unclear.entry(pid).or_insert_with(|| {
                let scope = tree.guess(system.group(pid));
                Unclear { scope, last: now, waited: Duration::ZERO }
            });
            unclear.waited += (now - unclear.last).min(MAX_STEP);
            unclear.last = now;
            if tagged.is_open() && unclear.waited < LOADING_TIMEOUT {
                return false;
            }
            (tree.current_owner(unclear.scope), 0)
        };
        self.unclear.remove(&pid);
        self.orphans.insert(pid, Orphan { scope, depth });
        tree.suspect(scope);
        tree.act(ScopeAction::Log(LogEvent::Adopted { pid, command: system.name(pid) }));
        true
    }
}

impl Containment for Subreaper {
    fn adopts(&self) -> bool {
        true
    }

    fn slowest_look(&self) -> Duration {
        MAX_INTERVAL
    }

    fn reap(&mut self, tree: &mut Tree, system: &mut dyn ScopeQueries) -> Option<Vec<i32>> {
        let orphans = system.orphans()?;
        self.remove_ended(tree, &orphans.ended);
        Some(orphans.alive)
    }

    fn adopt(&mut self, tree: &mut Tree, system: &mut dyn ScopeQueries, now: Instant) -> bool {
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
        system: &mut dyn ScopeQueries,
        _scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool {
        self.adopt(tree, system, now)
    }

    fn others(
        &self,
        tree: &Tree,
        _system: &mut dyn ScopeQueries,
        scope: ScopeId,
    ) -> Vec<StrayProcess> {
        let scopes: HashSet<ScopeId> = tree.subtree(scope).into_iter().collect();
        let of_scopes = self.orphans.iter().filter(|(_, orphan)| scopes.contains(&orphan.scope));
        of_scopes
            .map(|(&pid, orphan)| StrayProcess {
                pid,
                scope: orphan.scope,
                depth: orphan.depth,
                nested: false,
            })
            .collect()
    }

    fn moved(&mut self, from: ScopeId, to: ScopeId) {
        for orphan in self.orphans.values_mut().filter(|orphan| orphan.scope == from) {
            orphan.scope = to;
        }
    }
}
