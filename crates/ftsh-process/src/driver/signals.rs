//! Signals to the shell, and stops of the shell with its commands.

use std::time::Instant;

use super::ProcessDriver;
use crate::events::is_ending;
use crate::supervisor::Supervision;
use ftsh_machine::event::Event;
use ftsh_sys as sys;

impl ProcessDriver {
    /// Handles the signals that have arrived.
    pub(super) fn take_signals(&mut self) {
        let mut changed = false;
        let mut unknown = false;
        for caught in self.signals.take() {
            match caught.signal {
                libc::SIGCHLD => {
                    changed = true;
                    match self.processes.children().get(caught.sender) {
                        Some(child) if child.pidfd.is_some() => {}
                        Some(_) => self.reap(caught.sender),
                        None => unknown = true,
                    }
                }
                signal @ libc::SIGTSTP => self.suspend(signal, None),
                libc::SIGUSR1 => {
                    let forwarded = self.is_supervisor(caught.sender);
                    if self.signals.interrupts.count(libc::SIGUSR1, forwarded) {
                        self.console.line().request_page();
                    }
                }
                signal if is_ending(signal) => self.interrupted(signal, caught.sender),
                _ => {}
            }
        }
        if changed {
            self.handle_stopped();
        }
        // Simultaneous signals are delivered once, so other children may have changed too.
        if changed && self.processes.is_emptying() {
            self.adopt_orphans();
        } else if unknown {
            self.reap_orphans();
        }
        if changed && self.processes.children().unwatched() > 0 {
            self.processes.sweep_soon();
        }
    }

    fn is_supervisor(&self, sender: i32) -> bool {
        self.supervision.as_ref().map(Supervision::supervisor) == Some(sender)
    }

    /// Handles a signal that ends the shell.
    fn interrupted(&mut self, signal: i32, sender: i32) {
        if sender == self.processes.parent() {
            return; // a late interrupt for another thread
        }
        let forwarded = self.is_supervisor(sender);
        if self.signals.interrupts.count(signal, forwarded) {
            self.end_by(signal);
        }
    }

    /// Ends the run by a signal.
    pub(super) fn end_by(&mut self, signal: i32) {
        self.remote_control.note_interrupt();
        self.reactor.emit(Event::Interrupted(signal));
    }

    /// Handles children that were stopped, perhaps because they want the terminal.
    pub(super) fn handle_stopped(&mut self) {
        while self.job_control.has_terminal()
            && let Some((pid, signal)) = sys::stopped_child()
        {
            self.child_stopped(pid, signal);
        }
    }

    /// Handles a stopped child.
    pub(super) fn child_stopped(&mut self, pid: i32, signal: i32) {
        let is_command = self.processes.children().get(pid).is_some();
        let is_starting = self.reactor.is_starting();
        if self.job_control.child_stopped(pid, signal, is_command, is_starting) {
            self.suspend(signal, Some(pid));
        }
    }

    /// Hands the terminal to the command whose turn it is.
    pub(super) fn grant_terminal(&mut self, now: Instant) {
        let Self { processes, reactor, console, job_control, .. } = self;
        if let Some((signal, group)) = job_control.grant(processes, reactor, console, now) {
            self.suspend(signal, Some(group));
        }
    }

    /// Stops all commands, and then the shell by a signal, until the shell is continued. Then the
    /// terminal goes to `wanting`, or to the command that had it. If a command wants the terminal
    /// or was stopped at the terminal, the whole process group of the shell stops; a signal to the
    /// shell stops the shell alone.
    fn suspend(&mut self, signal: i32, wanting: Option<i32>) {
        self.console.line().hide_for_output();
        let groups = self.processes.children().pids().collect();
        let suspended = self.job_control.stop_all(groups, wanting);
        let channels = self.turns.leave_queues(&mut self.reactor);
        sys::suspend(signal, wanting.is_some());
        let note = self.turns.rejoin_queues(&mut self.reactor, &channels);
        self.console.show_note(note);
        self.job_control.resume_all(suspended);
    }
}
