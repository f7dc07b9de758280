//! What is left of scopes that are being emptied.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::super::marks::Mark;
use super::super::procs::features::Containment;
use super::super::procs::list::{self, Process};
use super::super::{ProcessDriver, sys};
use super::terminate::{FIRST_LOOK, PORTABLE_LOOK};
use crate::machine::effect::{ProcessId, ScopeId};

/// A scan of all processes is followed by so many times what it took without one, unless all that it
/// found is gone.
const SHARE: u32 = 4;

/// The processes of a scope that are left.
#[derive(Default)]
pub struct Remaining {
    /// Commands that a worker is still starting.
    pub starting: bool,
    /// Running commands, which lead groups of their own.
    pub commands: Vec<i32>,
    /// Others, and how many nested shells each came through.
    pub others: Vec<(i32, usize)>,
    /// Those that another one started which still lives, a nested shell or one that was asked to end
    /// before: its own to end, as long as there is time.
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
    /// All processes, who is whose child, and which carry a mark of ours.
    All {
        processes: HashMap<i32, Process>,
        children: HashMap<i32, Vec<i32>>,
        marked: HashMap<i32, (ScopeId, Mark)>,
    },
}

/// When all processes were looked at, and what that took.
#[derive(Clone, Copy)]
pub struct LastScan {
    /// When it was over.
    pub end: Instant,
    /// The processor's time, however long others kept it meanwhile.
    pub took: Duration,
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl Scan {
    /// When each of these processes was started, if it has looked at all.
    pub fn starts(&self, rest: &Remaining) -> Option<HashMap<i32, u64>> {
        let Self::All { processes, .. } = self else { return None };
        let left = rest.pids().into_iter().filter_map(|pid| processes.get(&pid));
        Some(left.map(|process| (process.pid, process.started)).collect())
    }
}

impl ProcessDriver {
    /// Whether nothing can come of looking at all processes now, for these scopes. What was asked to
    /// end is looked at alone; the rest of the machine when that has changed, which may have left
    /// others behind, and not all the time.
    pub(super) fn put_off(&mut self, scopes: &BTreeSet<ScopeId>, now: Instant) -> bool {
        if matches!(self.containment, Containment::Subreaper) {
            return false; // nothing to put off
        }
        let scans = scopes.iter().map(|&scope| (scope, self.next_scan(scope, now)));
        let scans: Vec<(ScopeId, Option<Instant>)> = scans.collect();
        if scans.iter().any(|&(_, scan)| scan.is_some_and(|scan| scan <= now)) {
            return false; // one for all
        }
        for (scope, scan) in scans {
            let Some(emptying) = self.emptying_mut(scope) else { continue };
            let planned = emptying.look.filter(|&look| look > now);
            let look = planned.unwrap_or_else(|| {
                emptying.wait_longer(PORTABLE_LOOK);
                now + emptying.interval
            });
            emptying.look = Some(scan.map_or(look, |scan| scan.min(look)));
        }
        true
    }

    /// When to look at all processes for a scope, as far as can be said now.
    fn next_scan(&self, scope: ScopeId, now: Instant) -> Option<Instant> {
        let emptying = self.scopes.scopes.get(&scope).and_then(|it| it.emptying.as_ref())?;
        let (Some(known), Some(last)) = (&emptying.known, &self.scopes.last_scan) else {
            return Some(now);
        };
        let lives = |(&pid, &started): (&i32, &u64)| {
            list::one(pid).is_some_and(|it| !it.ended && it.started == started)
        };
        let commands = self.commands_in(scope);
        if commands.is_empty() && !known.iter().any(lives) {
            // Together with others that are done at this moment.
            return Some(last.end + FIRST_LOOK.min(last.took));
        }
        if emptying.look.is_some_and(|look| look > now) {
            return None;
        }
        let is_known = |&it: &ProcessId| self.running(it).is_some_and(|it| known.contains_key(&it));
        let same = commands.iter().all(is_known) && known.iter().all(lives);
        // What those start that were asked to end is theirs, until they are killed.
        (!same || emptying.killing.is_some()).then(|| last.end + last.took * SHARE)
    }

    /// Finds out what can only be found out for all scopes at once.
    pub(in super::super) fn scan(&mut self, dirty: &BTreeSet<ScopeId>) -> Scan {
        if matches!(self.containment, Containment::Subreaper) {
            // Nobody to look for as long as commands run, unless others have to be signalled.
            if sys::has_no_children() {
                return Scan::Orphans { certain: true };
            }
            return Scan::Orphans { certain: self.look_for_orphans() };
        }
        let start = processor_time();
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
            _ => self.scanner.scan(),
        };
        let mut marked: HashMap<i32, (ScopeId, Mark)> = HashMap::new();
        for (process, place) in &placed {
            if let Some(place) = place {
                marked.insert(process.pid, (self.scopes.today(place.scope), *place));
            }
        }
        let processes: Vec<Process> = placed.into_iter().map(|(process, _)| process).collect();
        let children = list::by_parent(&processes);
        let processes = processes.into_iter().map(|process| (process.pid, process)).collect();
        let took = processor_time().saturating_sub(start);
        self.scopes.last_scan = Some(LastScan { end: Instant::now(), took });
        Scan::All { processes, children, marked }
    }

    /// Finds out what is left of a scope.
    pub(in super::super) fn remaining_in(&self, scope: ScopeId, scan: &Scan) -> Remaining {
        let scopes = self.scopes.subtree(scope);
        let commands = self.running_in(scope);
        let of_scope = |id: &ScopeId| self.scopes.scopes.get(id);
        let all = scopes.iter().filter_map(of_scope).map(|scope| scope.commands.len());
        let starting = all.sum::<usize>() > commands.len();
        let asked = of_scope(&scope).and_then(|it| Some(&it.emptying.as_ref()?.processes));
        let mut theirs = HashSet::new();
        let (others, uncertain) = match scan {
            Scan::Orphans { certain } => (self.scopes.orphans_of(&scopes), !certain),
            Scan::All { processes, children, marked } => {
                let groups: HashSet<i32> = scopes
                    .iter()
                    .filter_map(of_scope)
                    .flat_map(|scope| &scope.groups)
                    .chain(&commands)
                    .copied()
                    .collect();
                let scopes: HashSet<&ScopeId> = scopes.iter().collect();
                let belongs = |process: &&Process| match marked.get(&process.pid) {
                    Some((scope, _)) => scopes.contains(scope),
                    None => groups.contains(&process.group),
                };
                let mut others: Vec<i32> =
                    processes.values().filter(belongs).map(|process| process.pid).collect();
                // And their descendants, but for those of other scopes.
                let mut seen: HashSet<i32> = others.iter().chain(&commands).copied().collect();
                let mut stack: Vec<i32> = seen.iter().copied().collect();
                while let Some(pid) = stack.pop() {
                    let children = children.get(&pid).into_iter().flatten().copied();
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
                // And what was started by others since they were asked to end.
                let parent = |pid: &i32| processes.get(pid).map(|process| process.parent);
                let is_asked = |pid: &i32| asked.is_some_and(|asked| asked.contains(pid));
                let is_new = |pid: &i32| {
                    !is_asked(pid)
                        && std::iter::successors(parent(pid), parent)
                            .any(|it| is_asked(&it) && processes.contains_key(&it))
                };
                theirs.extend(others.iter().copied().filter(is_new));
                (others.into_iter().map(|pid| (pid, depth(pid))).collect(), false)
            }
        };
        Remaining { starting, commands, others, theirs, uncertain }
    }
}
