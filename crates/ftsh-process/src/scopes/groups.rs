//! Containment without a subreaper, by scans of all processes.
//!
//! A process belongs to a scope if it has a tag of this run, is in the group of a command, or
//! descends from such a process. The end of an orphan is not reported, and a list of all processes
//! may miss a process that forks or ends meanwhile.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::containment::{Containment, StrayProcess};
use super::emptying::FIRST_INTERVAL;
use super::system::ScopeQueries;
use super::tree::Tree;
use crate::procs::{ProcessEntry, by_parent};
use crate::tag::ScopeTag;
use ftsh_machine::effect::ScopeId;

/// Longest interval between two checks: the end of an orphan is not reported.
const MAX_INTERVAL: Duration = Duration::from_millis(40);

/// Minimum ratio of the pause after a scan to the duration of the scan, unless all processes found
/// by the scan are gone.
const SHARE: u32 = 4;

/// All processes, as of the last scan.
#[derive(Default)]
pub(super) struct Groups {
    processes: HashMap<i32, ProcessEntry>,
    children: HashMap<i32, Vec<i32>>,
    /// Processes with a tag of this run, and the scope that now owns the scope of the tag.
    tagged: HashMap<i32, (ScopeId, ScopeTag)>,
    last: Option<LastScan>,
}

/// End and cost of the last full scan.
#[derive(Clone, Copy)]
struct LastScan {
    /// Time of its end.
    end: Instant,
    /// CPU time used, which excludes waits for the processor.
    took: Duration,
}

impl Groups {
    /// Returns the time of the next full scan for a scope, as far as known now.
    fn next_scan(
        &self,
        tree: &Tree,
        system: &mut dyn ScopeQueries,
        scope: ScopeId,
        now: Instant,
    ) -> Option<Instant> {
        let emptying = tree.emptying.get(&scope)?;
        let (Some(known), Some(last)) = (&emptying.known, &self.last) else { return Some(now) };
        let mut lives = |(&pid, &started): (&i32, &u64)| {
            match system.process(pid) {
                Ok(process) => process.is_some_and(|it| !it.ended && it.started == started),
                Err(_) => true, // checked again
            }
        };
        let scopes = tree.subtree(scope);
        let mut commands = tree.commands_in(&scopes).map(|(_, member)| member).peekable();
        if commands.peek().is_none() && !known.iter().any(&mut lives) {
            // Together with other scopes that become empty at this time.
            return Some(last.end + FIRST_INTERVAL.min(last.took));
        }
        if emptying.look.is_some_and(|look| look > now) {
            return None;
        }
        let mut commands = commands.map(|member| member.pid);
        let same = commands.all(|pid| pid.is_some_and(|pid| known.contains_key(&pid)))
            && known.iter().all(lives);
        // Before SIGKILL, processes started by a signaled process are left to their parent.
        (!same || emptying.killing.is_some()).then(|| last.end + last.took * SHARE)
    }

    /// True if a process descends from a signaled process that still lives.
    fn is_new(&self, pid: i32, asked: &HashSet<i32>) -> bool {
        let parent = |pid: &i32| self.processes.get(pid).map(|process| process.parent);
        let is_there = |pid: &i32| asked.contains(pid) && self.processes.contains_key(pid);
        !asked.contains(&pid) && std::iter::successors(parent(&pid), parent).any(|it| is_there(&it))
    }
}

impl Containment for Groups {
    fn adopts(&self) -> bool {
        false
    }

    fn slowest_look(&self) -> Duration {
        MAX_INTERVAL
    }

    fn reap(&mut self, _tree: &mut Tree, _system: &mut dyn ScopeQueries) -> Option<Vec<i32>> {
        Some(Vec::new())
    }

    fn adopt(&mut self, _tree: &mut Tree, _system: &mut dyn ScopeQueries, _now: Instant) -> bool {
        true
    }

