//! Start of commands: files, environment, and a process or a builtin.

use std::time::Duration;

use bstr::BString;

use super::console::Console;
use super::environment::CommandEnvironment;
use super::requests::Admitter;
use crate::channels::ShellChannels;
use crate::descriptors::{Fd, FdTable};
use crate::fds::{Plan, Readers};
use crate::jobs::{ActiveCommand, JobResult};
use crate::non_blocking_writer;
use crate::paths::{FdError, TaskDirectory};
use crate::program::{ProgramCache, ProgramSpec, StartedProgram};
use crate::stream::{self, Ended};
use crate::workers::Control;
use ftsh_machine::effect::{Action, ProcessId, Run, ScopeId};
use ftsh_machine::event::{SpawnError, SpawnErrorKind};

/// Interval of checks for cancellation while an `exec` waits.
const PAUSE: Duration = Duration::from_millis(20);

/// Result of an attempt to start a program; true if the program may want the terminal.
pub(super) type Started = (Result<StartedProgram, SpawnError>, bool);

/// Starts commands, with the parts of the driver that this takes.
pub(super) struct Starter<'a> {
    pub(super) admission: Admitter<'a>,
    pub(super) environment: &'a CommandEnvironment,
    pub(super) programs: &'a mut ProgramCache,
    pub(super) console: &'a mut Console,
}

/// Command about to start.
struct PreparedStart {
    process: ProcessId,
    scope: ScopeId,
    command: ActiveCommand,
}

