//! Emptying of scopes: SIGTERM or another signal, then after the kill timeout SIGKILL until no process is left.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::ScopeTree;
use super::containment::StrayProcess;
use super::emptying::{Emptying, FIRST_INTERVAL};
use super::system::{ScopeAction, ScopeQueries};
use super::tree::Member;
use crate::procs::TagLookup;
use ftsh_machine::effect::{ProcessId, ScopeId, Signal};
use ftsh_machine::record::LogEvent;

/// Time after which a program that is still being loaded counts as hanging.
const LOADING_TIMEOUT: Duration = Duration::from_millis(50);
/// Time after SIGKILL after which a process counts as a survivor. In weak mode, the scope is then
/// given up.
const SURVIVOR_TIMEOUT: Duration = Duration::from_secs(1);

/// Processes left in a scope.
struct Remaining {
    /// Commands that are not started yet, but may be.
    starting: Vec<ProcessId>,
    /// Running commands with their scopes. Each leads its own group.
    commands: Vec<(i32, ScopeId)>,
    others: Vec<StrayProcess>,
    /// True if further processes may exist.
    uncertain: bool,
}

impl Remaining {
    fn is_empty(&self) -> bool {
        self.starting.is_empty()
            && !self.uncertain
            && self.commands.is_empty()
            && self.others.is_empty()
    }

    fn pids(&self) -> Vec<i32> {
        let commands = self.commands.iter().map(|(pid, _)| *pid);
        commands.chain(self.others.iter().map(|other| other.pid)).collect()
    }
}

impl ScopeTree {
    /// Sends the first signal to all processes of a scope.
    pub(super) fn terminate(&mut self, scope: ScopeId, now: Instant) {
        if !self.tree.has(scope) {
            // No process ever ran in the scope, or its processes were handed over.
            return self.tree.act(ScopeAction::Emptied(scope));
        }
        if self.tree.emptying.contains_key(&scope) {
            return;
        }
        let mut emptying = Emptying::new(now);
        let commands: Vec<_> = self.tree.commands_in(&self.tree.subtree(scope)).collect();
        emptying.groups.extend(commands.iter().filter_map(|(_, member)| member.pid));
        self.tree.emptying.insert(scope, emptying);
        self.tree.suspect(scope);
        self.tree.act(ScopeAction::Log(LogEvent::Emptying { scope: scope.0, kill: false }));
        // Pending starts are canceled.
        for (process, _) in commands.iter().filter(|(_, member)| member.pid.is_none()) {
            self.tree.act(ScopeAction::Cancel(*process));
        }
        // Commands are signaled at once. The search for their orphans follows when all requests of
        // this moment are known.
        for (_, Member { scope, pid, .. }) in commands {
            if let Some(pid) = pid {
                self.tree.act(ScopeAction::Signal(-pid, self.tree.signal(scope)));
            }
        }
    }

    /// Sends SIGTERM to the processes of a scope that received another signal.
    pub(super) fn escalate(&mut self, scope: ScopeId) {
        let mut scopes = self.tree.subtree(scope);
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else { return }; // empty by now
        if emptying.killing.is_some() {
            return;
        }
        emptying.again.extend(std::mem::take(&mut emptying.gentle));
        emptying.known = None;
        scopes.retain(|scope| self.tree.escalate(*scope));
        // What ended commands have left receives SIGTERM process by process.
        let groups: Vec<i32> = self.tree.groups_of(&scopes).collect();
        if let Some(emptying) = self.tree.emptying.get_mut(&scope) {
            emptying.groups.retain(|group| !groups.contains(group));
        }
        for pid in self.tree.running_in(&scopes) {
            self.tree.act(ScopeAction::Signal(-pid, Signal::Term));
        }
        self.tree.suspect(scope);
    }

    /// Begins the SIGKILL phase of a scope.
    pub(super) fn kill(&mut self, scope: ScopeId, strong: bool, now: Instant) {
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else { return }; // empty by now
        emptying.kill(strong, now);
        self.tree.act(ScopeAction::Log(LogEvent::Emptying { scope: scope.0, kill: true }));
        self.tree.suspect(scope);
    }

    /// Signals a command that started after its scope began to be emptied.
    pub(super) fn catch_up(&mut self, scope: ScopeId, pid: i32) {
        let above = self.tree.emptying_above(scope);
        if above.is_empty() {
            return;
        }
        self.tree.act(ScopeAction::Signal(-pid, self.tree.signal(scope)));
        self.tree.suspect(scope);
        for id in above {
            if let Some(emptying) = self.tree.emptying.get_mut(&id) {
                emptying.groups.insert(pid);
            }
        }
    }

