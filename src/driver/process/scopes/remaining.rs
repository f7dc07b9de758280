//! What is left of scopes that are being emptied.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::marks::Mark;
use super::super::procs::features::Containment;
use super::super::procs::list;
use super::super::{ProcessDriver, sys};
use crate::machine::effect::ScopeId;

/// The processes of a scope that are left.
#[derive(Default)]
pub struct Remaining {
    /// Commands that a worker is still starting.
    pub starting: bool,
    /// Running commands, which lead groups of their own.
    pub commands: Vec<i32>,
    /// Others, and how many nested shells each came through.
    pub others: Vec<(i32, usize)>,
    /// Those that a nested shell started which still lives: its own to end, as long as there is time.
    pub theirs: HashSet<i32>,
    /// Whether there may be more.
    pub uncertain: bool,
}

impl Remaining {
    pub fn is_empty(&self) -> bool {
        !self.starting && !self.uncertain && self.commands.is_empty() && self.others.is_empty()
    }

    pub fn pids(&self) -> Vec<i32> {
        self.commands.iter().copied().chain(self.others.iter().map(|&(pid, _)| pid)).collect()
    }
}

/// What is known of processes that aren't commands.
pub enum Scan {
    /// Orphans come to us; whether all could be told.
    Orphans { certain: bool },
    /// All processes, and which of them carry a mark of ours.
    All { processes: Vec<list::Process>, marked: HashMap<i32, (ScopeId, Mark)> },
}

impl ProcessDriver {
    /// Finds out what can only be found out for all scopes at once.
    pub(in super::super) fn scan(&mut self, dirty: &BTreeSet<ScopeId>) -> Scan {
        if matches!(self.containment, Containment::Subreaper) {
            // Nobody to look for as long as commands run, unless others have to be signalled.
            if sys::has_no_children() {
                return Scan::Orphans { certain: true };
            }
            return Scan::Orphans { certain: self.look_for_orphans() };
        }
        let scopes: Vec<_> = dirty.iter().flat_map(|&id| self.scopes.subtree(id)).collect();
        for id in scopes {
            if let Some(scope) = self.scopes.scopes.get_mut(&id) {
                scope.groups.retain(|&group| sys::is_group_alive(group));
            }
        }
        let placed = match self.containment {
            Containment::Groups { ps: true } => {
                let running = list::from_ps().into_iter().filter(|process| !process.ended);
                running.map(|process| (process, list::place(process.pid, &self.marker))).collect()
            }
            _ => list::placed(&self.marker),
        };
        let mut marked: HashMap<i32, (ScopeId, Mark)> = HashMap::new();
        for (process, place) in &placed {
            if let Some(place) = place {
                marked.insert(process.pid, (self.scopes.today(place.scope), *place));
            }
        }
        let processes = placed.into_iter().map(|(process, _)| process).collect();
        Scan::All { processes, marked }
    }

    /// Finds out what is left of a scope.
    pub(in super::super) fn remaining_in(&self, scope: ScopeId, scan: &Scan) -> Remaining {
        let scopes = self.scopes.subtree(scope);
        let commands = self.running_in(scope);
        let of_scope = |id: &ScopeId| self.scopes.scopes.get(id);
        let all = scopes.iter().filter_map(of_scope).map(|scope| scope.commands.len());
        let starting = all.sum::<usize>() > commands.len();
        let mut theirs = HashSet::new();
        let (others, uncertain) = match scan {
            Scan::Orphans { certain } => (self.scopes.orphans_of(&scopes), !certain),
            Scan::All { marked, processes } => {
                let groups: HashSet<i32> = scopes
                    .iter()
                    .filter_map(of_scope)
                    .flat_map(|scope| &scope.groups)
                    .chain(&commands)
                    .copied()
                    .collect();
                let scopes: HashSet<&ScopeId> = scopes.iter().collect();
                let belongs = |process: &&list::Process| match marked.get(&process.pid) {
                    Some((scope, _)) => scopes.contains(scope),
                    None => groups.contains(&process.group),
                };
                let mut others: Vec<i32> =
                    processes.iter().filter(belongs).map(|process| process.pid).collect();
                // And their descendants, but for those of other scopes.
                let tree = list::by_parent(processes);
                let mut seen: HashSet<i32> = others.iter().chain(&commands).copied().collect();
                let mut stack: Vec<i32> = seen.iter().copied().collect();
                while let Some(pid) = stack.pop() {
                    let children = tree.get(&pid).into_iter().flatten().copied();
                    let new = children.filter(|pid| !marked.contains_key(pid) && seen.insert(*pid));
                    let new: Vec<i32> = new.collect();
                    others.extend(&new);
                    stack.extend(new);
                }
                let ours = |pid: &i32| *pid == self.pid || self.children.preexisting.contains(pid);
                others.retain(|pid| !commands.contains(pid) && !ours(pid));
                let place = |pid| marked.get(&pid).map(|&(_, place)| place);
                let depth = |pid| place(pid).map_or(0, |place| place.depth);
                let lives = |shell| place(shell).is_some_and(|place| place.depth == 0);
                let is_theirs = |pid: &i32| place(*pid).and_then(|it| it.shell).is_some_and(lives);
                theirs.extend(others.iter().copied().filter(is_theirs));
                (others.into_iter().map(|pid| (pid, depth(pid))).collect(), false)
            }
        };
        Remaining { starting, commands, others, theirs, uncertain }
    }
}
