//! Driver around a driver, which injects a fault, lets delays pass in virtual time, and writes a
//! trace of the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use bstr::{BString, ByteSlice};

use crate::calls::{ModelledEnd, SharedModels};
use crate::command::{CommandCounter, hash};
use crate::fault::{CommandFault, FAULT_STATUS};
use crate::observe::Observer;
use crate::spec::RunSpec;
use crate::trace::{TraceEntry, TraceWriter};
use ftsh_machine::driver::{BufferPart, Driver, Durable};
use ftsh_machine::effect::{
    Access, Action, BufferId, Dispatch, Effect, FdSource, IoId, OperationId, ProcessId, Run,
    ScopeId, ViewId,
};
use ftsh_machine::event::{CommandStatus, SpawnError, SpawnErrorKind};
use ftsh_machine::nesting::Nesting;
use ftsh_machine::{Deadline, Event, Machine, Outcome, Time};

/// Signal that ends a run that seems endless: SIGTERM.
const END: i32 = 15;

/// Pause between checks for an event when no time limit applies.
const PAUSE: Duration = Duration::from_millis(5);

/// Functions of the system that the driver needs.
pub struct SystemHooks {
    /// Words of a program that hangs.
    pub hanging: Vec<BString>,
    /// Kills a process with all its descendants.
    pub kill_tree: fn(i32),
    /// Kills this process by SIGKILL.
    pub kill_self: fn() -> !,
}

/// Driver of a run with a fault.
pub struct StormDriver<D> {
    driver: D,
    spec: RunSpec,
    hooks: SystemHooks,
    trace: TraceWriter,
    observer: Observer,
    models: SharedModels,
    /// Virtual time that was skipped.
    skipped: Duration,
    /// Real beginning of this start.
    start: Instant,
    counter: CommandCounter,
    begun: u64,
    commands: BTreeMap<ProcessId, ObservedCommand>,
    /// Requests that the driver will answer.
    operations: BTreeSet<OperationId>,
    /// Relays that no effect has finished yet.
    relays: BTreeSet<OperationId>,
    /// Scopes that are being emptied.
    ending: BTreeSet<ScopeId>,
    nesting: Nesting,
    /// Longest times without progress.
    stalls: BTreeMap<ScopeId, Duration>,
    /// Tables of descriptors whose output goes to files.
    file_tables: BTreeSet<IoId>,
    /// Events at moments of virtual time, with the scope that they belong to.
    planned: Vec<(Time, ScopeId, Event)>,
    is_injected: bool,
    /// Moment of the inner driver at which a process is killed, and the number of its command.
    kill_at: Option<(Time, i32, u64)>,
    is_endless: bool,
    /// Real time of the last event.
    last_event: Instant,
}

/// A command in progress.
struct ObservedCommand {
    scope: ScopeId,
    since: Instant,
    /// Plan of a command that is counted.
    plan: Option<CommandPlan>,
}

/// Plan of a command.
#[derive(Clone, Copy)]
struct CommandPlan {
    /// Number in the trace.
    number: u64,
    is_program: bool,
    fault: Option<CommandFault>,
    /// End of a modelled command: time after the begin, and status.
    modelled: Option<(Duration, i32)>,
    hangs: bool,
}

impl<D: Durable> StormDriver<D> {
    /// Creates a driver around another driver.
    pub fn new(driver: D, spec: RunSpec, hooks: SystemHooks) -> Self {
        Self {
            driver,
            hooks,
            trace: TraceWriter::open(&spec.trace),
            observer: Observer::new(spec.directories.clone()),
            models: SharedModels::new(&spec),
            spec,
            skipped: Duration::ZERO,
            start: Instant::now(),
            counter: CommandCounter::default(),
            begun: 0,
            commands: BTreeMap::new(),
            operations: BTreeSet::new(),
            relays: BTreeSet::new(),
            ending: BTreeSet::new(),
            nesting: Nesting::default(),
            stalls: BTreeMap::new(),
            file_tables: BTreeSet::new(),
            planned: Vec::new(),
            is_injected: false,
            kill_at: None,
            is_endless: false,
            last_event: Instant::now(),
        }
    }

    /// Writes the end of the run to the trace, and returns the inner driver.
    pub fn finish(mut self, outcome: &Outcome) -> D {
        let failed_line = match outcome {
            Outcome::Failed(failure) => Some(failure.line),
            _ => None,
        };
        self.trace.write(&TraceEntry::Finished { failed_line });
        self.driver
    }

