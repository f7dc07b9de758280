//! Ends of commands, actions requested by the scopes, and samples of watched scopes.

use std::time::Instant;

use super::ProcessDriver;
use crate::events::signal_number;
use crate::scopes::{EndStep, ScopeAction};
use ftsh_machine::effect::ScopeId;
use ftsh_machine::event::{CommandStatus, Event};
use ftsh_machine::record::LogEvent;
use ftsh_sys as sys;

/// Number of ended commands after which ended orphans are reaped. While commands end without pause,
/// SIGCHLD is not caught, and orphans would accumulate.
const BETWEEN_ORPHANS: usize = 64;

impl ProcessDriver {
    /// Reaps ended children without a pidfd.
    pub(super) fn reap_unwatched(&mut self) {
        for pid in self.processes.children().unwatched_pids() {
            self.reap(pid);
        }
    }

    /// Reaps all ended commands.
    pub(super) fn reap_all(&mut self) {
        // A worker may have started a command that has ended since.
        self.take_answers();
        for pid in self.processes.children().pids().collect::<Vec<_>>() {
            self.reap(pid);
        }
    }

    /// Reaps a command's process, if it has ended.
    pub(super) fn reap(&mut self, pid: i32) {
        // With the process, the system forgets which signals it caught.
        self.job_control.note_handled_signals(pid);
        let Some((process, status)) = self.processes.reap(&mut self.reactor, pid) else { return };
        if self.processes.children().ended().is_multiple_of(BETWEEN_ORPHANS) {
            self.reap_orphans();
        }
        self.job_control.release(&mut self.reactor, pid, status);
        let Some((command, ended)) = self.leave(process) else {
            return self.console.report_bug("an unknown command ended");
        };
        let kill_count = &mut self.processes.children().kill_count;
        let status = if ended.is_awaited { kill_count.explain(status) } else { status };
        if self.console.logs_processes() {
            self.console.log(command.line, LogEvent::Exited { pid, status: describe(status) });
        }
        if ended.is_awaited {
            let reader_gone = command.readers.reader_gone(status);
            if status != CommandStatus::Exited(0) {
                // The signal that ended the command may have been sent to the shell too. It is
                // reported first.
                self.take_signals();
            }
            self.reactor.emit(Event::Exited { process, status, line: None, reader_gone });
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
        if self.processes.is_emptying() {
            let (scopes, mut system) = self.scopes_and_system();
            scopes.advance(&mut system, Instant::now());
            self.act();
        }
    }

    /// Takes a step towards the end of everything in a scope.
    pub(super) fn end_scope(&mut self, scope: ScopeId, step: EndStep) {
        self.processes.end_scope(scope, step);
        self.act();
    }

    /// Requests a sample of the watched scopes if one is due.
    pub(super) fn sample_scopes(&mut self, now: Instant) {
        if !self.processes.may_sample(now) {
            return;
        }
        // A sample that was not reported by its descriptor is taken before the next one.
        self.processes.take_samples(&mut self.reactor, &mut self.console);
        if !self.processes.is_sample_due(now) {
            return;
        }
        if self.processes.adopts() {
            self.adopt_orphans();
        }
        let Self { processes, reactor, job_control, .. } = self;
        if let Err(error) = processes.sample(reactor, job_control.terminal(), now) {
            self.console.log(0, LogEvent::Note(format!("cannot watch processes: {error}")));
        }
    }

    /// Performs the actions requested by the scope tree.
    pub(super) fn act(&mut self) {
        while let Some(action) = self.processes.scopes().take_action() {
            match action {
                ScopeAction::Signal(pid, signal) => {
                    // A stopped process handles the signal only after SIGCONT.
                    for signal in [signal_number(signal), libc::SIGCONT] {
                        if sys::kill(pid, signal).is_ok() {
                            self.console.log(0, LogEvent::Signaled { pid, signal });
                        }
                    }
                }
                ScopeAction::KillGroup(pid) => drop(sys::kill(-pid, libc::SIGKILL)),
                ScopeAction::KillTrees(scope, pids) => {
                    self.processes.kill_trees(&mut self.console, scope, &pids);
                }
                ScopeAction::Cancel(process) => {
                    // If the start has begun, the process is handled after the start.
                    if self.processes.stop_start(&mut self.reactor, process) {
                        self.leave(process);
                    }
                }
                ScopeAction::Emptied(scope) => {
                    self.tables.relays().report_emptied(&mut self.reactor, scope);
                }
                ScopeAction::Log(event) => {
                    let is_emptied = matches!(event, LogEvent::Emptied { .. });
                    self.console.log(0, event);
                    if is_emptied {
                        self.processes.warn_of_unseen_daemons(&mut self.console);
                    }
                }
            }
        }
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
