//! Where orphans don't come to this process, all processes are looked at: who carries a mark of ours,
//! who is in a command's group, and their descendants. Nobody tells of their end, and a list of all
//! may miss one that changes at that moment.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::super::marks::Mark;
use super::super::procs::list::{self, Process};
use super::containment::{Containment, Other};
use super::emptying::FIRST_LOOK;
use super::system::System;
use super::tree::Tree;
use ftsh_machine::effect::ScopeId;

/// Nobody is told of the end of orphans.
const SLOWEST_LOOK: Duration = Duration::from_millis(40);

/// A scan of all processes is followed by so many times what it took without one, unless all that it
/// found is gone.
const SHARE: u32 = 4;

/// All processes, as they were last seen.
#[derive(Default)]
pub struct Groups {
    processes: HashMap<i32, Process>,
    children: HashMap<i32, Vec<i32>>,
    /// Those that carry a mark of ours, with the scope that it means today.
    marked: HashMap<i32, (ScopeId, Mark)>,
    last: Option<LastScan>,
}

/// When all processes were looked at, and what that took.
#[derive(Clone, Copy)]
struct LastScan {
    /// When it was over.
    end: Instant,
    /// The processor's time, however long others kept it meanwhile.
    took: Duration,
}

impl Groups {
    /// When to look at all processes for a scope, as far as can be said now.
    fn next_scan(
        &self,
        tree: &Tree,
        system: &mut dyn System,
        scope: ScopeId,
        now: Instant,
    ) -> Option<Instant> {
        let emptying = tree.emptying.get(&scope)?;
        let (Some(known), Some(last)) = (&emptying.known, &self.last) else { return Some(now) };
        let mut lives = |(&pid, &started): (&i32, &u64)| {
            match system.process(pid) {
                Ok(process) => process.is_some_and(|it| !it.ended && it.started == started),
                Err(_) => true, // looked at again
            }
        };
        let scopes = tree.subtree(scope);
        let mut commands = tree.commands_in(&scopes).map(|(_, member)| member).peekable();
        if commands.peek().is_none() && !known.iter().any(&mut lives) {
            // Together with others that are done at this moment.
            return Some(last.end + FIRST_LOOK.min(last.took));
        }
        if emptying.look.is_some_and(|look| look > now) {
            return None;
        }
        let mut commands = commands.map(|member| member.pid);
        let same = commands.all(|pid| pid.is_some_and(|pid| known.contains_key(&pid)))
            && known.iter().all(lives);
        // What those start that were asked to end is theirs, until they are killed.
        (!same || emptying.killing.is_some()).then(|| last.end + last.took * SHARE)
    }

    /// Whether a process was started by one that had been asked to end, and still lives.
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
        SLOWEST_LOOK
    }

    fn reap(&mut self, _tree: &mut Tree, _system: &mut dyn System) -> Option<Vec<i32>> {
        Some(Vec::new())
    }

    fn adopt(&mut self, _tree: &mut Tree, _system: &mut dyn System, _now: Instant) -> bool {
        true
    }

    /// What was asked to end is looked at alone; the rest of the machine when that has changed, which
    /// may have left others behind, and not all the time.
    fn put_off(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn System,
        scopes: &BTreeSet<ScopeId>,
        now: Instant,
    ) -> bool {
        let scans = scopes.iter().map(|&scope| (scope, self.next_scan(tree, system, scope, now)));
        let scans: Vec<(ScopeId, Option<Instant>)> = scans.collect();
        if scans.iter().any(|&(_, scan)| scan.is_some_and(|scan| scan <= now)) {
            return false; // one for all
        }
        for (scope, scan) in scans {
            let Some(emptying) = tree.emptying.get_mut(&scope) else { continue };
            let planned = emptying.look.filter(|&look| look > now);
            let look = planned.unwrap_or_else(|| {
                emptying.wait_longer(SLOWEST_LOOK);
                now + emptying.interval()
            });
            emptying.look = Some(scan.map_or(look, |scan| scan.min(look)));
        }
        true
    }

    fn scan(
        &mut self,
        tree: &mut Tree,
        system: &mut dyn System,
        scopes: &BTreeSet<ScopeId>,
        _now: Instant,
    ) -> bool {
        let (_, before) = system.clock();
        for scope in scopes.iter().flat_map(|&scope| tree.subtree(scope)).collect::<Vec<_>>() {
            tree.forget_dead_groups(scope, system);
        }
        // An old list would name processes whose ids belong to others by now.
        let all = system.marked();
        let is_listed = all.is_some();
        let all = all.unwrap_or_default();
        let marked = all.iter().filter_map(|(process, mark)| Some((process.pid, (*mark)?)));
        self.marked = marked.map(|(pid, mark)| (pid, (tree.today(mark.scope), mark))).collect();
        let processes: Vec<Process> = all.into_iter().map(|(process, _)| process).collect();
        self.children = list::by_parent(&processes);
        self.processes = processes.into_iter().map(|process| (process.pid, process)).collect();
        let (end, after) = system.clock();
        self.last = Some(LastScan { end, took: after.saturating_sub(before) });
        is_listed
    }

    fn others(&self, tree: &Tree, system: &mut dyn System, scope: ScopeId) -> Vec<Other> {
        let scopes = tree.subtree(scope);
        let commands = tree.running_in(&scopes);
        let groups = tree.groups_of(&scopes).chain(commands.iter().copied());
        let groups: HashSet<i32> = groups.collect();
        let scopes: HashSet<&ScopeId> = scopes.iter().collect();
        let belongs = |process: &&Process| match self.marked.get(&process.pid) {
            Some((scope, _)) => scopes.contains(scope),
            None => groups.contains(&process.group),
        };
        let mut others: Vec<i32> =
            self.processes.values().filter(belongs).map(|process| process.pid).collect();
        // And their descendants, but for those of other scopes.
        let mut seen: HashSet<i32> = others.iter().chain(&commands).copied().collect();
        let mut stack: Vec<i32> = seen.iter().copied().collect();
        while let Some(pid) = stack.pop() {
            let children = self.children.get(&pid).into_iter().flatten().copied();
            let new = children.filter(|pid| !self.marked.contains_key(pid) && seen.insert(*pid));
            let new: Vec<i32> = new.collect();
            others.extend(&new);
            stack.extend(new);
        }
        others.retain(|pid| !commands.contains(pid) && !system.is_own(*pid));
        let mark = |pid| self.marked.get(&pid).map(|&(_, mark)| mark);
        let lives = |shell| mark(shell).is_some_and(|mark| mark.depth == 0);
        let asked = tree.emptying.get(&scope).map(|emptying| &emptying.processes);
        let other = |pid| Other {
            pid,
            depth: mark(pid).map_or(0, |mark| mark.depth),
            nested: mark(pid).and_then(|mark| mark.shell).is_some_and(lives)
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
