//! Emptying a scope: SIGTERM, and after the grace period SIGKILL until nothing is left.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::super::jobs::Stage;
use super::super::procs::features::Containment;
use super::super::procs::kill_tree;
use super::super::procs::list::{self, Marked};
use super::super::{ProcessDriver, sys};
use super::remaining::{Remaining, Scan};
use crate::machine::effect::{ProcessId, ScopeId};
use crate::machine::event::Event;
use crate::machine::record::LogEvent;

/// A program that is being loaded for this long hangs.
const LOADING: Duration = Duration::from_millis(50);
/// What can't be waited for is looked at again after this time, then less and less often.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(5);
const SLOWEST_LOOK: Duration = Duration::from_secs(1);
/// Without a subreaper nobody is told of the end of orphans.
pub(super) const PORTABLE_LOOK: Duration = Duration::from_millis(40);
/// What hasn't died this long after SIGKILL is a survivor; in weak mode the script goes on then.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far the emptying of a scope has come.
pub struct Emptying {
    since: Instant,
    /// The groups of commands, which were asked as such.
    groups: HashSet<i32>,
    pub(super) killing: Option<Killing>,
    /// All processes that were signalled.
    pub(super) processes: HashSet<i32>,
    /// What the last scan of all processes found, and when each of it was started.
    pub(super) known: Option<HashMap<i32, u64>>,
    /// Whether the last look found nothing.
    clean: bool,
    /// When to look again, if not told earlier.
    pub(super) look: Option<Instant>,
    pub(super) interval: Duration,
}

/// How far the killing has come.
pub struct Killing {
    since: Instant,
    strong: bool,
    killed: HashSet<i32>,
    survivors: HashSet<i32>,
}

impl Emptying {
    /// Looks less often from now on, but at least as often as `slowest` says.
    pub(super) fn wait_longer(&mut self, slowest: Duration) {
        self.interval = (self.interval * 2).min(slowest);
    }
}

impl ProcessDriver {
    /// Asks all of a scope to end.
    pub(in super::super) fn terminate(&mut self, scope: ScopeId) {
        let emptying = Emptying {
            since: Instant::now(),
            groups: HashSet::new(),
            killing: None,
            processes: HashSet::new(),
            known: None,
            clean: false,
            look: None,
            interval: FIRST_LOOK,
        };
        match self.scopes.scopes.get_mut(&scope) {
            // Nothing ever ran in it, or it was handed over.
            None => return self.ready.push_back(Event::Emptied { scope }),
            Some(scope) if scope.emptying.is_some() => return,
            Some(scope) => scope.emptying = Some(emptying),
        }
        self.scopes.emptying.insert(scope);
        self.scopes.dirty.insert(scope);
        self.log(0, LogEvent::Emptying { scope: scope.0, kill: false });
        self.cancel_workers(scope);
        // The commands at once; what they left behind is looked for when all that was asked for
        // at this moment is known.
        for pid in self.running_in(scope) {
            self.ask(-pid);
            if let Some(emptying) = self.emptying_mut(scope) {
                emptying.groups.insert(pid);
            }
        }
    }

    /// The grace period is over.
    pub(in super::super) fn kill(&mut self, scope: ScopeId, strong: bool) {
        if self.emptying_mut(scope).is_none() {
            return; // empty by now
        }
        self.log(0, LogEvent::Emptying { scope: scope.0, kill: true });
        let since = Instant::now();
        if let Some(emptying) = self.emptying_mut(scope) {
            let (killed, survivors) = (HashSet::new(), HashSet::new());
            emptying.killing = Some(Killing { since, strong, killed, survivors });
            emptying.interval = FIRST_LOOK;
            emptying.known = None;
        }
        self.scopes.dirty.insert(scope);
    }

    pub(super) fn emptying_mut(&mut self, scope: ScopeId) -> Option<&mut Emptying> {
        self.scopes.scopes.get_mut(&scope)?.emptying.as_mut()
    }