impl Starter<'_> {
    /// Starts a command. Returns a program that was started at once. Otherwise a worker starts it,
    /// or the command has ended already.
    pub(super) fn run(&mut self, run: Run) -> Option<Started> {
        let process = run.process;
        let begun = self.begin(run);
        begun.unwrap_or_else(|error| {
            self.admission.reactor.refuse(process, redirect_error(error));
            None
        })
    }

    fn begin(&mut self, mut run: Run) -> Result<Option<Started>, FdError> {
        let Admitter { tables, reactor, .. } = &mut self.admission;
        let directory = tables.directory(&run.directory);
        let mut command = ActiveCommand::new(&run);
        let redirects = std::mem::take(&mut run.redirects);
        let plan = tables.io_mut().plan(run.io, &directory, run.umask, redirects);
        // The table of a last command is closed even if its plan fails: no other command uses it.
        if run.is_last {
            tables.io_mut().close(run.io);
        }
        let mut plan = plan?;
        // `echo` reads no input.
        if !matches!(run.action, Action::Print(_)) {
            command.kept = tables.connect_input(reactor, &mut plan)?;
        }
        command.kept.extend(plan.written());
        command.readers = self.readers(&run, &plan);
        command.quiet = self.console.shows_line() && plan.is_quiet();
        if !command.quiet {
            self.console.line().hide_for_output();
        }
        plan.begin()?;
        let prepared = PreparedStart { process: run.process, scope: run.scope, command };
        match run.action {
            Action::Program { .. } => return Ok(self.start_program(prepared, plan, run, directory)),
            Action::Print(bytes) => self.print(prepared, plan, bytes)?,
            Action::Copy => self.work(prepared, plan, stream::copy),
            Action::ReadLine => self.read_line(prepared, plan)?,
        }
        Ok(None)
    }

    fn readers(&mut self, run: &Run, plan: &Plan) -> Readers {
        match &run.action {
            Action::Program { .. } => {
                let has_room = self.admission.has_room_for_pidfd();
                Readers::of(plan, run.feeds, &self.admission.tables.io().pipe_watches, has_room)
            }
            Action::Print(_) | Action::Copy | Action::ReadLine => {
                Readers::of_builtin(run.feeds & 1 << 1 != 0)
            }
        }
    }

    fn start_program(
        &mut self,
        prepared: PreparedStart,
        plan: Plan,
        run: Run,
        directory: TaskDirectory,
    ) -> Option<Started> {
        let mut program = self.program(run, directory)?;
        let PreparedStart { process, scope, mut command } = prepared;
        command.path = program.path().into();
        // A command without the terminal is stopped when it opens the terminal, and gets it then.
        // If it got the terminal at once, no status line could be shown.
        let is_quiet = command.quiet;
        if self.programs.look_up(&mut program) && !plan.may_block() {
            let table = plan.carry_out(&Control::default());
            let interactive = !is_quiet && table.as_ref().is_ok_and(|table| !table.reads_nothing());
            let started = table.map_err(redirect_error).and_then(|table| program.start(&table));
            self.admission.processes.enter(process, scope, command);
            return Some((started, interactive));
        }
        command.starting = true;
        self.submit(PreparedStart { process, scope, command }, move |control| {
            let table = match plan.carry_out(control) {
                Ok(table) => table,
                Err(error) => return JobResult::Started(Err(redirect_error(error)), false),
            };
            if !control.commit() {
                return JobResult::Cancelled;
            }
            JobResult::Started(program.start(&table), !is_quiet && !table.reads_nothing())
        });
        None
    }

    /// Returns the program of a command, with its environment; none for a builtin.
    fn program(&mut self, run: Run, directory: TaskDirectory) -> Option<ProgramSpec> {
        let Action::Program { words, environment, overrides } = run.action else { return None };
        let (scope, deadline) = (run.scope, run.deadline);
        let Admitter { turns, processes, .. } = &mut self.admission;
        let kill_timeout = self.environment.kill_timeout(run.grace);
        let mut child_env =
            self.environment.variables(deadline, kill_timeout, &directory, &environment);
        if let Some(inside) = turns.channel_env(|| processes.scopes().around(scope)) {
            child_env.push((ShellChannels::VARIABLE, inside.into()));
        }
        let notes = kill_timeout.note() + &self.environment.grants(processes, scope, deadline);
        child_env.push(processes.tag(scope, &notes));
        let umask = run.umask;
        Some(ProgramSpec { words, environment, child_env, overrides, directory, umask, file: None })
    }

    /// Prints at once as much as fits, and the rest by a worker.
    fn print(
        &mut self,
        prepared: PreparedStart,
        plan: Plan,
        bytes: BString,
    ) -> Result<(), FdError> {
        if plan.may_block() {
            self.work(prepared, plan, move |table, control| stream::print(table, &bytes, control));
            return Ok(());
        }
        let table = plan.carry_out(&Control::default())?;
        match stream::print_now(&table, &bytes) {
            Ok(ended) => self.report_end(&prepared, ended),
            Err(left) => self.submit(prepared, move |control| {
                let rest = &bytes[bytes.len() - left..];
                JobResult::Ended(stream::print(&table, rest, control))
            }),
        }
        Ok(())
    }

    /// Reads a line at once, if it is there, or by a worker.
    fn read_line(&mut self, prepared: PreparedStart, plan: Plan) -> Result<(), FdError> {
        if plan.may_block() {
            self.work(prepared, plan, |table, control| {
                stream::read_line(table, Vec::new(), control)
            });
            return Ok(());
        }
        let table = plan.carry_out(&Control::default())?;
        if table.get(0).is_some_and(Fd::is_memory) {
            let ended = stream::read_line(&table, Vec::new(), &Control::default());
            self.report_end(&prepared, ended);
            return Ok(());
        }
        match stream::read_line_now(&table) {
            Ok(ended) => self.report_end(&prepared, ended),
            Err(begun) => self.submit(prepared, move |control| {
                JobResult::Ended(stream::read_line(&table, begun, control))
            }),
        }
        Ok(())
    }

    fn report_end(&mut self, prepared: &PreparedStart, ended: Ended) {
        let readers = &prepared.command.readers;
        self.admission.reactor.report_end(prepared.process, ended, readers);
    }

    /// Executes a builtin by a worker.
    fn work(
        &mut self,
        prepared: PreparedStart,
        plan: Plan,
        act: impl FnOnce(&FdTable, &Control) -> Ended + Send + 'static,
    ) {
        self.submit(prepared, move |control| {
            let table = plan.carry_out(control).map_err(redirect_error);
            JobResult::Ended(table.and_then(|table| act(&table, control)))
        });
    }

    fn submit(
        &mut self,
        prepared: PreparedStart,
        job: impl FnOnce(&Control) -> JobResult + Send + 'static,
    ) {
        let PreparedStart { process, scope, command } = prepared;
        let Admitter { processes, reactor, .. } = &mut self.admission;
        processes.work(reactor, (process, scope), command, job);
    }

    /// Opens the files of the program that replaces the shell.
    pub(super) fn exec(&mut self, run: Run) {
        let command = ActiveCommand::new(&run);
        let Run {
            process, scope, action, directory, umask, io, redirects, deadline, grace, ..
        } = run;
        let Admitter { tables, reactor, .. } = &mut self.admission;
        let Action::Program { words, environment, overrides } = action else {
            let message = "only a program can replace the shell".into();
            let error = SpawnError::new(SpawnErrorKind::NotExecutable, message);
            return reactor.refuse(process, error);
        };
        let directory = tables.directory(&directory);
        let plan = match tables.plan_exec(io, &directory, umask, redirects) {
            Ok(plan) => plan,
            Err(error) => return reactor.refuse(process, redirect_error(error)),
        };
        self.console.line().hide();
        let kill_timeout = self.environment.kill_timeout(grace);
        let child_env =
            self.environment.variables(deadline, kill_timeout, &directory, &environment);
        let program =
            ProgramSpec { words, environment, child_env, overrides, directory, umask, file: None };
        self.submit(PreparedStart { process, scope, command }, move |control| {
            let table = plan.carry_out(control);
            // Output of the shell comes before output of the program.
            while !non_blocking_writer::wait(Some(PAUSE)) && !control.is_cancelled() {}
            JobResult::Ready(Box::new(program), table)
        });
    }
}

/// Converts an error of a redirection.
pub(super) fn redirect_error(error: FdError) -> SpawnError {
    error.into_spawn_error(SpawnErrorKind::Redirect)
}
