//! Commands, from the request to the end.

use std::time::Duration;

use bstr::BString;

use super::ProcessDriver;
use super::channels;
use super::fds::path::TaskDirectory;
use super::fds::stream::{self, Ended};
use super::fds::{Fd, FdError, Readers};
use super::jobs::{ActiveCommand, CommandStage, JobRecipient, JobResult};
use super::os::workers::Control;
use super::program::{ProgramSpec, Replacement, StartedProgram};
use super::scopes::EndedCommand;
use super::tag::{self, KillTimeout, limit_grants};
use crate::non_blocking_writer;
use ftsh_machine::effect::{Action, Environment, ProcessId, Run, ScopeId};
use ftsh_machine::event::{CommandStatus, Event, SpawnError, SpawnErrorKind};
use ftsh_machine::record::{Level, LogEvent};
use ftsh_machine::time::Deadline;
use ftsh_sys as sys;
use ftsh_sys::os_error::{self, plain};

/// Interval of checks for cancellation while an `exec` waits.
const PAUSE: Duration = Duration::from_millis(20);

impl ProcessDriver {
    /// Starts a command.
    pub(super) fn run(&mut self, run: Run) {
        self.make_room();
        let mut command = ActiveCommand::new(&run);
        let Run {
            process,
            scope,
            action,
            directory,
            umask,
            io,
            is_last,
            redirects,
            feeds,
            deadline,
            grace,
            ..
        } = run;
        let directory = TaskDirectory::of(&directory, &self.views);
        let plan = self.io.plan(io, &directory, umask, redirects);
        if is_last {
            self.io.close(io);
        }
        let plan = plan.and_then(|mut plan| {
            if matches!(action, Action::Print(_)) {
                return Ok(plan); // reads no input
            }
            command.kept =
                self.input_spools.connect(&mut plan, &mut self.poller).map_err(FdError::Pipe)?;
            Ok(plan)
        });
        let mut plan = match plan {
            Ok(plan) => plan,
            Err(error) => return self.refuse(process, redirect_error(error)),
        };
        command.kept.extend(plan.written());
        command.readers = match &action {
            Action::Program { .. } => {
                let has_room = self.has_room_for_pidfd();
                Readers::of(&plan, feeds, &self.io.pipe_watches, has_room)
            }
            Action::Print(_) | Action::Copy | Action::ReadLine => {
                Readers::of_builtin(feeds & 1 << 1 != 0)
            }
        };
        command.quiet = self.tty.status_line.is_on() && plan.is_quiet();
        if !command.quiet {
            self.tty.status_line.hide_for_output();
        }
        // A command without the terminal is stopped when it opens the terminal, and gets it then.
        // If it got the terminal at once, no status line could be shown.
        let is_quiet = command.quiet;
        if let Err(error) = plan.begin() {
            return self.refuse(process, redirect_error(error));
        }
        match action {
            Action::Program { words, environment, overrides } => {
                let kill_timeout = self.kill_timeout(grace);
                let mut child_env =
                    self.command_env(deadline, kill_timeout, &directory, &environment);
                if let Some(inside) = self.turns.channel_env(|| self.scopes.around(scope)) {
                    child_env.push((channels::VARIABLE, inside.into()));
                }
                let notes = kill_timeout.note() + &self.grants(scope, deadline);
                child_env.push((tag::VARIABLE, self.scanner.tagger.value(scope, &notes)));
                let mut program = ProgramSpec {
                    words,
                    environment,
                    child_env,
                    overrides,
                    directory,
                    umask,
                    file: None,
                };
                command.path = program.path().into();
                if self.found.look_up(&mut program) && !plan.may_block() {
                    let table = plan.carry_out(&Control::default());
                    let interactive =
                        !is_quiet && table.as_ref().is_ok_and(|table| !table.reads_nothing());
                    let started =
                        table.map_err(redirect_error).and_then(|table| program.start(&table));
                    self.enter(process, scope, command);
                    self.started(process, started, interactive);
                } else {
                    self.start_by_worker(process, scope, command, move |control| {
                        let table = match plan.carry_out(control) {
                            Ok(table) => table,
                            Err(error) => {
                                return JobResult::Started(Err(redirect_error(error)), false);
                            }
                        };
                        if !control.commit() {
                            return JobResult::Cancelled;
                        }
                        JobResult::Started(
                            program.start(&table),
                            !is_quiet && !table.reads_nothing(),
                        )
                    });
                }
            }
            Action::Print(bytes) if plan.may_block() => {
                self.work(process, scope, command, move |control| {
                    JobResult::Ended(match plan.carry_out(control) {
                        Ok(table) => stream::print(&table, &bytes, control),
                        Err(error) => Err(redirect_error(error)),
                    })
                });
            }
            Action::Print(bytes) => match plan.carry_out(&Control::default()) {
                Err(error) => self.refuse(process, redirect_error(error)),
                Ok(table) => match stream::print_now(&table, &bytes) {
                    Ok(ended) => self.ended(process, ended, &command.readers),
                    Err(left) => self.work(process, scope, command, move |control| {
                        let rest = &bytes[bytes.len() - left..];
                        JobResult::Ended(stream::print(&table, rest, control))
                    }),
                },
            },
            Action::Copy => self.work(process, scope, command, move |control| {
                JobResult::Ended(match plan.carry_out(control) {
                    Ok(table) => stream::copy(&table, control),
                    Err(error) => Err(redirect_error(error)),
                })
            }),
            Action::ReadLine if plan.may_block() => {
                self.work(process, scope, command, move |control| {
                    JobResult::Ended(match plan.carry_out(control) {
                        Ok(table) => stream::read_line(&table, Vec::new(), control),
                        Err(error) => Err(redirect_error(error)),
                    })
                });
            }
            Action::ReadLine => match plan.carry_out(&Control::default()) {
                Err(error) => self.refuse(process, redirect_error(error)),
                Ok(table) if table.get(0).is_some_and(Fd::is_memory) => {
                    let ended = stream::read_line(&table, Vec::new(), &Control::default());
                    self.ended(process, ended, &command.readers);
                }
                Ok(table) => match stream::read_line_now(&table) {
                    Ok(ended) => self.ended(process, ended, &command.readers),
                    Err(begun) => self.work(process, scope, command, move |control| {
                        JobResult::Ended(stream::read_line(&table, begun, control))
                    }),
                },
            },
        }
    }

