//! Endings: of commands, which are noticed, and of scopes, where what [`ScopeTree`] says is done.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::jobs::{Child, Stage, View};
use super::procs::features::needs_ps;
use super::procs::{kill_tree, list};
use super::scopes::{Action, ScopeTree};
use super::{CHILDREN, ProcessDriver};
use ftsh_machine::effect::{ProcessId, ScopeId};
use ftsh_machine::event::{Event, Status};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_sys as sys;

/// Orphans that have ended are looked for after so many commands, if not earlier.
const BETWEEN_ORPHANS: usize = 64;

/// How soon after a sign of it all children without a pidfd are looked at.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

impl ProcessDriver {
    /// Has the loop told of the end of a command's process.
    pub(super) fn watch(&mut self, pid: i32, process: ProcessId) {
        let wanted = self.children.pidfds && self.has_room_for_pidfd();
        let pidfd = if wanted { self.pidfd(pid).ok() } else { None };
        if pidfd.is_none() && self.children.sweep.is_none() {
            // It may have ended before it was known here.
            self.children.sweep = Some(Instant::now() + SWEEP_INTERVAL);
        }
        self.children.insert(pid, Child { process, pidfd });
    }

    fn pidfd(&mut self, pid: i32) -> std::io::Result<OwnedFd> {
        let pidfd = sys::pidfd_open(pid)?;
        self.poller.add(pidfd.as_fd(), CHILDREN + pid as u64)?;
        Ok(pidfd)
    }

    /// Looks for the end of all children that the loop isn't told of.
    pub(super) fn reap_unwatched(&mut self) {
        for pid in self.children.unwatched_pids() {
            self.reap(pid);
        }
    }

    /// Takes note of the end of all commands that have ended.
    pub(super) fn reap_all(&mut self) {
        // A worker may have started one that has ended since.
        self.take_answers();
        for pid in self.children.pids().collect::<Vec<_>>() {
            self.reap(pid);
        }
    }

    /// Takes note of the end of a command's process, if it has ended.
    pub(super) fn reap(&mut self, pid: i32) {
        self.note_answers(pid);
        let Some((child, status)) = self.children.end_of(pid) else { return };
        if let Some(pidfd) = &child.pidfd {
            self.poller.remove(pidfd.as_fd());
        }
        if self.children.ended().is_multiple_of(BETWEEN_ORPHANS) {
            self.reap_orphans();
        }
        self.release_terminal(pid, status);
        let process = child.process;
        let Some((command, ended)) = self.leave(process) else {
            return self.broken("a command ended that nobody knows");
        };
        let status = if ended.wanted { self.children.kill_count.explain(status) } else { status };
        if self.logs_processes() {
            self.log(command.line, LogEvent::Exited { pid, status: describe(status) });
        }
        if ended.wanted {
            let unread = command.readers.are_missed(status);
            if status != Status::Exited(0) {
                // What tells the shell to end may have ended the command, too: it comes first.
                self.take_signals();
            }
            self.ready.push_back(Event::Exited { process, status, line: None, unread });
        }
    }

