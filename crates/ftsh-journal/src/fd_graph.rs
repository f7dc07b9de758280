//! Where the descriptors of commands lead, as far as that matters when one has ended: to which buffers,
//! and to which inputs that others read as well.

use std::collections::{BTreeMap, BTreeSet};

use super::scopes::Scopes;
use ftsh_machine::effect::{
    Access, BufferId, Dispatch, FdChange, FdSource, IoId, OperationId, ProcessId, ReplayId, Run,
    ScopeId,
};
use ftsh_machine::{Effect, Event};

/// An input that tables share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// The table that it was opened for.
    pub io: IoId,
    /// By which of its changes.
    pub change: u32,
}

impl Input {
    /// The shell's own standard input.
    pub const STANDARD: Self = Self { io: IoId::INHERITED, change: 0 };
}

/// Where a descriptor leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lead {
    #[default]
    Elsewhere,
    Buffer(BufferId),
    Input(Input),
}

type Leads = [Lead; 10];

/// The descriptors of a run, the scopes and the commands in progress.
#[derive(Clone, Debug, Default)]
pub struct Plumbing {
    tables: BTreeMap<IoId, Leads>,
    relays: BTreeMap<OperationId, Leads>,
    replays: BTreeMap<ReplayId, Input>,
    /// The tables of atomic attempts.
    attempts: BTreeSet<IoId>,
    pub scopes: Scopes,
    commands: BTreeMap<ProcessId, Command>,
}

/// A command in progress.
#[derive(Clone, Debug)]
struct Command {
    scope: ScopeId,
    is_in_attempt: bool,
    /// Whether it is a branch that runs elsewhere.
    is_away: bool,
    buffers: Vec<BufferId>,
    inputs: Vec<Reading>,
}

/// An input, and a descriptor of a table that leads there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub input: Input,
    pub io: IoId,
    pub descriptor: u8,
}

/// What may have changed by the time of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// What was written to.
    pub buffers: Vec<BufferId>,
    /// What was read.
    pub inputs: Vec<Reading>,
}