    /// Replaces the shell after the files were opened.
    pub(super) fn exec(&mut self, run: Run) {
        let command = ActiveCommand::new(&run);
        let Run {
            process, scope, action, directory, umask, io, redirects, deadline, grace, ..
        } = run;
        let Action::Program { words, environment, overrides } = action else {
            let message = "only a program can replace the shell".into();
            let error = SpawnError::new(SpawnErrorKind::NotExecutable, message);
            return self.refuse(process, error);
        };
        let directory = TaskDirectory::of(&directory, &self.views);
        let plan = self.io.plan(io, &directory, umask, redirects).and_then(|mut plan| {
            self.input_spools.hand_over(&mut plan)?;
            Ok(plan)
        });
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return self.refuse(process, redirect_error(error)),
        };
        self.tty.status_line.hide();
        let child_env =
            self.command_env(deadline, self.kill_timeout(grace), &directory, &environment);
        let program =
            ProgramSpec { words, environment, child_env, overrides, directory, umask, file: None };
        self.work(process, scope, command, move |control| {
            let table = plan.carry_out(control);
            // Output of the shell comes before output of the program.
            while !non_blocking_writer::wait(Some(PAUSE)) && !control.is_cancelled() {}
            JobResult::Ready(Box::new(program), table)
        });
    }

    /// Replaces the shell by a program. Returns only on failure.
    fn replace_shell(&mut self, replacement: &Replacement) -> SpawnError {
        self.admission.limit.restore_in(self.children.parent);
        self.durations.finish();
        self.stop_key_monitor();
        // The new program does not clean up.
        self.cleanup.registry.clear();
        let feeders = match self.start_feeders() {
            Ok(feeders) => feeders,
            Err(error) => return error,
        };
        let reader = self.start_reader().unwrap_or_default();
        let subreaper = self.scopes.adopts();
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
        Self::stop_feeders(&feeders);
        if let Some(reader) = reader {
            let _ = sys::kill(reader, libc::SIGKILL);
        }
        let message = format!("{}: {}", replacement.file(), plain(&error));
        SpawnError { kind: SpawnErrorKind::System, message, errno: os_error::name(&error) }
    }

    /// Returns the kill timeout for shells inside a command.
    fn kill_timeout(&self, grace: Option<Duration>) -> KillTimeout {
        grace.map_or(self.config.kill_timeout, |grace| KillTimeout::of(grace).inside())
    }

    /// Returns the environment variables set by the shell for every command.
    fn command_env(
        &self,
        deadline: Deadline,
        kill_timeout: KillTimeout,
        directory: &TaskDirectory,
        environment: &Environment,
    ) -> Vec<(&'static str, BString)> {
        let mut child_env = self.config.child_env.clone();
        if kill_timeout != self.config.kill_timeout
            && let Some((_, time)) =
                child_env.iter_mut().find(|(name, _)| *name == KillTimeout::VARIABLE)
        {
            *time = kill_timeout.written().into();
        }
        if let Some(directory) = &directory.path
            && environment.iter().any(|(name, _)| name == "PWD")
        {
            child_env.push(("PWD", BString::clone(directory)));
        }
        if let Some(moment) = deadline.moment() {
            child_env.push((limit_grants::VARIABLE, self.limit_texts.of(moment, &self.clock)));
        }
        child_env
    }

    /// Returns the tag notes about the time limit of a scope.
    fn grants(&mut self, scope: ScopeId, deadline: Deadline) -> String {
        if deadline == Deadline::NONE {
            return String::new();
        }
        let around = self.scopes.around(scope);
        let (texts, clock, pid) = (&self.limit_texts, &self.clock, self.children.parent);
        let grants = &mut self.scopes.grants;
        let text = |it: Deadline| it.moment().map(|it| texts.of(it, clock)).unwrap_or_default();
        grants.note(&self.scanner.tagger, pid, deadline, &around, text)
    }

    /// Reports a command that could not be started.
    fn refuse(&mut self, process: ProcessId, error: SpawnError) {
        self.ready.push_back(Event::SpawnFailed { process, error });
    }

    fn ended(&mut self, process: ProcessId, ended: Ended, readers: &Readers) {
        self.ready.push_back(match ended {
            Ok((status, line)) => {
                let reader_gone = readers.reader_gone(status);
                Event::Exited { process, status, line, reader_gone }
            }
            Err(error) => Event::SpawnFailed { process, error },
        });
    }

    pub(super) fn enter(&mut self, process: ProcessId, scope: ScopeId, command: ActiveCommand) {
        self.scopes.begin(scope, process);
        self.commands.insert(process, command);
    }

    /// Removes a command that has ended.
    pub(super) fn leave(&mut self, process: ProcessId) -> Option<(ActiveCommand, EndedCommand)> {
        let mut command = self.commands.remove(&process)?;
        command.kept.clear();
        self.reconsider_inputs();
        self.tty.status_line.reconsider();
        self.admission.note_free();
        let (scopes, mut system) = self.scopes_and_system();
        let ended = scopes.ended(process, &mut system)?;
        Some((command, ended))
    }

    /// Removes a command. Returns true if its end is to be reported.
    fn leave_wanted(&mut self, process: ProcessId) -> bool {
        self.leave(process).is_some_and(|(_, ended)| ended.is_awaited)
    }

    /// Executes a command by a worker.
    fn work(
        &mut self,
        process: ProcessId,
        scope: ScopeId,
        command: ActiveCommand,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        self.submit(process, scope, command, job);
    }

    fn submit(
        &mut self,
        process: ProcessId,
        scope: ScopeId,
        mut command: ActiveCommand,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) -> bool {
        match self.work.pool.submit(job) {
            Ok(handle) => {
                self.work.waiting.insert(handle.ticket, JobRecipient::Command(process));
                command.stage = CommandStage::Working(handle);
                self.enter(process, scope, command);
                true
            }
            Err(error) => {
                let error = FdError::Worker(error).into_spawn_error(SpawnErrorKind::System);
                self.refuse(process, error);
                false
            }
        }
    }

    /// Starts a command by a worker: opens its files, finds and starts its program.
    fn start_by_worker(
        &mut self,
        process: ProcessId,
        scope: ScopeId,
        command: ActiveCommand,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        if self.submit(process, scope, command, job)
            && let Some(command) = self.commands.get_mut(&process)
        {
            command.starting = true;
            self.work.starting += 1;
        }
    }

    /// Handles a worker's result for a command.
    pub(super) fn command_answered(&mut self, process: ProcessId, answer: JobResult) {
        match answer {
            JobResult::Started(started, interactive) => {
                self.work.starting -= 1;
                self.started(process, started, interactive);
            }
            JobResult::Ended(ended) => {
                if let Some((command, _)) = self.leave(process).filter(|(_, it)| it.is_awaited) {
                    self.ended(process, ended, &command.readers);
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
                    self.refuse(process, error);
                }
            }
            JobResult::Cancelled => {
                self.work.starting -= 1;
                self.leave(process);
            }
            JobResult::Table(..)
            | JobResult::Reply(_)
            | JobResult::Channel(_)
            | JobResult::Left(_) => {
                self.report_bug("a command was answered like a query");
                if self.leave_wanted(process) {
                    self.ready.push_back(Event::Exited {
                        process,
                        status: CommandStatus::Lost,
                        line: None,
                        reader_gone: false,
                    });
                }
            }
        }
    }

    fn started(
        &mut self,
        process: ProcessId,
        started: Result<StartedProgram, SpawnError>,
        interactive: bool,
    ) {
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                if self.leave_wanted(process) {
                    self.refuse(process, error);
                }
                return;
            }
        };
        let pid = started.pid;
        self.admission.limit.restore_in(pid);
        self.watch(pid, process);
        let Some(command) = self.commands.get_mut(&process) else {
            let _ = sys::kill(-pid, libc::SIGKILL);
            return self.report_bug("an unknown command was started");
        };
        command.stage = CommandStage::Running;
        let (name, line) = (command.name.clone(), command.line);
        let path = std::mem::take(&mut command.path);
        if started.lacks_rights {
            let note = format!(
                "`{name}` is a set-uid program, which has no further rights in `atomic in` without \
                 root"
            );
            self.log_at(Level::FAILURES, line, LogEvent::Note(note));
        }
        self.found.remember(path, name.clone(), started.file);
        if self.logs_processes() {
            self.log(line, LogEvent::Spawned { pid, command: name.to_string() });
        }
        if self.scopes.started(process, pid) {
            self.ready.push_back(Event::Spawned { process, pid });
        }
        self.offer_terminal(pid, interactive);
        self.act();
    }
}

fn redirect_error(error: FdError) -> SpawnError {
    error.into_spawn_error(SpawnErrorKind::Redirect)
}