    /// Takes note of all orphans that have ended.
    pub(super) fn reap_orphans(&mut self) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.reap(&mut system);
    }

    /// Takes note of the orphans that came to us.
    pub(super) fn adopt_orphans(&mut self) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.adopt(&mut system, Instant::now());
        self.act();
    }

    /// Goes on with the scopes that are being emptied.
    pub(super) fn settle(&mut self) {
        if self.scopes.is_emptying() {
            let (scopes, mut system) = self.scopes_and_system();
            scopes.settle(&mut system, Instant::now());
            self.act();
        }
    }

    /// A scope begins.
    pub(super) fn open_scope(&mut self, scope: ScopeId, parent: ScopeId) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.open(scope, parent, &mut system, Instant::now());
        self.act();
    }

    /// A scope ended well.
    pub(super) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.hand_over(scope, into, &mut system);
    }

    /// Does what is to be done about scopes.
    pub(super) fn act(&mut self) {
        while let Some(action) = self.scopes.take_action() {
            match action {
                Action::Ask(pid) => {
                    for signal in [libc::SIGTERM, libc::SIGCONT] {
                        if sys::kill(pid, signal).is_ok() {
                            self.log(0, LogEvent::Signaled { pid, signal });
                        }
                    }
                }
                Action::KillGroup(pid) => drop(sys::kill(-pid, libc::SIGKILL)),
                Action::KillTrees(scope, pids) => self.kill_trees(scope, &pids),
                Action::Cancel(process) => self.cancel(process),
                Action::Emptied(scope) => {
                    let (relays, mut outside) = self.relays();
                    relays.tell_emptied(&mut outside, scope);
                }
                Action::Log(event) => {
                    let is_emptied = matches!(event, LogEvent::Emptied { .. });
                    self.log(0, event);
                    if is_emptied {
                        self.warn_of_unseen_daemons();
                    }
                }
            }
        }
    }

    /// Says once, where daemons cannot be found, that what was ended may have left some.
    fn warn_of_unseen_daemons(&mut self) {
        if !self.scopes.adopts() && needs_ps() && !std::mem::replace(&mut self.has_warned, true) {
            let warning =
                "without /proc, daemons that an ended attempt has started are not found, and go on";
            self.log_at(Level::FAILURES, 0, LogEvent::Note(warning.into()));
        }
    }

    fn kill_trees(&mut self, scope: ScopeId, pids: &[i32]) {
        let found = if pids.is_empty() { Vec::new() } else { kill_tree::stop_and_kill(pids) };
        for pid in self.scopes.killed(scope, &found, Instant::now()) {
            // Nobody may signal another user's.
            if sys::kill(pid, 0) != Err(Errno::EPERM) {
                self.log(0, LogEvent::Signaled { pid, signal: libc::SIGKILL });
            }
        }
    }

    /// Keeps a command from being started, if it isn't too late: then it will show up as a process.
    fn cancel(&mut self, process: ProcessId) {
        let Some(command) = self.commands.get(&process) else { return };
        match &command.stage {
            Stage::Queued => {}
            Stage::Working(handle) if self.work.pool.cancel(handle) => {
                self.work.waiting.remove(&handle.ticket);
                self.work.starting -= usize::from(command.starting);
            }
            Stage::Working(_) | Stage::Running => return,
        }
        self.leave(process);
    }

    /// When there are too few descriptors: closes what variables have open without need; false if that is nothing.
    pub(super) fn put_away(&mut self) -> bool {
        if !self.io.has_idle() || !self.scopes.adopts() {
            return false;
        }
        let Some(before) = self.left_behind() else { return false };
        let mut open = HashSet::new();
        for &pid in &before {
            match list::files(pid, b" (deleted)") {
                Ok(files) => open.extend(files),
                Err(_) if matches!(list::one(pid), Ok(None)) => {} // it has ended
                Err(_) => return false,
            }
        }
        // What they start meanwhile has open what they have.
        match self.left_behind() {
            Some(after) if after.is_subset(&before) => self.io.put_away(&open),
            _ => false,
        }
    }

    /// All that ended commands left running; none if the lists cannot be read at the moment.
    fn left_behind(&mut self) -> Option<HashSet<i32>> {
        let (scopes, mut system) = self.scopes_and_system();
        let mut stack = scopes.reap(&mut system)?;
        let mut found = HashSet::new();
        while let Some(pid) = stack.pop() {
            if found.insert(pid) {
                stack.extend(list::children(pid).ok()?);
            }
        }
        Some(found)
    }

    /// The scopes, and what they look at.
    pub(super) fn scopes_and_system(&mut self) -> (&mut ScopeTree, View<'_>) {
        let view = View {
            children: &mut self.children,
            pool: &mut self.work.pool,
            answers: &mut self.work.answers,
            terminal: &mut self.tty.terminal,
            commands: &self.commands,
            scanner: &mut self.scanner,
        };
        (&mut self.scopes, view)
    }
}

fn describe(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("exit {code}"),
        Status::Signaled(signal) => {
            use nix::sys::signal::Signal;
            let name = Signal::try_from(signal).map(Signal::as_str);
            name.map_or_else(|_| format!("signal {signal}"), Into::into)
        }
        Status::OutOfMemory => "SIGKILL".into(),
        Status::Lost => "lost".into(),
    }
}
