//! Commands, from the request to the end.

use super::ProcessDriver;
use super::requests::{Admitter, DescriptorRequest};
use super::start::{Started, Starter, redirect_error};
use super::tables::Tables;
use crate::descriptors::TreePosition;
use crate::jobs::{ActiveCommand, CommandStage, JobResult};
use crate::program::Replacement;
use crate::scopes::EndedCommand;
use ftsh_machine::effect::{OperationId, ProcessId};
use ftsh_machine::event::{CommandStatus, Event, SpawnError, SpawnErrorKind};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::time::Time;
use ftsh_sys as sys;
use ftsh_sys::os_error::{self, plain};

impl ProcessDriver {
    /// Returns the decisions about requests.
    pub(super) fn admission(&mut self) -> Admitter<'_> {
        self.starter().admission
    }

    fn starter(&mut self) -> Starter<'_> {
        Starter {
            admission: Admitter {
                requests: &mut self.requests,
                tables: &mut self.tables,
                processes: &mut self.processes,
                turns: &self.turns,
                reactor: &mut self.reactor,
                terminal: self.job_control.terminal(),
            },
            environment: &self.environment,
            programs: &mut self.programs,
            console: &mut self.console,
        }
    }

    /// Serves a request, at once or when enough descriptors are free.
    pub(super) fn request(&mut self, request: DescriptorRequest) {
        if let Some((request, place)) = self.admission().request(request) {
            self.carry_out(request, &place);
        }
    }

    /// Serves the waiting requests that fit. `until` is the time at which the machine continues by
    /// itself.
    pub(super) fn admit(&mut self, until: Time) {
        while let Some((mut request, place)) = self.admission().next(until) {
            let mut is_wanted = true;
            if let DescriptorRequest::Run(run) | DescriptorRequest::Exec(run) = &mut request {
                let ended = self.leave(run.process).map(|(_, ended)| ended);
                is_wanted = ended.is_some_and(|ended| ended.is_awaited);
                // The scope may have been handed over.
                run.scope = ended.map_or(run.scope, |ended| ended.scope);
            }
            if is_wanted {
                self.carry_out(request, &place);
            }
            self.requests.note_free();
        }
    }

    fn carry_out(&mut self, request: DescriptorRequest, place: &TreePosition) {
        match request {
            DescriptorRequest::Run(run) => {
                let io = self.tables.io();
                let (need, around) = (io.need(run.io, &run.redirects), io.place(run.io));
                self.admission().make_room();
                let process = run.process;
                if let Some(started) = self.starter().run(*run) {
                    self.started(process, started);
                }
                if let Some(command) = self.processes.command(process) {
                    (command.need, command.place) = (need, around);
                }
            }
            DescriptorRequest::Exec(run) => self.starter().exec(*run),
            DescriptorRequest::Open(open) => {
                self.admission().make_room();
                self.tables.open(&mut self.reactor, open, place.opened());
            }
            DescriptorRequest::Query(operation, directory, query) => {
                let Self { tables, reactor, durations, .. } = self;
                tables.query(reactor, durations, operation, &directory, query);
            }
            DescriptorRequest::Enter(entry) => {
                let note = self.turns.enter(&mut self.reactor, *entry);
                self.console.show_note(note);
            }
        }
    }

    /// Ends an operation whose answer nothing waits for.
    pub(super) fn abandon(&mut self, operation: OperationId) {
        self.tables.relays().leave(&mut self.reactor, operation);
        if let Some(note) = self.turns.cancel(&mut self.reactor, operation) {
            self.console.show_note(note);
        } else if !self.admission().withdraw(operation) && self.reactor.cancel_operation(operation)
        {
            self.requests.note_free();
        }
    }

    /// Handles a started program, or the failure of its start.
    fn started(&mut self, process: ProcessId, (started, interactive): Started) {
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                if self.leave_wanted(process) {
                    self.reactor.refuse(process, error);
                }
                return;
            }
        };
        let pid = started.pid;
        // The shell has raised its own limit, which the process has inherited.
        self.requests.limit().restore_in(pid);
        let has_pidfd = self.processes.uses_pidfds() && self.admission().has_room_for_pidfd();
        self.processes.watch_end(&mut self.reactor, pid, process, has_pidfd);
        let Some(command) = self.processes.command(process) else {
            let _ = sys::kill(-pid, libc::SIGKILL);
            return self.console.report_bug("an unknown command was started");
        };
        command.stage = CommandStage::Running;
        let (name, line) = (command.name.clone(), command.line);
        let path = std::mem::take(&mut command.path);
        if started.lacks_rights {
            let note = format!(
                "`{name}` is a set-uid program, which has no further rights in `atomic in` without \
                 root"
            );
            self.console.log_at(Level::FAILURES, line, LogEvent::Note(note));
        }
        self.programs.remember(path, name.clone(), started.file);
        if self.console.logs_processes() {
            self.console.log(line, LogEvent::Spawned { pid, command: name.to_string() });
        }
        if self.processes.scopes().started(process, pid) {
            self.reactor.emit(Event::Spawned { process, pid });
        }
        let Self { processes, reactor, job_control, .. } = self;
        if let Some(signal) = job_control.offer(processes, reactor, pid, interactive) {
            self.child_stopped(pid, signal);
        }
        self.act();
    }

    pub(super) fn leave(&mut self, process: ProcessId) -> Option<(ActiveCommand, EndedCommand)> {
        let mut command = self.processes.remove(process)?;
        // Pipes of inputs are updated only after the command has released its ends.
        command.kept.clear();
        self.tables.reconsider_inputs(&mut self.reactor);
        self.console.line().reconsider();
        self.requests.note_free();
        let Self { processes, reactor, job_control, .. } = self;
        let ended = processes.leave_scope(reactor, job_control.terminal(), process)?;
        Some((command, ended))
    }

    /// Removes a command. Returns true if its end is to be reported.
    fn leave_wanted(&mut self, process: ProcessId) -> bool {
        self.leave(process).is_some_and(|(_, ended)| ended.is_awaited)
    }

    /// Handles a worker's result for a command.
    pub(super) fn command_answered(&mut self, process: ProcessId, answer: JobResult) {
        match answer {
            JobResult::Started(started, interactive) => {
                self.reactor.end_start();
                self.started(process, (started, interactive));
            }
            JobResult::Ended(ended) => {
                if let Some((command, _)) = self.leave(process).filter(|(_, it)| it.is_awaited) {
                    self.reactor.report_end(process, ended, &command.readers);
                }
            }
            JobResult::Ready(program, table) => {
                if self.leave_wanted(process) {
                    let replacement = table
                        .map_err(redirect_error)
                        .and_then(|table| Replacement::of(&program, &table));
                    let error = match replacement {
                        Ok(replacement) => self.replace_shell(&replacement),
                        Err(error) => error,
                    };
                    self.reactor.refuse(process, error);
                }
            }
            JobResult::Cancelled => {
                self.reactor.end_start();
                self.leave(process);
            }
            JobResult::Table(..)
            | JobResult::Reply(_)
            | JobResult::Channel(_)
            | JobResult::Left(_) => {
                self.console.report_bug("a command was answered like a query");
                if self.leave_wanted(process) {
                    let status = CommandStatus::Lost;
                    let (line, reader_gone) = (None, false);
                    self.reactor.emit(Event::Exited { process, status, line, reader_gone });
                }
            }
        }
    }

    /// Replaces the shell by a program. Returns only on failure.
    fn replace_shell(&mut self, replacement: &Replacement) -> SpawnError {
        // The program gets the limit of descriptors that the shell was started with.
        self.requests.limit().restore_in(self.processes.parent());
        // A thread writes the durations, and ends with this program.
        self.durations.finish();
        // The monitor would live on as a child of the new program.
        self.job_control.stop_key_monitor(&mut self.reactor);
        // The new program does not clean up.
        self.tables.registry().clear();
        let feeders = match self.tables.start_feeders() {
            Ok(feeders) => feeders,
            Err(error) => return error,
        };
        let reader = self.tables.start_reader().unwrap_or_default();
        let subreaper = self.processes.adopts();
        let error = match &self.supervision {
            Some(supervision) if !supervision.stays() => supervision.replace(replacement),
            supervision => {
                if let Some(supervision) = supervision {
                    sys::die_with_parent();
                    // The supervisor may have been killed before.
                    if !sys::is_parent(supervision.supervisor()) {
                        self.die_at_once();
                    }
                }
                replacement.execute(subreaper)
            }
        };
        Tables::stop_feeders(&feeders);
        if let Some(reader) = reader {
            let _ = sys::kill(reader, libc::SIGKILL);
        }
        let message = format!("{}: {}", replacement.file(), plain(&error));
        SpawnError { kind: SpawnErrorKind::System, message, errno: os_error::name(&error) }
    }
}
