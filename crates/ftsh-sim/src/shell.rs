//! Shell in a modelled world, with its descriptors, its running commands and their scopes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::channels::Ask;
use super::descriptors::Descriptors;
use super::durations::{SCRIPT, SimulatedDurations};
use super::model::{Call, EndsBy, Model};
use super::watches::Watches;
use ftsh_machine::effect::{
    Action, BeginView, FdChange, IoId, ProcessId, Query, Run, ScopeId, Signal, StagedFileId, ViewId,
};
use ftsh_machine::event::{CommandStatus, Refusal, Reply, SpawnError, SpawnErrorKind};
use ftsh_machine::nesting::Nesting;
use ftsh_machine::{Effect, Event, Time};

/// Signal that kills a writer without a reader.
const SIGPIPE: i32 = 13;
/// Maximum number of steps of a filter.
const FILTER_STEPS: u64 = 500_000;

/// Common part of all shells: the time, and the programs. A world may hold many shells. The world
/// passes each effect of a machine to its shell, and each [`Due`] at its time.
pub trait World {
    /// Returns the time.
    fn now(&self) -> Time;

    /// Starts a program. Returns its model, or none if the program does not exist.
    fn start(&mut self, process: ProcessId, call: &Call) -> Option<Model>;

    /// Schedules a call of [`Shell::handle`] with `due`, after all work that is already due then.
    fn schedule(&mut self, at: Time, due: Due);

    /// Decides the success of a commit of `drafts` staged files. Returns the index of the first
    /// failure, or none for a success.
    fn settle(&mut self, drafts: usize) -> Option<usize> {
        let _ = drafts;
        None
    }

    /// Returns false if the directories of a view cannot be covered.
    fn covers(&mut self) -> bool {
        true
    }

    /// Returns true if another process has changed the files of a view.
    fn conflicts(&mut self) -> bool {
        false
    }

    /// Passes a request of the shell to the shared channels.
    fn ask(&mut self, ask: Ask);

    /// Returns the bytes of available memory and the load of the machine.
    fn resources(&mut self) -> (u64, f64) {
        (u64::MAX, 0.0)
    }

    /// Returns false if the processes of a scope cannot be read, so that no condition is reported.
    fn can_watch(&mut self) -> bool {
        true
    }

    /// Records the end of a program.
    fn ended(&mut self, process: ProcessId, ending: ProgramEnd) {
        let _ = (process, ending);
    }

    /// Records an event, in words for people.
    fn note(&mut self, what: fmt::Arguments) {
        let _ = what;
    }
}

/// Due work of a running command. Ignored if the command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The command ends without a signal.
    Ends(ProcessId),
    /// The command ends because of SIGTERM, or of the signal that comes before.
    Terminated(ProcessId),
    /// A watched scope is checked.
    Check(ScopeId),
}

/// Kind of the end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// End without a signal of the shell.
    Itself(CommandStatus),
    /// SIGTERM.
    Terminated,
    /// SIGKILL.
    Killed,
}

/// Shell in a modelled world.
#[derive(Default)]
pub struct Shell {
    pub(super) descriptors: Descriptors,
    nesting: Nesting,
    pub(super) processes: BTreeMap<ProcessId, SimulatedProcess>,
    pub(super) terminating: BTreeSet<ScopeId>,
    /// Scopes whose first signal is not SIGTERM, until SIGTERM follows.
    signals: BTreeMap<ScopeId, Signal>,
    pub(super) events: VecDeque<Event>,
    pub(super) durations: SimulatedDurations,
    pub(super) watches: Watches,
    /// Views whose commit has taken place.
    pub(super) committed_views: BTreeSet<ViewId>,
}

/// Running command, or the process that a command left running.
pub(crate) struct SimulatedProcess {
    scope: ScopeId,
    pub(super) name: String,
    pub(super) started: Time,
    /// True for a program, false for a builtin.
    pub(super) is_program: bool,
    pub(super) run: Option<Run>,
    pub(super) model: Model,
}