    /// Starts a command, perhaps with the fault.
    fn run(&mut self, mut run: Run) {
        run.deadline = self.real_deadline(run.deadline);
        let writes_files = self.file_tables.contains(&run.io)
            || run.redirects.iter().any(|change| is_file_target(&change.source));
        let (words, text) = match &run.action {
            Action::Program { words, .. } => (hash(words), bstr::join(" ", words)),
            Action::Print(bytes) if writes_files => (hash(bytes), b"echo".to_vec()),
            Action::Copy if writes_files => (hash("cat"), b"cat".to_vec()),
            _ => return self.start(run, None),
        };
        let is_program = matches!(run.action, Action::Program { .. });
        let ids = self.counter.next(run.line, words);
        let number = self.begun;
        self.begun += 1;
        let has_limit = run.deadline.moment().is_some() || self.stall_of(run.scope).is_some();
        let model = self.model_of(&run.action);
        self.trace.write(&TraceEntry::Begun {
            number,
            line: run.line,
            words,
            text: text.to_str_lossy().into_owned(),
            is_program,
            is_modelled: model.is_some(),
            has_limit,
        });
        let injection = self.spec.injection.filter(|_| !self.is_injected);
        let fault = injection.filter(|it| ids.contains(&it.command)).map(|it| it.fault);
        if fault.is_some() {
            self.is_injected = true;
            if !matches!(fault, Some(CommandFault::KilledHalfway)) {
                self.trace.write(&TraceEntry::Injected { number });
            }
        }
        let has_no_end = model.as_ref().is_some_and(|it| it.takes.is_none());
        let hangs = fault == Some(CommandFault::Hang) || has_no_end;
        if hangs {
            self.hang(&mut run);
        } else if let Some(model) = &model {
            run.action = Action::Print(model.prints.clone());
        } else if fault == Some(CommandFault::Failure) {
            if !is_program {
                run.redirects.retain(|change| !is_file_target(&change.source));
            }
            run.action = Action::Print(BString::default());
        }
        let modelled = model.and_then(|it| Some((it.takes?, it.status)));
        self.put_programs_first(&mut run.action);
        self.start(run, Some(CommandPlan { number, is_program, fault, modelled, hangs }));
    }

    /// Performs the start of a command.
    fn start(&mut self, run: Run, plan: Option<CommandPlan>) {
        let command = ObservedCommand { scope: run.scope, since: Instant::now(), plan };
        self.commands.insert(run.process, command);
        self.driver.perform(Effect::Run(Box::new(run)));
    }

    /// Returns the end of a command that has a model.
    fn model_of(&mut self, action: &Action) -> Option<ModelledEnd> {
        let Action::Program { words, .. } = action else { return None };
        let now = self.now();
        self.models.next_run(words, now)
    }

    /// Puts the directory of [`RunSpec::programs`] first in `PATH` of a command.
    fn put_programs_first(&self, action: &mut Action) {
        let Action::Program { environment, overrides, .. } = action else { return };
        let all = overrides.iter().rev().chain(environment.iter());
        let Some((_, path)) = all.into_iter().find(|(name, _)| name == "PATH") else { return };
        let mut first = BString::from(self.spec.programs.as_os_str().as_bytes());
        first.extend_from_slice(b":");
        first.extend_from_slice(path);
        overrides.retain(|(name, _)| name != "PATH");
        overrides.push(("PATH".into(), first));
    }

    /// Replaces the program of a command by a program that hangs.
    fn hang(&mut self, run: &mut Run) {
        if let Action::Program { words, .. } = &mut run.action {
            words.clone_from(&self.hooks.hanging);
        }
        if let Some((scope, limit)) = self.stall_of(run.scope) {
            self.planned.push((self.now() + limit, scope, Event::Stalled { scope }));
        }
    }

    /// Returns the innermost scope with a limit on stalls, and the limit.
    fn stall_of(&self, scope: ScopeId) -> Option<(ScopeId, Duration)> {
        let mut around = self.nesting.around(scope);
        around.find_map(|scope| Some((scope, *self.stalls.get(&scope)?)))
    }

    /// Returns a deadline on the clock of the inner driver.
    fn real_deadline(&self, deadline: Deadline) -> Deadline {
        deadline.moment().map(|moment| self.real(moment)).into()
    }

    /// Returns a moment on the clock of the inner driver.
    fn real(&self, moment: Time) -> Time {
        if moment == Time::NEVER { moment } else { Time::after(moment - Time::after(self.skipped)) }
    }