    /// Returns the time of the next check of a scope that is being emptied.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.tree.emptying.values().filter_map(|emptying| emptying.look).min()
    }

    /// Advances the scopes that are being emptied and may have changed.
    pub(crate) fn advance(&mut self, system: &mut dyn ScopeQueries, now: Instant) {
        if self.tree.emptying.is_empty() {
            return;
        }
        let mut scopes = self.tree.take_suspects();
        let due = self.tree.emptying.iter().filter(|(_, emptying)| emptying.is_due(now));
        scopes.extend(due.map(|(scope, _)| scope));
        let (tree, containment) = (&mut self.tree, &mut self.containment);
        if scopes.is_empty() || containment.postpone(tree, system, &scopes, now) {
            return;
        }
        let certain = self.containment.scan(&mut self.tree, system, &scopes, now);
        for scope in scopes {
            self.advance_scope(scope, certain, system, now);
        }
    }

    fn remaining(&self, scope: ScopeId, certain: bool, system: &mut dyn ScopeQueries) -> Remaining {
        let scopes = self.tree.subtree(scope);
        let members: Vec<_> = self.tree.commands_in(&scopes).collect();
        let starting = members.iter().filter(|(_, member)| member.pid.is_none());
        Remaining {
            starting: starting.map(|(process, _)| *process).collect(),
            commands: members
                .iter()
                .filter_map(|(_, member)| Some((member.pid?, member.scope)))
                .collect(),
            others: self.containment.others(&self.tree, system, scope),
            uncertain: !certain,
        }
    }

    fn advance_scope(
        &mut self,
        scope: ScopeId,
        certain: bool,
        system: &mut dyn ScopeQueries,
        now: Instant,
    ) {
        let mut remaining = self.remaining(scope, certain, system);
        let (adopts, slowest) = (self.containment.adopts(), self.containment.slowest_look());
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else { return }; // the scope is not being emptied
        emptying.known = self.containment.starts(&remaining.pids());
        if now - emptying.since >= LOADING_TIMEOUT {
            let loading = remaining.starting.iter().flat_map(|&process| system.loading(process));
            let others = loading.map(|pid| StrayProcess { pid, scope, depth: 0, nested: false });
            remaining.others.extend(others.collect::<Vec<_>>());
        }
        if remaining.is_empty() {
            // A list of all processes may miss a process that changes meanwhile.
            if adopts || emptying.clean || emptying.processes.is_empty() {
                return self.emptied(scope, now);
            }
            emptying.clean = true;
            emptying.look = Some(now + FIRST_INTERVAL);
            return;
        }
        emptying.clean = false;
        let is_killing = emptying.killing.is_some();
        // The remaining processes are children of this process or descend from them, so their ends
        // are reported.
        let is_reported =
            adopts && !is_killing && !remaining.uncertain && remaining.starting.is_empty();
        let overdue = emptying.is_due(now);
        if overdue {
            emptying.wait_longer(slowest);
        }
        emptying.look = (!is_reported).then(|| now + emptying.interval());
        if is_killing {
            self.kill_rest(scope, &remaining, overdue, system, now);
        } else {
            self.ask_rest(scope, &remaining, system, now);
        }
    }

    /// Sends the signal of their scopes to new processes outside the groups of commands.
    fn ask_rest(
        &mut self,
        scope: ScopeId,
        remaining: &Remaining,
        system: &mut dyn ScopeQueries,
        now: Instant,
    ) {
        let commands = remaining.commands.iter().map(|&(pid, scope)| (pid, 0, scope));
        let others = remaining.others.iter().filter(|other| !other.nested);
        let others = others.map(|other| (other.pid, other.depth, other.scope));
        let stack = commands.chain(others);
        let mut stack: Vec<(i32, usize, Signal)> =
            stack.map(|(pid, depth, scope)| (pid, depth, self.tree.signal(scope))).collect();
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else {
            return debug_assert!(false, "{scope:?} is looked at, but not being emptied");
        };
        let roots: HashSet<i32> = stack.iter().map(|&(pid, ..)| pid).collect();
        let mut asked = Vec::new();
        // Found again from the roots: the id of an ended process may belong to another one by now.
        let lists_all = std::mem::take(&mut emptying.unlisted);
        let mut seen = HashSet::new();
        while let Some((pid, depth, signal)) = stack.pop() {
            let is_new = emptying.again.remove(&pid) || !emptying.processes.contains(&pid);
            if !seen.insert(pid) || !is_new && !lists_all {
                continue;
            }
            if is_new && !system.group(pid).is_some_and(|group| emptying.groups.contains(&group)) {
                // A nested shell ends its own processes.
                if !roots.contains(&pid)
                    && let TagLookup::Ours(tag) = system.tag(pid)
                    && tag.depth > depth
                {
                    continue;
                }
                asked.push((pid, signal));
            }
            emptying.processes.insert(pid);
            if signal != Signal::Term {
                emptying.gentle.insert(pid);
            }
            match system.children(pid) {
                Ok(children) => {
                    stack.extend(children.into_iter().map(|child| (child, depth, signal)));
                }
                Err(_) => emptying.unlisted = true,
            }
        }
        if emptying.unlisted {
            emptying.look.get_or_insert(now + emptying.interval());
        }
        for (pid, signal) in asked {
            self.tree.act(ScopeAction::Signal(pid, signal));
        }
    }

    /// Kills the remaining processes.
    fn kill_rest(
        &mut self,
        scope: ScopeId,
        remaining: &Remaining,
        overdue: bool,
        system: &mut dyn ScopeQueries,
        now: Instant,
    ) {
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else {
            return debug_assert!(false, "{scope:?} is looked at, but not being emptied");
        };
        let Some(killing) = &mut emptying.killing else {
            return debug_assert!(false, "{scope:?} is killed before its time");
        };
        let pids = remaining.pids();
        // Killed processes end soon, so they are killed again only when overdue.
        let is_new = |pid: &i32| overdue || !killing.killed.contains(pid);
        let new: Vec<i32> = pids.iter().copied().filter(is_new).collect();
        let is_late = now - killing.since >= SURVIVOR_TIMEOUT;
        let mut survivors = pids.clone();
        survivors.retain(|&pid| is_late && killing.survivors.insert(pid));
        if is_late && !killing.strong {
            killing.given_up = Some(pids.len());
        }
        // Needed without new processes too: the result closes a scope that was given up.
        self.tree.act(ScopeAction::KillTrees(scope, new));
        for pid in survivors {
            self.tree.act(ScopeAction::Log(LogEvent::Survivor { pid, command: system.name(pid) }));
        }
    }

    /// Records the processes killed for a scope. Returns those not recorded before.
    pub(crate) fn killed(&mut self, scope: ScopeId, found: &[i32], now: Instant) -> Vec<i32> {
        let adopts = self.containment.adopts();
        let Some(emptying) = self.tree.emptying.get_mut(&scope) else { return Vec::new() }; // over by now
        let Some(killing) = &mut emptying.killing else { return Vec::new() };
        let new = found.iter().copied().filter(|&pid| killing.killed.insert(pid)).collect();
        let given_up = killing.given_up;
        let before = emptying.processes.len();
        emptying.processes.extend(found);
        if !adopts && emptying.processes.len() > before {
            // A process killed now may have started others that no list has shown.
            emptying.known = None;
            emptying.look = Some(now);
        }
        if let Some(left) = given_up {
            self.give_up(scope, left);
        }
        new
    }

    fn emptied(&mut self, scope: ScopeId, now: Instant) {
        let Some(emptying) = self.tree.emptying.get(&scope) else {
            return debug_assert!(false, "{scope:?} is empty, but wasn't being emptied");
        };
        let (processes, elapsed) = (emptying.processes.len(), now - emptying.since);
        self.tree.act(ScopeAction::Log(LogEvent::Emptied { scope: scope.0, processes, elapsed }));
        self.close(scope);
    }

    /// Closes a scope although processes are left, in weak mode.
    fn give_up(&mut self, scope: ScopeId, left: usize) {
        let processes = if left == 1 { "process" } else { "processes" };
        let note = format!("scope {} is given up with {left} {processes} left", scope.0);
        self.tree.act(ScopeAction::Log(LogEvent::Note(note)));
        self.close(scope);
    }

    /// Closes a scope and reports that it is empty.
    fn close(&mut self, scope: ScopeId) {
        let heir = self.tree.parent(scope);
        for id in self.tree.subtree(scope).into_iter().rev() {
            // Inner scopes that are being emptied are reported too.
            if id != scope && self.tree.emptying.contains_key(&id) {
                self.tree.act(ScopeAction::Emptied(id));
            }
            for process in self.remove(id, heir).into_iter().flat_map(|scope| scope.commands) {
                self.tree.stop_awaiting(process);
            }
        }
        self.tree.act(ScopeAction::Emptied(scope));
    }
}