    fn ask(&mut self, pid: i32) {
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            if sys::kill(pid, signal).is_ok() {
                self.log(0, LogEvent::Signaled { pid, signal });
            }
        }
    }

    /// Interrupts the workers of a scope: what hasn't started never will.
    fn cancel_workers(&mut self, scope: ScopeId) {
        for id in self.scopes.subtree(scope) {
            let Some(scope) = self.scopes.scopes.get_mut(&id) else { continue };
            scope.commands.retain(|process| {
                let Some(command) = self.commands.get(process) else { return false };
                let handle = match &command.stage {
                    Stage::Working(handle) => handle,
                    Stage::Running(_) => return true,
                    Stage::Queued => {
                        self.commands.remove(process);
                        return false;
                    }
                };
                if !self.pool.cancel(handle) {
                    return true; // too late: it will show up as a process
                }
                if command.starting {
                    self.starting -= 1;
                }
                self.waiting.remove(&handle.ticket);
                self.commands.remove(process);
                false
            });
        }
    }

    pub(super) fn commands_in(&self, scope: ScopeId) -> Vec<ProcessId> {
        let scopes = self.scopes.subtree(scope).into_iter();
        let commands = scopes.filter_map(|id| self.scopes.scopes.get(&id));
        commands.flat_map(|scope| &scope.commands).copied().collect()
    }

    /// The process that a command runs in, once it does.
    pub(super) fn running(&self, process: ProcessId) -> Option<i32> {
        match self.commands.get(&process)?.stage {
            Stage::Running(pid) => Some(pid),
            Stage::Queued | Stage::Working(_) => None,
        }
    }

    pub(in super::super) fn running_in(&self, scope: ScopeId) -> Vec<i32> {
        self.commands_in(scope).into_iter().filter_map(|it| self.running(it)).collect()
    }

    /// The processes in which a scope's programs are being loaded, which can take for ever.
    fn loading_in(&self, scope: ScopeId) -> Vec<i32> {
        let scopes = self.scopes.subtree(scope).into_iter();
        let commands = scopes.filter_map(|id| self.scopes.scopes.get(&id));
        let threads =
            commands.flat_map(|scope| &scope.commands).filter_map(|process| {
                match &self.commands.get(process)?.stage {
                    Stage::Working(handle) => handle.committed_thread(),
                    Stage::Queued | Stage::Running(_) => None,
                }
            });
        let children = threads.filter_map(|it| list::children_of_thread(self.pid, it.id()).ok());
        children.flatten().filter(|&pid| !self.children.is_command(pid)).collect()
    }

    /// A command turned up although its scope was already being emptied: it gets what the others
    /// got.
    pub(in super::super) fn catch_up(&mut self, scope: ScopeId, pid: i32) {
        let above = self.scopes.emptying_above(scope);
        if above.is_empty() {
            return;
        }
        self.ask(-pid);
        for id in above {
            if let Some(emptying) = self.emptying_mut(id) {
                emptying.groups.insert(pid);
                self.scopes.dirty.insert(id);
            }
        }
    }

    /// When a scope that is being emptied has to be looked at again.
    pub(in super::super) fn next_look(&self) -> Option<Instant> {
        let scopes = self.scopes.emptying.iter().filter_map(|id| self.scopes.scopes.get(id));
        scopes.filter_map(|scope| scope.emptying.as_ref()?.look).min()
    }

    /// Goes on with the scopes that are being emptied, as far as something has happened.
    pub(in super::super) fn settle(&mut self) {
        if self.scopes.emptying.is_empty() {
            return;
        }
        let now = Instant::now();
        let is_due = |id: &&ScopeId| {
            let emptying = self.scopes.scopes.get(id).and_then(|scope| scope.emptying.as_ref());
            emptying.and_then(|emptying| emptying.look).is_some_and(|look| look <= now)
        };
        let due: Vec<ScopeId> = self.scopes.emptying.iter().filter(is_due).copied().collect();
        let mut dirty = std::mem::take(&mut self.scopes.dirty);
        dirty.extend(due);
        dirty.retain(|id| self.scopes.emptying.contains(id));
        if dirty.is_empty() || self.put_off(&dirty, now) {
            return;
        }
        let scan = self.scan(&dirty);
        for scope in dirty {
            self.settle_scope(scope, &scan, now);
        }
    }

    fn settle_scope(&mut self, scope: ScopeId, scan: &Scan, now: Instant) {
        let mut rest = self.remaining_in(scope, scan);
        let contained = matches!(self.containment, Containment::Subreaper);
        let Some(emptying) = self.emptying_mut(scope) else { return };
        emptying.known = scan.starts(&rest);
        if rest.starting && now - emptying.since >= LOADING {
            rest.others.extend(self.loading_in(scope).into_iter().map(|pid| (pid, 0)));
        }
        let Some(emptying) = self.emptying_mut(scope) else { return };
        if rest.is_empty() {
            // A list of all processes may miss one that changes at that moment.
            if contained || emptying.clean || emptying.processes.is_empty() {
                return self.emptied(scope);
            }
            emptying.clean = true;
            emptying.look = Some(now + FIRST_LOOK);
            return;
        }
        emptying.clean = false;
        let before = emptying.processes.len();
        if emptying.killing.is_some() {
            if self.kill_rest(scope, &rest, now) {
                return self.give_up(scope, rest.pids().len());
            }
        } else {
            self.ask_rest(scope, &rest);
        }
        let Some(emptying) = self.emptying_mut(scope) else { return };
        let killed = emptying.killing.is_some() && emptying.processes.len() > before;
        // All that is left are children of ours, or descend from them: their end is told.
        let told = contained && emptying.killing.is_none() && !rest.uncertain && !rest.starting;
        if emptying.look.is_some_and(|look| look <= now) {
            emptying.wait_longer(if contained { SLOWEST_LOOK } else { PORTABLE_LOOK });
        }
        let mut wait = emptying.interval;
        if !contained && killed {
            // What was killed only now may have started others that no list showed.
            emptying.known = None;
            wait = Duration::ZERO;
        }
        emptying.look = (!told).then(|| now + wait);
    }

    /// Asks what is outside the groups of commands to end, and wasn't asked yet.
    fn ask_rest(&mut self, scope: ScopeId, rest: &Remaining) {
        let Some(emptying) = self.emptying_mut(scope) else { return };
        let mut seen = std::mem::take(&mut emptying.processes);
        let groups = emptying.groups.clone();
        let commands = rest.commands.iter().map(|&pid| (pid, 0));
        let others = rest.others.iter().copied().filter(|(pid, _)| !rest.theirs.contains(pid));
        let mut stack: Vec<(i32, usize)> = commands.chain(others).collect();
        let roots: HashSet<i32> = stack.iter().map(|&(pid, _)| pid).collect();
        let mut asked = Vec::new();
        while let Some((pid, depth)) = stack.pop() {
            if seen.contains(&pid) {
                continue;
            }
            if !sys::group_of(pid).is_some_and(|group| groups.contains(&group)) {
                // What a nested shell started is its own to end.
                if !roots.contains(&pid)
                    && let Marked::Mark(place) = list::mark(pid, &self.marker)
                    && place.depth > depth
                {
                    continue;
                }
                asked.push(pid);
            }
            seen.insert(pid);
            stack.extend(list::children(pid).into_iter().map(|child| (child, depth)));
        }
        for pid in asked {
            self.ask(pid);
        }
        if let Some(emptying) = self.emptying_mut(scope) {
            emptying.processes = seen;
        }
    }

    /// Kills what is left; true if it is given up.
    fn kill_rest(&mut self, scope: ScopeId, rest: &Remaining, now: Instant) -> bool {
        let pids = rest.pids();
        let Some(emptying) = self.emptying_mut(scope) else { return true };
        let overdue = emptying.look.is_some_and(|look| look <= now);
        let Some(killing) = &mut emptying.killing else { return false };
        // What was killed is on its way, unless that takes suspiciously long.
        let new: Vec<i32> =
            pids.iter().copied().filter(|pid| overdue || !killing.killed.contains(pid)).collect();
        if !new.is_empty() {
            let mut found = kill_tree::stop_and_kill(&new);
            emptying.processes.extend(&found);
            found.retain(|&pid| killing.killed.insert(pid));
            // Nobody may signal another user's.
            for pid in found.into_iter().filter(|&pid| sys::kill(pid, 0) != Err(Errno::EPERM)) {
                self.log(0, LogEvent::Signaled { pid, signal: libc::SIGKILL });
            }
        }
        let Some(emptying) = self.emptying_mut(scope) else { return true };
        let Some(killing) = &mut emptying.killing else { return false };
        let given_up = now - killing.since >= PATIENCE;
        let weak = !killing.strong;
        let survivors: Vec<i32> = if given_up {
            pids.into_iter().filter(|&pid| killing.survivors.insert(pid)).collect()
        } else {
            Vec::new()
        };
        for pid in survivors {
            self.log(0, LogEvent::Survivor { pid, command: list::name(pid) });
        }
        given_up && weak
    }

    fn emptied(&mut self, scope: ScopeId) {
        let Some(emptying) = self.emptying_mut(scope) else { return };
        let elapsed = emptying.since.elapsed();
        let processes = emptying.processes.len();
        self.log(0, LogEvent::Emptied { scope: scope.0, processes, elapsed });
        self.close(scope);
    }

    /// Weak mode: what is left is left alone.
    fn give_up(&mut self, scope: ScopeId, left: usize) {
        let processes = if left == 1 { "process" } else { "processes" };
        let note = format!("scope {} is given up with {left} {processes} left", scope.0);
        self.log(0, LogEvent::Note(note));
        self.close(scope);
    }

    /// A scope is over: says so.
    fn close(&mut self, scope: ScopeId) {
        let heir = self.scopes.parent(scope);
        for id in self.scopes.subtree(scope).into_iter().rev() {
            let left = self.scopes.remove(id, heir);
            // Who waits for a part of it hears of that, too.
            if id != scope && left.as_ref().is_some_and(|scope| scope.emptying.is_some()) {
                self.ready.push_back(Event::Emptied { scope: id });
            }
            for process in left.into_iter().flat_map(|scope| scope.commands) {
                if let Some(command) = self.commands.get_mut(&process) {
                    command.wanted = false;
                }
            }
        }
        self.ready.push_back(Event::Emptied { scope });
    }
}
