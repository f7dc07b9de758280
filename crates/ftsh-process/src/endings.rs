//! Ends of commands, actions requested by [`ScopeTree`], and samples of watched scopes.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::jobs::{CommandChild, CommandStage, SystemView};
use super::os::signal::number;
use super::procs::features::needs_ps;
use super::procs::{kill_tree, list};
use super::scopes::{EndStep, ScopeAction, ScopeTree};
use super::watch::SampleReport;
use super::{CHILDREN, ProcessDriver, WATCHES};
use ftsh_machine::effect::{OperationId, ProcessId, ScopeId};
use ftsh_machine::event::{CommandStatus, Event};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_sys as sys;

/// Number of ended commands after which ended orphans are reaped.
const BETWEEN_ORPHANS: usize = 64;

/// Delay of a check of all children without a pidfd.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

impl ProcessDriver {
    /// Ends an operation whose answer nothing waits for.
    pub(super) fn abandon(&mut self, operation: OperationId) {
        let (relays, mut external_fds) = self.relays();
        relays.leave(&mut external_fds, operation);
        let mut is_turn = false;
        self.take_turns(|turns, external_fds| {
            let note = turns.cancel(external_fds, operation);
            is_turn = note.is_some();
            note.flatten()
        });
        if is_turn {
            return;
        }
        if !self.withdraw(operation)
            && let Some(handle) = self.work.operations.remove(&operation)
        {
            self.work.waiting.remove(&handle.ticket);
            self.work.pool.cancel(&handle);
            self.admission.note_free();
        }
    }

    /// Watches the process of a command for its end.
    pub(super) fn watch(&mut self, pid: i32, process: ProcessId) {
        let wanted = self.children.pidfds && self.has_room_for_pidfd();
        let pidfd = if wanted { self.pidfd(pid).ok() } else { None };
        if pidfd.is_none() && self.children.sweep.is_none() {
            // The process may have ended already.
            self.children.sweep = Some(Instant::now() + SWEEP_INTERVAL);
        }
        self.children.insert(pid, CommandChild { process, pidfd });
    }

    fn pidfd(&mut self, pid: i32) -> std::io::Result<OwnedFd> {
        let pidfd = sys::pidfd_open(pid)?;
        self.poller.add(pidfd.as_fd(), CHILDREN + pid as u64)?;
        Ok(pidfd)
    }

    /// Reaps ended children without a pidfd.
    pub(super) fn reap_unwatched(&mut self) {
        for pid in self.children.unwatched_pids() {
            self.reap(pid);
        }
    }

    /// Reaps all ended commands.
    pub(super) fn reap_all(&mut self) {
        // A worker may have started a command that has ended since.
        self.take_answers();
        for pid in self.children.pids().collect::<Vec<_>>() {
            self.reap(pid);
        }
    }