impl Shell {
    /// Adds a file.
    pub fn add_file(&mut self, path: &str, content: &str) {
        self.descriptors.files.insert(path.into(), content.into());
    }

    /// Adds durations of earlier attempts of the script, as the text of a history.
    pub fn add_durations(&mut self, text: &str) {
        self.durations.append(SCRIPT.into(), text.as_bytes());
    }

    /// Gives the shell a standard input: a pipe with the given content.
    pub fn set_stdin(&mut self, content: &str) {
        self.descriptors.set_stdin(content.into());
    }

    /// Exchanges the files with another shell, which lets two shells share files alternately.
    pub fn swap_files(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.descriptors.files, &mut other.descriptors.files);
    }

    /// Copies a table of descriptors.
    pub fn copy_io(&mut self, io: IoId, base: IoId) {
        // A copy opens no file and cannot fail.
        let _ = self.descriptors.open(io, base, &[]);
    }

    /// Writes to a descriptor of a table.
    pub fn print(&mut self, io: IoId, descriptor: u8, text: &BStr) {
        self.descriptors.print(io, descriptor, text);
    }

    /// Removes and returns the output on the shell's own descriptors 1 and 2.
    pub fn take_printed(&mut self) -> [BString; 2] {
        let Descriptors { stdout, stderr, .. } = &mut self.descriptors;
        [stdout, stderr].map(std::mem::take)
    }

    /// Performs an effect of the shell's machine.
    pub fn perform(&mut self, effect: Effect, world: &mut impl World) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.start(*run, world),
            Effect::Dispatch(branch) => self.events.push_back(Event::no_engine(branch.process)),
            Effect::Open { operation, io, base, redirects, .. } => {
                let result = self.descriptors.open(io, base, &redirects);
                let result = result.map(|()| Reply::Truth(true)).map_err(Refusal::from);
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Query { operation, query: Query::Filter(call), .. } => {
                // A filter that takes more steps never ends, as in a process of its own.
                let reply = ftsh_filter::results(&call, FILTER_STEPS);
                let done = |reply| Event::Done { operation, result: Ok(reply) };
                self.events.extend(reply.map(done));
            }
            Effect::Query { operation, query: Query::Leftovers(scope), .. } => {
                let members = self.members(scope).into_iter();
                let names = members
                    .filter_map(|id| self.processes.get(&id))
                    .map(|it| it.name.clone().into());
                let result = Ok(Reply::Words(names.collect()));
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Query { operation, directory, query } => {
                let resources = world.resources();
                let result = self.answer(directory.path.as_deref(), &query, world.now(), resources);
                let result = result.map_err(Refusal::from);
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Relay { .. } => {}
            Effect::DropView(view) => _ = self.committed_views.remove(&view),
            Effect::FinishRelay(operation) => {
                let result = Ok(Reply::Truth(true));
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.nesting.insert(scope, parent);
            }
            Effect::SetSignal(scope, signal) => drop(self.signals.insert(scope, signal)),
            Effect::Watch { scope, watch } => self.watch(scope, watch, world),
            Effect::Terminate(scope) => self.terminate(scope, world),
            Effect::Escalate(scope) => {
                for id in self.members(scope) {
                    let own = self.processes.get(&id).map(|process| process.scope);
                    if own.is_some_and(|own| self.signals.contains_key(&own)) {
                        self.signal(id, Signal::Term, world);
                    }
                }
                self.signals.retain(|inner, _| !self.nesting.is_inside(*inner, scope));
            }
            Effect::Kill { scope, .. } => {
                for id in self.members(scope) {
                    if let Some(process) = self.processes.remove(&id) {
                        world.note(format_args!("kill {}", process.name));
                        if process.is_program && process.run.is_some() {
                            world.ended(id, ProgramEnd::Killed);
                        }
                        self.check_watches(process.scope, world);
                    }
                }
                self.check_emptied();
            }
            Effect::HandOver { scope, into } => {
                self.watches.end(scope);
                for process in self.processes.values_mut() {
                    if process.scope == scope {
                        process.scope = into;
                    }
                }
                self.forget(scope);
            }
            Effect::CloseIo(io) => {
                if self.descriptors.close(io) {
                    self.start_waiting(world);
                }
            }
            Effect::Fill(buffer, content) => self.descriptors.fill(buffer, content.as_ref()),
            Effect::ForgetOutput(buffer) => self.descriptors.empty_buffer(buffer),
            Effect::DropBuffer(buffer) => self.descriptors.drop_buffer(buffer),
            Effect::BeginView(begin) => {
                let BeginView { operation, directories, .. } = *begin;
                let result = if world.covers() {
                    Ok(Reply::Words(directories))
                } else {
                    Err(Refusal::new("the directories cannot be covered"))
                };
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::CommitView { operation, view, files, is_inner } => {
                let result = if world.conflicts() {
                    let why = "`f` was changed by another process meanwhile".to_owned();
                    Ok(Reply::Conflict(why))
                } else {
                    let drafts = if is_inner { &[][..] } else { &files };
                    self.settle(drafts, world.settle(drafts.len()))
                };
                if matches!(result, Ok(Reply::Truth(true))) {
                    self.committed_views.insert(view);
                }
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::Commit { operation, files: drafts } => {
                let result = self.settle(&drafts, world.settle(drafts.len()));
                self.events.push_back(Event::Done { operation, result });
            }
            Effect::DropStagedFile(draft) => self.descriptors.drafts.forget(draft),
            Effect::KeepInput(replay) => self.descriptors.replays.keep(replay),
            Effect::DropSpool(replay) => self.descriptors.replays.end(replay),
            Effect::DropScratch(scratch) => {
                let Descriptors { drafts, files, .. } = &mut self.descriptors;
                drafts.forget_scratch(scratch, files);
            }
            Effect::Enter(entry) => world.ask(Ask::Enter(entry)),
            Effect::Leave(pass, passed) => world.ask(Ask::Leave(pass, passed)),
            Effect::Abandon(operation) => world.ask(Ask::Abandon(operation)),
            Effect::RecordDurations(name, lines) => self.durations.append(name, &lines),
            Effect::Log(record) => {
                world.note(format_args!("{}: {:?}", record.line, record.event));
            }
        }
    }

    /// Removes the oldest event for the machine.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sets up the redirections of a command that does not start. Returns true on success.
    pub fn redirect(&mut self, run: &Run) -> bool {
        self.descriptors.of(run).is_ok()
    }

    /// Creates the buffers of redirections that are never set up.
    pub fn put_off(&mut self, redirects: &[FdChange]) {
        self.descriptors.put_off(redirects);
    }

    /// Handles work whose time has come.
    pub fn handle(&mut self, due: Due, world: &mut impl World) {
        match due {
            Due::Ends(id) => {
                if let Some(process) = self.processes.get(&id) {
                    let status = process.model.status;
                    self.end(id, status, world);
                }
            }
            Due::Terminated(id) => self.finish(id, ProgramEnd::Terminated, world),
            Due::Check(scope) => self.check_watch(scope, world),
        }
    }

    /// Ends a command whose model has no duration. Ignored if the command has ended.
    pub fn end(&mut self, id: ProcessId, status: CommandStatus, world: &mut impl World) {
        self.finish(id, ProgramEnd::Itself(status), world);
    }

    /// Ends the shell and all its commands. Its open descriptors stay for another shell.
    pub fn end_all(&mut self) {
        self.processes.clear();
        self.descriptors.waiting.clear();
        self.check_emptied();
    }

    /// Returns the names of the running commands.
    pub fn running(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.processes.values().map(|process| &*process.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the running commands, and the commands that left a process running.
    pub fn alive(&self) -> impl Iterator<Item = ProcessId> {
        self.processes.keys().copied()
    }

    fn start(&mut self, run: Run, world: &mut impl World) {
        let input = match self.descriptors.input(&run) {
            Ok(Some(input)) => input,
            // The command reads a pipe with a writer, and starts at the end of the writer.
            Ok(None) => return self.descriptors.waiting.push(run),
            Err(missing) => {
                let Refusal { message, errno } = missing.into();
                let error = SpawnError { kind: SpawnErrorKind::Redirect, message, errno };
                return self.events.push_back(Event::SpawnFailed { process: run.process, error });
            }
        };
        let process = run.process;
        let uses = match &run.action {
            Action::Print(text) if !text.is_empty() => &[1][..],
            Action::Copy => &[0, 1],
            Action::ReadLine => &[0],
            Action::Print(_) | Action::Program { .. } => &[],
        };
        if uses.iter().any(|descriptor| self.descriptors.is_gone(&run, *descriptor)) {
            let (kind, message) = (SpawnErrorKind::Builtin, "where it led is gone".into());
            let error = SpawnError { kind, message, errno: Some("EIO".into()) };
            return self.events.push_back(Event::SpawnFailed { process, error });
        }
        let (name, mut model) = match &run.action {
            Action::Print(text) => ("echo".to_owned(), Model::succeeds().prints(text.clone())),
            Action::Copy => ("copy".to_owned(), Model::succeeds().prints(input.clone())),
            Action::ReadLine => return self.read_line(&run, &input),
            Action::Program { words, overrides, environment } => {
                let name = words[0].to_string();
                let call = Call {
                    words,
                    environment,
                    overrides,
                    input,
                    umask: run.umask,
                    grace: run.grace,
                    now: world.now(),
                    deadline: run.deadline,
                };
                match world.start(process, &call) {
                    Some(model) => (name, model),
                    None => {
                        let message = format!("`{name}` was not found");
                        let errno = Some("ENOENT".into());
                        let error = SpawnError { kind: SpawnErrorKind::NotFound, message, errno };
                        return self.events.push_back(Event::SpawnFailed { process, error });
                    }
                }
            }
        };
        let uses = [model.consumes, !model.output.is_empty(), !model.errors.is_empty()];
        for descriptor in (0..=2).filter(|it| uses[usize::from(*it)]) {
            if self.descriptors.is_gone(&run, descriptor) {
                model.status = CommandStatus::Exited(1);
            }
        }
        if model.consumes {
            let length = self.descriptors.input(&run).ok().flatten().map_or(0, |rest| rest.len());
            self.descriptors.consumed(&run, length);
        }
        if let Some(takes) = model.takes {
            world.schedule(world.now() + takes, Due::Ends(process));
        }
        let (scope, started) = (run.scope, world.now());
        let is_program = matches!(run.action, Action::Program { .. });
        if is_program {
            self.events.push_back(Event::Spawned { process, pid: 0 });
        }
        let run = Some(run);
        let running = SimulatedProcess { scope, name, started, is_program, run, model };
        self.processes.insert(process, running);
        if is_program {
            self.check_watches(scope, world);
        }
    }

    fn read_line(&mut self, run: &Run, input: &BString) {
        let (line, ended) = match input.split_once_str("\n") {
            Some((line, _)) => (BString::from(line), false),
            None => (input.clone(), true),
        };
        let status = CommandStatus::Exited(i32::from(ended));
        self.descriptors.consumed(run, line.len() + 1);
        let (process, line) = (run.process, Some(line));
        self.events.push_back(Event::Exited { process, status, line, reader_gone: false });
    }

    fn finish(&mut self, id: ProcessId, ending: ProgramEnd, world: &mut impl World) {
        let Some(mut process) = self.processes.remove(&id) else { return };
        let (is_program, scope) = (process.is_program, process.scope);
        if let Some(run) = process.run.take() {
            let status = match ending {
                ProgramEnd::Itself(status) => status,
                ProgramEnd::Terminated => CommandStatus::Signaled(15),
                ProgramEnd::Killed => CommandStatus::Signaled(9),
            };
            self.descriptors.output(&run, &process.model);
            if is_program {
                world.note(format_args!("end {} {status:?}", process.name));
                world.ended(id, ending);
            }
            let reader_gone = status == CommandStatus::Signaled(SIGPIPE)
                && self.descriptors.is_unread(&run)
                && !process.model.read;
            self.events.push_back(Event::Exited { process: id, status, line: None, reader_gone });
            if process.model.leaves && status == CommandStatus::Exited(0) {
                self.processes.insert(id, process);
            }
        }
        if is_program {
            self.check_watches(scope, world);
        }
        self.check_emptied();
        self.start_waiting(world);
    }

    fn start_waiting(&mut self, world: &mut impl World) {
        for run in std::mem::take(&mut self.descriptors.waiting) {
            self.start(run, world);
        }
    }

    fn terminate(&mut self, scope: ScopeId, world: &mut impl World) {
        for watched in self.watches.scopes() {
            if self.is_inside(watched, scope) {
                self.watches.end(watched);
            }
        }
        for id in self.members(scope) {
            let Some(process) = self.processes.get(&id) else { continue };
            let signal = self.signals.get(&process.scope).copied().unwrap_or_default();
            self.signal(id, signal, world);
        }
        self.descriptors.waiting.retain(|run| !self.nesting.is_inside(run.scope, scope));
        self.terminating.insert(scope);
        self.check_emptied();
    }

    /// Sends a signal to a command.
    fn signal(&self, id: ProcessId, signal: Signal, world: &mut impl World) {
        let Some(process) = self.processes.get(&id) else { return };
        let is_ignored = signal != Signal::Term && process.model.ends_by == EndsBy::Sigterm;
        if let Some(after) = process.model.terminates_after.filter(|_| !is_ignored) {
            world.schedule(world.now() + after, Due::Terminated(id));
        }
        match signal {
            Signal::Term => world.note(format_args!("terminate {}", process.name)),
            other => world.note(format_args!("signal {} {}", other.name(), process.name)),
        }
    }

    /// Returns the commands of a scope and its inner scopes, and the processes that commands left
    /// there. The oldest comes first.
    pub fn members(&self, scope: ScopeId) -> Vec<ProcessId> {
        let members =
            self.processes.iter().filter(|(_, process)| self.is_inside(process.scope, scope));
        members.map(|(id, _)| *id).collect()
    }

    /// Returns true if a scope is another scope or inside the other scope.
    pub(crate) fn is_inside(&self, scope: ScopeId, outer: ScopeId) -> bool {
        self.nesting.is_inside(scope, outer)
    }

    fn check_emptied(&mut self) {
        if self.terminating.is_empty() {
            return;
        }
        let mut emptied: Vec<ScopeId> = self.terminating.iter().copied().collect();
        emptied.retain(|scope| self.members(*scope).is_empty());
        for scope in emptied {
            self.terminating.remove(&scope);
            self.forget(scope);
            self.events.push_back(Event::Emptied { scope });
        }
    }

    /// Removes a closed scope, which bounds the memory of an endless script.
    fn forget(&mut self, scope: ScopeId) {
        self.signals.remove(&scope);
        if let Some(parent) = self.nesting.parent(scope) {
            self.nesting.hand_over(scope, parent);
        }
    }

    /// Commits staged files, up to the first failure.
    fn settle(&mut self, drafts: &[StagedFileId], fails: Option<usize>) -> Result<Reply, Refusal> {
        let Descriptors { drafts: all, files, .. } = &mut self.descriptors;
        for draft in &drafts[..fails.unwrap_or(drafts.len()).min(drafts.len())] {
            all.settle(*draft, files);
        }
        let full = || Refusal { message: "the disk is full".into(), errno: Some("ENOSPC".into()) };
        match fails {
            None => Ok(Reply::Truth(true)),
            Some(0) => Err(full()),
            Some(_) => Ok(Reply::Incomplete(full())),
        }
    }
}