    /// Checks the signaled processes alone. A full scan follows when one of them has changed and
    /// may have left others behind, but not too often.
    fn postpone(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn ScopeQueries,
        scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool {
        let scans = scopes.iter().map(|&scope| (scope, self.next_scan(tree, system, scope, now)));
        let scans: Vec<(ScopeId, Option<Instant>)> = scans.collect();
        if scans.iter().any(|&(_, scan)| scan.is_some_and(|scan| scan <= now)) {
            return false; // one scan for all scopes
        }
        for (scope, scan) in scans {
            let Some(emptying) = tree.emptying.get_mut(&scope) else { continue };
            let planned = emptying.look.filter(|&look| look > now);
            let look = planned.unwrap_or_else(|| {
                emptying.wait_longer(MAX_INTERVAL);
                now + emptying.interval()
            });
            emptying.look = Some(scan.map_or(look, |scan| scan.min(look)));
        }
        true
    }

    fn scan(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn ScopeQueries,
        scopes: &BTreeSet<ScopeId>,
        _now: Instant,
    ) -> bool {
        let (_, before) = system.clock();
        for scope in scopes.iter().flat_map(|&scope| tree.subtree(scope)).collect::<Vec<_>>() {
            tree.forget_dead_groups(scope, system);
        }
        // After a failure, the old list is dropped: its process ids may belong to other processes
        // by now.
        let all = system.tagged();
        let is_listed = all.is_some();
        let all = all.unwrap_or_default();
        let tagged = all.iter().filter_map(|(process, tag)| Some((process.pid, (*tag)?)));
        self.tagged =
            tagged.map(|(pid, tag)| (pid, (tree.current_owner(tag.scope), tag))).collect();
        let processes: Vec<ProcessEntry> = all.into_iter().map(|(process, _)| process).collect();
        self.children = by_parent(&processes);
        self.processes = processes.into_iter().map(|process| (process.pid, process)).collect();
        let (end, after) = system.clock();
        self.last = Some(LastScan { end, took: after.saturating_sub(before) });
        is_listed
    }

    fn others(
        &self,
        tree: &Tree,
        system: &mut dyn ScopeQueries,
        scope: ScopeId,
    ) -> Vec<StrayProcess> {
        let scopes = tree.subtree(scope);
        let commands = tree.running_in(&scopes);
        let groups = tree.groups_of(&scopes).chain(commands.iter().copied());
        let groups: HashSet<i32> = groups.collect();
        let scopes: HashSet<&ScopeId> = scopes.iter().collect();
        let belongs = |process: &&ProcessEntry| match self.tagged.get(&process.pid) {
            Some((scope, _)) => scopes.contains(scope),
            None => groups.contains(&process.group),
        };
        let mut others: Vec<i32> =
            self.processes.values().filter(belongs).map(|process| process.pid).collect();
        // Adds descendants, except those with a tag of another scope.
        let mut seen: HashSet<i32> = others.iter().chain(&commands).copied().collect();
        let mut stack: Vec<i32> = seen.iter().copied().collect();
        while let Some(pid) = stack.pop() {
            let children = self.children.get(&pid).into_iter().flatten().copied();
            let new = children.filter(|pid| !self.tagged.contains_key(pid) && seen.insert(*pid));
            let new: Vec<i32> = new.collect();
            others.extend(&new);
            stack.extend(new);
        }
        others.retain(|pid| !commands.contains(pid) && !system.is_own(*pid));
        let tag = |pid| self.tagged.get(&pid).map(|&(_, tag)| tag);
        let lives = |shell| tag(shell).is_some_and(|tag| tag.depth == 0);
        let asked = tree.emptying.get(&scope).map(|emptying| &emptying.processes);
        // The parent of an untagged process may be gone, but its group names the scope.
        let owner = |pid: i32| match self.tagged.get(&pid) {
            Some(&(scope, _)) => scope,
            None => tree.guess(self.processes.get(&pid).map(|process| process.group)),
        };
        let other = |pid| StrayProcess {
            pid,
            scope: owner(pid),
            depth: tag(pid).map_or(0, |tag| tag.depth),
            nested: tag(pid).and_then(|tag| tag.shell).is_some_and(lives)
                || asked.is_some_and(|asked| self.is_new(pid, asked)),
        };
        others.into_iter().map(other).collect()
    }

    fn starts(&self, pids: &[i32]) -> Option<HashMap<i32, u64>> {
        let left = pids.iter().filter_map(|pid| self.processes.get(pid));
        Some(left.map(|process| (process.pid, process.started)).collect())
    }

    fn moved(&mut self, _from: ScopeId, _to: ScopeId) {}
}