    /// Handles an event of the inner driver. Returns the event that the machine receives.
    fn on_event(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Spawned { process, pid } => {
                let plan = self.commands.get(&process).and_then(|command| command.plan);
                if let Some(plan) = plan.filter(|it| it.fault == Some(CommandFault::KilledHalfway))
                    && let Some(injection) = self.spec.injection
                {
                    let at = self.driver.now() + injection.halfway;
                    self.kill_at = Some((at, pid, plan.number));
                }
            }
            Event::SpawnFailed { process, .. } => {
                if let Some(command) = self.commands.remove(&process) {
                    self.trace_end(&command, CommandStatus::Exited(127));
                }
            }
            Event::Exited { process, status, line, reader_gone } => {
                let command = self.commands.remove(&process);
                let Some((command, plan)) = command.and_then(|it| it.plan.map(|plan| (it, plan)))
                else {
                    return Some(Event::Exited { process, status, line, reader_gone });
                };
                return self.exited(process, &command, plan, status, reader_gone);
            }
            Event::Returned { process, .. } => _ = self.commands.remove(&process),
            Event::Done { operation, .. } => {
                self.operations.remove(&operation);
                self.relays.remove(&operation);
            }
            Event::Emptied { scope } => {
                self.ending.remove(&scope);
                self.forget(scope);
            }
            _ => {}
        }
        Some(event)
    }

    /// Handles the exit of a counted command.
    fn exited(
        &mut self,
        process: ProcessId,
        command: &ObservedCommand,
        plan: CommandPlan,
        status: CommandStatus,
        reader_gone: bool,
    ) -> Option<Event> {
        let is_success = status == CommandStatus::Exited(0);
        let (delay, status) = match (plan.fault, plan.modelled) {
            (Some(CommandFault::Failure | CommandFault::LostAnswer), _) if is_success => {
                (Duration::ZERO, CommandStatus::Exited(FAULT_STATUS))
            }
            (_, Some((takes, code))) if is_success => (takes, CommandStatus::Exited(code)),
            _ => (Duration::ZERO, status),
        };
        self.kill_at = None;
        self.trace_end(command, status);
        if plan.fault == Some(CommandFault::ShellKilled) {
            (self.hooks.kill_self)();
        }
        let event = if plan.fault == Some(CommandFault::Failure) && !plan.is_program {
            let message = "cannot write: no space left on device".to_owned();
            let errno = Some("ENOSPC".to_owned());
            let error = SpawnError { kind: SpawnErrorKind::Redirect, message, errno };
            Event::SpawnFailed { process, error }
        } else {
            Event::Exited { process, status, line: None, reader_gone }
        };
        if delay.is_zero() {
            return Some(event);
        }
        self.planned.push((self.now() + delay, command.scope, event));
        None
    }

    /// Writes the end of a command to the trace.
    fn trace_end(&mut self, command: &ObservedCommand, status: CommandStatus) {
        let Some(plan) = command.plan else { return };
        let status = match status {
            CommandStatus::Exited(code) => code,
            CommandStatus::Signaled(signal) => 128 + signal,
            CommandStatus::OutOfMemory => 137,
            CommandStatus::Lost => 1,
        };
        let changed = self.observer.changes();
        let took = command.since.elapsed();
        self.trace.write(&TraceEntry::Ended { number: plan.number, status, took, changed });
    }

    /// Forgets the commands and planned events of a scope.
    fn forget(&mut self, scope: ScopeId) {
        let mut commands = std::mem::take(&mut self.commands);
        commands.retain(|_, command| !self.nesting.is_inside(command.scope, scope));
        self.commands = commands;
        self.forget_planned(scope);
    }

    fn forget_planned(&mut self, scope: ScopeId) {
        let mut planned = std::mem::take(&mut self.planned);
        planned.retain(|(_, of, _)| !self.nesting.is_inside(*of, scope));
        self.planned = planned;
    }

    /// True if only time can lead to another event. Commands that wait for one that hangs, such as
    /// the next stage of a pipeline, are told from others by their silence.
    fn is_idle(&self) -> bool {
        let hangs = |it: &ObservedCommand| it.plan.is_some_and(|plan| plan.hangs);
        let all_hang = self.commands.values().all(hangs);
        let is_silent = self.last_event.elapsed() > self.spec.max_silence;
        self.operations.is_subset(&self.relays)
            && self.ending.is_empty()
            && (all_hang || (is_silent && self.commands.values().any(hangs)))
    }

    /// Takes a planned event whose moment has come.
    fn take_planned(&mut self, now: Time) -> Option<Event> {
        let due = self.planned.iter().enumerate().filter(|(_, (at, ..))| *at <= now);
        let (index, _) = due.min_by_key(|(_, (at, ..))| *at)?;
        Some(self.planned.remove(index).2)
    }

    /// Cuts a run that seems endless.
    fn cut(&mut self) -> Event {
        self.is_endless = true;
        self.trace.write(&TraceEntry::Endless);
        Event::Interrupted(END)
    }

    /// Kills the command that is to be killed halfway, if its time has come.
    fn kill_halfway(&mut self) {
        let now = self.driver.now();
        if let Some((_, pid, number)) = self.kill_at.take_if(|(at, ..)| *at <= now) {
            self.trace.write(&TraceEntry::Injected { number });
            (self.hooks.kill_tree)(pid);
        }
    }
}