    /// Reaps a command's process, if it has ended.
    pub(super) fn reap(&mut self, pid: i32) {
        self.note_handled_signals(pid);
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
            return self.report_bug("an unknown command ended");
        };
        let status =
            if ended.is_awaited { self.children.kill_count.explain(status) } else { status };
        if self.logs_processes() {
            self.log(command.line, LogEvent::Exited { pid, status: describe(status) });
        }
        if ended.is_awaited {
            let reader_gone = command.readers.reader_gone(status);
            if status != CommandStatus::Exited(0) {
                // The signal that ended the command may have been sent to the shell too. It is
                // reported first.
                self.take_signals();
            }
            self.ready.push_back(Event::Exited { process, status, line: None, reader_gone });
        }
    }

    /// Reaps all ended orphans.
    pub(super) fn reap_orphans(&mut self) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.reap(&mut system);
    }

    /// Assigns new orphans to scopes.
    pub(super) fn adopt_orphans(&mut self) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.adopt(&mut system, Instant::now());
        self.act();
    }

    /// Advances the scopes that are being emptied.
    pub(super) fn advance_scopes(&mut self) {
        if self.scopes.is_emptying() {
            let (scopes, mut system) = self.scopes_and_system();
            scopes.advance(&mut system, Instant::now());
            self.act();
        }
    }

    /// Opens a scope.
    pub(super) fn open_scope(&mut self, scope: ScopeId, parent: ScopeId) {
        let (scopes, mut system) = self.scopes_and_system();
        scopes.open(scope, parent, &mut system, Instant::now());
        self.act();
    }

    /// Closes a scope that ended in success.
    pub(super) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.watches.end(&[scope]);
        let (scopes, mut system) = self.scopes_and_system();
        scopes.hand_over(scope, into, &mut system);
    }

    /// Takes a step towards the end of everything in a scope, which is not watched any more.
    pub(super) fn end_scope(&mut self, scope: ScopeId, step: EndStep) {
        if !self.watches.is_empty() {
            self.watches.end(&self.scopes.inside(scope));
        }
        self.scopes.end(scope, step, Instant::now());
        self.act();
    }

    /// Handles the result of the last sample.
    pub(super) fn take_samples(&mut self) {
        for report in self.watches.take_reports() {
            match report {
                SampleReport::Stalled(scope) => self.ready.push_back(Event::Stalled { scope }),
                SampleReport::OverMemory(scope, memory) => {
                    self.ready.push_back(Event::OverMemory { scope, memory });
                }
                SampleReport::Unreadable(scope) => {
                    let note = format!(
                        "no process of scope {} can be read, so `stalled` counts it as progressing",
                        scope.0
                    );
                    self.log_at(Level::FAILURES, 0, LogEvent::Note(note));
                }
            }
        }
    }

    /// Requests a sample of the watched scopes if one is due.
    pub(super) fn sample_scopes(&mut self, now: Instant) {
        if self.watches.due().is_none_or(|due| due > now) {
            return;
        }
        self.take_samples();
        if !self.watches.is_sample_due(now) {
            return;
        }
        if self.scopes.adopts() {
            self.adopt_orphans();
        }
        let scopes = self.watches.scopes();
        let (tree, mut system) = self.scopes_and_system();
        let mut roots: Vec<(ScopeId, Vec<i32>)> = Vec::with_capacity(scopes.len());
        for scope in scopes {
            roots.push((scope, tree.roots(scope, &mut system)));
        }
        match self.watches.sample(now, roots.into_iter().collect()) {
            // Without this descriptor, news is taken when the next sample is due.
            Ok(Some(news)) => drop(self.poller.add(news, WATCHES)),
            Ok(None) => {}
            Err(error) => {
                let note = format!("cannot watch processes: {error}");
                self.log(0, LogEvent::Note(note));
            }
        }
    }

    /// Performs the actions requested by the scope tree.
    pub(super) fn act(&mut self) {
        while let Some(action) = self.scopes.take_action() {
            match action {
                ScopeAction::Signal(pid, signal) => {
                    for signal in [number(signal), libc::SIGCONT] {
                        if sys::kill(pid, signal).is_ok() {
                            self.log(0, LogEvent::Signaled { pid, signal });
                        }
                    }
                }
                ScopeAction::KillGroup(pid) => drop(sys::kill(-pid, libc::SIGKILL)),
                ScopeAction::KillTrees(scope, pids) => self.kill_trees(scope, &pids),
                ScopeAction::Cancel(process) => self.cancel(process),
                ScopeAction::Emptied(scope) => {
                    let (relays, mut outside) = self.relays();
                    relays.report_emptied(&mut outside, scope);
                }
                ScopeAction::Log(event) => {
                    let is_emptied = matches!(event, LogEvent::Emptied { .. });
                    self.log(0, event);
                    if is_emptied {
                        self.warn_of_unseen_daemons();
                    }
                }
            }
        }
    }

    /// Warns once, where daemons cannot be found, that a canceled attempt may have left some.
    fn warn_of_unseen_daemons(&mut self) {
        if !self.scopes.adopts() && needs_ps() && !std::mem::replace(&mut self.has_warned, true) {
            let warning =
                "without /proc, daemons of a canceled attempt are not found and keep running";
            self.log_at(Level::FAILURES, 0, LogEvent::Note(warning.into()));
        }
    }

    fn kill_trees(&mut self, scope: ScopeId, pids: &[i32]) {
        let found = if pids.is_empty() { Vec::new() } else { kill_tree::stop_and_kill(pids) };
        for pid in self.scopes.killed(scope, &found, Instant::now()) {
            // A process of another user cannot be signaled.
            if sys::kill(pid, 0) != Err(Errno::EPERM) {
                self.log(0, LogEvent::Signaled { pid, signal: libc::SIGKILL });
            }
        }
    }

    /// Prevents the start of a command. If the start has begun, the process is handled after the
    /// start.
    fn cancel(&mut self, process: ProcessId) {
        let Some(command) = self.commands.get(&process) else { return };
        match &command.stage {
            CommandStage::Queued => {}
            CommandStage::Working(handle) if self.work.pool.cancel(handle) => {
                self.work.waiting.remove(&handle.ticket);
                self.work.starting -= usize::from(command.starting);
            }
            CommandStage::Working(_) | CommandStage::Running => return,
        }
        self.leave(process);
    }

    /// Closes unused files of variables to free descriptors. Returns false if none was closed.
    pub(super) fn close_unused(&mut self) -> bool {
        if !self.io.has_idle() || !self.scopes.adopts() {
            return false;
        }
        let Some(before) = self.left_behind() else { return false };
        let mut open = HashSet::new();
        for &pid in &before {
            match list::files(pid, b" (deleted)") {
                Ok(files) => open.extend(files),
                Err(_) if matches!(list::one(pid), Ok(None)) => {} // the process has ended
                Err(_) => return false,
            }
        }
        // Processes started meanwhile inherit the open files of these processes.
        match self.left_behind() {
            Some(after) if after.is_subset(&before) => self.io.close_unused(&open),
            _ => false,
        }
    }

    /// Returns the processes left by ended commands; none if they cannot be listed now.
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

    /// Returns the scopes and their queries.
    pub(super) fn scopes_and_system(&mut self) -> (&mut ScopeTree, SystemView<'_>) {
        let view = SystemView {
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

fn describe(status: CommandStatus) -> String {
    match status {
        CommandStatus::Exited(code) => format!("exit {code}"),
        CommandStatus::Signaled(signal) => {
            use nix::sys::signal::Signal;
            let name = Signal::try_from(signal).map(Signal::as_str);
            name.map_or_else(|_| format!("signal {signal}"), Into::into)
        }
        CommandStatus::OutOfMemory => "SIGKILL".into(),
        CommandStatus::Lost => "lost".into(),
    }
}