impl Plumbing {
    /// Something is asked of the driver.
    pub fn asked(&mut self, effect: &Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.run(run),
            Effect::Dispatch(branch) => self.dispatch(branch),
            Effect::Open { io, base, redirects, .. } => {
                let leads = self.changed(self.leads(*base), Some(*io), redirects);
                self.tables.insert(*io, leads);
                if is_attempt(redirects) || self.attempts.contains(base) {
                    self.attempts.insert(*io);
                }
            }
            Effect::CloseIo(io) => {
                self.tables.remove(io);
                self.attempts.remove(io);
            }
            Effect::Relay { operation, io } => {
                self.relays.insert(*operation, self.leads(*io));
            }
            Effect::Abandon(operation) => {
                self.relays.remove(operation);
            }
            Effect::DropReplay(replay) => {
                self.replays.remove(replay);
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.scopes.put(*scope, *parent);
            }
            Effect::Terminate(scope) => {
                self.scopes.end(*scope);
            }
            Effect::HandOver { scope, into } => {
                for process in self.scopes.hand_over(*scope, *into) {
                    if let Some(command) = self.commands.get_mut(&process) {
                        command.scope = *into;
                    }
                }
            }
            _ => {}
        }
    }

    /// The driver says something.
    pub fn told(&mut self, event: &Event) {
        match event {
            Event::Exited { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Returned { process, .. } => {
                self.forget(*process);
            }
            Event::Done { operation, .. } => {
                self.relays.remove(operation);
            }
            Event::Emptied { scope } => {
                for process in self.scopes.members(*scope) {
                    self.forget(process);
                }
                self.scopes.emptied(*scope);
            }
            Event::Resumed { lost } => {
                for process in lost {
                    self.forget(*process);
                }
            }
            _ => {}
        }
    }

    /// What may have changed by now, before this is told.
    pub fn changed_by(&self, event: &Event) -> Changed {
        let mut changed = Changed::default();
        match event {
            Event::Exited { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Returned { process, .. } => {
                changed.add(self.commands.get(process));
            }
            Event::Emptied { scope } => {
                for process in self.scopes.members(*scope) {
                    changed.add(self.commands.get(&process));
                }
            }
            Event::Done { operation, .. } => {
                let leads = self.relays.get(operation);
                changed.buffers.extend(leads.into_iter().flatten().filter_map(Lead::buffer));
            }
            _ => {}
        }
        changed
    }

    /// Whether this tells of a command in an atomic attempt.
    pub fn is_in_attempt(&self, event: &Event) -> bool {
        let command = match event {
            Event::Exited { process, .. } => self.commands.get(process),
            _ => None,
        };
        command.is_some_and(|command| command.is_in_attempt)
    }

    /// An input that is read for good now.
    pub fn kept(&self, replay: ReplayId) -> Option<Reading> {
        self.reading(*self.replays.get(&replay)?)
    }

    /// Which input a replay reads, if it is one that tables share.
    pub fn replayed(&self, replay: ReplayId) -> Option<Input> {
        self.replays.get(&replay).copied()
    }

    /// The commands in progress.
    pub fn commands(&self) -> impl Iterator<Item = ProcessId> {
        self.commands.keys().copied()
    }

    /// The scopes of the branches that run elsewhere.
    pub fn scopes_away(&self) -> impl Iterator<Item = ScopeId> {
        self.commands.values().filter(|command| command.is_away).map(|command| command.scope)
    }

    fn run(&mut self, run: &Run) {
        let leads = self.changed(self.leads(run.io), None, &run.redirects);
        let is_in_attempt = self.attempts.contains(&run.io);
        let (buffers, inputs) = (Vec::new(), Vec::new());
        let (scope, is_away) = (run.scope, false);
        let mut command = Command { scope, is_in_attempt, is_away, buffers, inputs };
        for (descriptor, lead) in leads.into_iter().enumerate() {
            match lead {
                Lead::Buffer(buffer) if !command.buffers.contains(&buffer) => {
                    command.buffers.push(buffer);
                }
                Lead::Input(input) if command.inputs.iter().all(|it| it.input != input) => {
                    let of_run = self.leads(run.io)[descriptor] == lead;
                    let of_run = of_run.then_some((run.io, descriptor as u8));
                    let own = of_run.map(|(io, descriptor)| Reading { input, io, descriptor });
                    command.inputs.extend(self.reading(input).or(own));
                }
                _ => {}
            }
        }
        self.scopes.enter(run.scope, run.process);
        self.commands.insert(run.process, command);
    }

    /// A command is over.
    fn forget(&mut self, process: ProcessId) {
        if let Some(command) = self.commands.remove(&process) {
            self.scopes.leave(command.scope, process);
        }
    }

    /// A branch that runs elsewhere writes as a command does, and reads nothing.
    fn dispatch(&mut self, branch: &Dispatch) {
        let leads = self.leads(branch.io);
        let mut buffers: Vec<_> = leads.iter().filter_map(Lead::buffer).collect();
        buffers.dedup();
        let (scope, inputs) = (branch.scope, Vec::new());
        let command = Command { scope, is_in_attempt: false, is_away: true, buffers, inputs };
        self.scopes.enter(branch.scope, branch.process);
        self.commands.insert(branch.process, command);
    }

    /// Where an input can be asked for.
    fn reading(&self, input: Input) -> Option<Reading> {
        let io = input.io;
        let leads = if io == IoId::INHERITED { Some(self.leads(io)) } else { None };
        let leads = leads.or_else(|| self.tables.get(&io).copied())?;
        let descriptor = leads.iter().position(|lead| *lead == Lead::Input(input))?;
        Some(Reading { input, io, descriptor: descriptor as u8 })
    }

    fn leads(&self, io: IoId) -> Leads {
        let mut inherited = Leads::default();
        inherited[0] = Lead::Input(Input::STANDARD);
        self.tables.get(&io).copied().unwrap_or(inherited)
    }

    /// Where descriptors lead after changes; what these open to be read is shared only if they are a
    /// table's.
    fn changed(&mut self, mut leads: Leads, io: Option<IoId>, changes: &[FdChange]) -> Leads {
        // What atomic attempts hold goes when they are lost.
        let is_attempt = is_attempt(changes);
        for (at, FdChange { descriptor, source }) in changes.iter().enumerate() {
            let here = usize::from(*descriptor);
            let input =
                io.map_or(Lead::Elsewhere, |io| Lead::Input(Input { io, change: at as u32 }));
            leads[here] = match source {
                FdSource::File { access: Access::Read, .. }
                | FdSource::BufferRead(_)
                | FdSource::Bytes(_) => input,
                FdSource::Hold(_) if matches!(leads[here], Lead::Input(_)) && here > 2 => continue,
                FdSource::Hold(_) if is_attempt => Lead::Elsewhere,
                FdSource::BufferCreate(buffer, _)
                | FdSource::BufferCopy { buffer, .. }
                | FdSource::BufferAppend(buffer)
                | FdSource::Hold(buffer) => Lead::Buffer(*buffer),
                FdSource::Relay { relay, .. } | FdSource::Tee { relay, .. } => {
                    self.relays.get(relay).map_or(Lead::Elsewhere, |leads| leads[here])
                }
                FdSource::Descriptor(from) => leads[usize::from(*from)],
                FdSource::Replay(replay) => {
                    if let Lead::Input(input) = leads[here] {
                        self.replays.entry(*replay).or_insert(input);
                    }
                    continue;
                }
                FdSource::Position(_) => continue,
                FdSource::File { .. }
                | FdSource::Draft { .. }
                | FdSource::Null
                | FdSource::Gone
                | FdSource::PipeReader(_)
                | FdSource::PipeWriter(_) => Lead::Elsewhere,
            };
        }
        leads
    }
}

/// Whether these are the changes that an atomic attempt begins with.
fn is_attempt(changes: &[FdChange]) -> bool {
    changes.iter().any(|it| matches!(it.source, FdSource::Replay(_)))
}

impl Lead {
    fn buffer(&self) -> Option<BufferId> {
        match self {
            Self::Buffer(buffer) => Some(*buffer),
            Self::Elsewhere | Self::Input(_) => None,
        }
    }
}

impl Changed {
    fn add(&mut self, command: Option<&Command>) {
        if let Some(command) = command {
            self.buffers.extend(&command.buffers);
            self.inputs.extend(&command.inputs);
        }
    }
}