/// True if output to a source goes to a file.
fn is_file_target(source: &FdSource) -> bool {
    match source {
        FdSource::File { access, .. } => *access != Access::Read,
        FdSource::StagedFile { .. } => true,
        _ => false,
    }
}

impl<D: Durable> Driver for StormDriver<D> {
    fn now(&self) -> Time {
        self.driver.now() + self.skipped
    }

    fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Run(_) | Effect::Exec(_) => {
                // The shell stays, since the commands after this one are compared as well.
                if let Effect::Run(run) | Effect::Exec(run) = effect {
                    self.run(*run);
                }
                return;
            }
            Effect::Dispatch(branch) => {
                let mut branch = branch.clone();
                branch.avoid_until = self.real(branch.avoid_until);
                let command =
                    ObservedCommand { scope: branch.scope, since: Instant::now(), plan: None };
                self.commands.insert(branch.process, command);
                return self.driver.perform(Effect::Dispatch(branch));
            }
            Effect::Open { operation, io, base, redirects, .. } => {
                self.operations.insert(*operation);
                if self.file_tables.contains(base)
                    || redirects.iter().any(|change| is_file_target(&change.source))
                {
                    self.file_tables.insert(*io);
                }
            }
            Effect::CloseIo(io) => _ = self.file_tables.remove(io),
            Effect::Query { operation, .. }
            | Effect::Commit { operation, .. }
            | Effect::CommitView { operation, .. } => _ = self.operations.insert(*operation),
            Effect::BeginView(begin) => _ = self.operations.insert(begin.operation),
            Effect::Enter(entry) => _ = self.operations.insert(entry.operation),
            Effect::Relay { operation, .. } => {
                self.operations.insert(*operation);
                self.relays.insert(*operation);
            }
            Effect::FinishRelay(operation) => _ = self.relays.remove(operation),
            Effect::Abandon(operation) => {
                self.operations.remove(operation);
                self.relays.remove(operation);
            }
            Effect::OpenScope { scope, parent, .. } => self.nesting.insert(*scope, *parent),
            Effect::Watch { scope, watch } => {
                if let Some(limit) = watch.stalled {
                    self.stalls.insert(*scope, limit);
                }
            }
            Effect::Terminate(scope) => {
                self.ending.insert(*scope);
                self.forget_planned(*scope);
            }
            Effect::HandOver { scope, .. } => _ = self.stalls.remove(scope),
            _ => {}
        }
        self.driver.perform(effect);
    }

    fn watch(&mut self, machine: &Machine) {
        self.driver.watch(machine);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        loop {
            let is_over =
                self.begun > self.spec.max_commands || self.start.elapsed() > self.spec.max_time;
            if is_over && !self.is_endless {
                return Some(self.cut());
            }
            let now = self.now();
            if let Some(event) = self.take_planned(now) {
                return Some(event);
            }
            let planned = self.planned.iter().map(|(at, ..)| *at).min();
            let next = planned.unwrap_or(Time::NEVER).min(until);
            let is_idle = self.is_idle();
            let real = if is_idle {
                // Only events that are there already, such as signals.
                self.driver.now()
            } else {
                let kill_at = self.kill_at.map_or(Time::NEVER, |(at, ..)| at);
                let end = self.driver.now() + self.spec.max_silence;
                self.real(next).min(kill_at).min(end)
            };
            if let Some(event) = self.driver.wait(real) {
                self.last_event = Instant::now();
                match self.on_event(event) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            self.kill_halfway();
            if is_idle && next == Time::NEVER {
                // A hang that no limit ends.
                if !self.is_endless {
                    return Some(self.cut());
                }
                std::thread::sleep(PAUSE);
            } else if is_idle {
                self.skipped += next - self.now();
            }
            if self.now() >= until || planned.is_none_or(|at| at > self.now()) {
                return None;
            }
        }
    }
}

impl<D: Durable> Durable for StormDriver<D> {
    fn position(&self, io: IoId, descriptor: u8) -> Option<u64> {
        self.driver.position(io, descriptor)
    }

    fn written(&mut self, buffer: BufferId, from: u64) -> io::Result<Option<BufferPart>> {
        self.driver.written(buffer, from)
    }

    fn outlived_by(&self, branch: &Dispatch) -> Duration {
        self.driver.outlived_by(branch)
    }

    fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.driver.inherit(orphans);
    }

    fn record_commits(&mut self, run: u64) {
        self.driver.record_commits(run);
    }

    fn take_over_view(&mut self, view: ViewId, directories: &[BString]) -> io::Result<bool> {
        self.driver.take_over_view(view, directories)
    }

    fn catch_up(&mut self) {
        self.driver.catch_up();
    }
}
