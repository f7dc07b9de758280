//! Targets of the descriptors of commands: buffers and shared inputs.
//!
//! Only targets that may have changed by the end of a command are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::scopes::OpenScopes;
use ftsh_machine::effect::{
    Access, BufferId, Dispatch, FdChange, FdSource, IoId, OperationId, ProcessId, Query, Run,
    ScopeId, SpoolId,
};
use ftsh_machine::{Effect, Event};

/// Input that several tables share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedInput {
    /// Table for which the input was opened.
    pub io: IoId,
    /// Index of the change in the table.
    pub change: u32,
}

impl SharedInput {
    /// Standard input of the shell.
    pub const STANDARD: Self = Self { io: IoId::INHERITED, change: 0 };
}

/// Target of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FdTarget {
    #[default]
    Elsewhere,
    Buffer(BufferId),
    Input(SharedInput),
}

type FdTargets = [FdTarget; 10];

/// Descriptors, scopes and running commands of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdGraph {
    tables: BTreeMap<IoId, FdTargets>,
    /// Targets that operations may change: those of relays, and output that is being taken back.
    operations: BTreeMap<OperationId, FdTargets>,
    /// Inputs that the shell itself reads.
    queries: BTreeMap<OperationId, Reading>,
    replays: BTreeMap<SpoolId, SharedInput>,
    /// Tables of atomic attempts.
    attempts: BTreeSet<IoId>,
    pub scopes: OpenScopes,
    commands: BTreeMap<ProcessId, LiveCommand>,
}

/// Running command.
#[derive(Clone, Debug)]
struct LiveCommand {
    scope: ScopeId,
    is_in_attempt: bool,
    /// Set when the command is a branch on another machine.
    is_away: bool,
    buffers: Vec<BufferId>,
    inputs: Vec<Reading>,
}

/// Input, with a descriptor of a table that leads to the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub input: SharedInput,
    pub io: IoId,
    pub descriptor: u8,
}

/// Buffers and inputs that may have changed before an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Buffers that commands may have written.
    pub buffers: Vec<BufferId>,
    /// Inputs that commands or the shell may have read.
    pub inputs: Vec<Reading>,
}

impl FdGraph {
    /// Updates the graph for an effect that the machine requests.
    pub(crate) fn on_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Run(run) | Effect::Exec(run) => self.run(run),
            Effect::Dispatch(branch) => self.dispatch(branch),
            Effect::Open { io, base, redirects, .. } => {
                let targets = self.changed(self.targets(*base), Some(*io), redirects);
                self.tables.insert(*io, targets);
                if is_attempt(redirects) || self.attempts.contains(base) {
                    self.attempts.insert(*io);
                }
            }
            Effect::CloseIo(io) => {
                self.tables.remove(io);
                self.attempts.remove(io);
            }
            Effect::Relay { operation, io } => {
                self.operations.insert(*operation, self.targets(*io));
            }
            Effect::Query { operation, query: Query::TakeBack(io), .. } => {
                let mut targets = FdTargets::default();
                targets[1] = self.targets(*io)[1];
                self.operations.insert(*operation, targets);
            }
            Effect::Query { operation, query, .. } => {
                let from = match query {
                    Query::Input(io, number) => Some((*io, *number)),
                    Query::InputPart(io) | Query::InputWord(io, _) => Some((*io, 0)),
                    _ => None,
                };
                if let Some(reading) = from.and_then(|(io, number)| self.own_reading(io, number)) {
                    self.queries.insert(*operation, reading);
                }
            }
            Effect::Abandon(operation) => {
                self.operations.remove(operation);
                self.queries.remove(operation);
            }
            Effect::DropSpool(replay) => {
                self.replays.remove(replay);
            }
            Effect::OpenScope { scope, parent, .. } => {
                self.scopes.open(*scope, *parent);
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

    /// Updates the graph for an event of the driver.
    pub(crate) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Exited { process, .. }
            | Event::SpawnFailed { process, .. }
            | Event::Returned { process, .. } => {
                self.forget(*process);
            }
            Event::Done { operation, .. } => {
                self.operations.remove(operation);
                self.queries.remove(operation);
            }
            Event::Emptied { scope } => {
                for process in self.scopes.members(*scope) {
                    self.forget(process);
                }
                self.scopes.emptied(*scope);
            }
            Event::Resumed { lost, .. } => {
                for process in lost {
                    self.forget(*process);
                }
            }
            _ => {}
        }
    }

    /// Returns the buffers and inputs that may have changed before `event`.
    pub(crate) fn changed_by(&self, event: &Event) -> Changed {
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
                let targets = self.operations.get(operation);
                changed.buffers.extend(targets.into_iter().flatten().filter_map(FdTarget::buffer));
                changed.inputs.extend(self.queries.get(operation));
            }
            _ => {}
        }
        changed
    }

    /// Returns true if the event is the exit of a command in an atomic attempt.
    pub(crate) fn is_in_attempt(&self, event: &Event) -> bool {
        let command = match event {
            Event::Exited { process, .. } => self.commands.get(process),
            _ => None,
        };
        command.is_some_and(|command| command.is_in_attempt)
    }

    /// Returns the input whose position becomes permanent when the replay is kept.
    pub(crate) fn kept(&self, replay: SpoolId) -> Option<Reading> {
        self.reading(*self.replays.get(&replay)?)
    }

    /// Returns the shared input that a replay reads.
    pub(crate) fn replayed(&self, replay: SpoolId) -> Option<SharedInput> {
        self.replays.get(&replay).copied()
    }

    /// Returns the running commands.
    pub(crate) fn commands(&self) -> impl Iterator<Item = ProcessId> {
        self.commands.keys().copied()
    }

    /// Returns the scopes of the branches on other machines.
    pub(crate) fn scopes_away(&self) -> impl Iterator<Item = ScopeId> {
        self.commands.values().filter(|command| command.is_away).map(|command| command.scope)
    }

    fn run(&mut self, run: &Run) {
        let targets = self.changed(self.targets(run.io), None, &run.redirects);
        let is_in_attempt = self.attempts.contains(&run.io);
        let (buffers, inputs) = (Vec::new(), Vec::new());
        let (scope, is_away) = (run.scope, false);
        let mut command = LiveCommand { scope, is_in_attempt, is_away, buffers, inputs };
        for (descriptor, target) in targets.into_iter().enumerate() {
            match target {
                FdTarget::Buffer(buffer) if !command.buffers.contains(&buffer) => {
                    command.buffers.push(buffer);
                }
                FdTarget::Input(input) if command.inputs.iter().all(|it| it.input != input) => {
                    let of_run = self.targets(run.io)[descriptor] == target;
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

    /// Removes an ended command.
    fn forget(&mut self, process: ProcessId) {
        if let Some(command) = self.commands.remove(&process) {
            self.scopes.leave(command.scope, process);
        }
    }

    /// Adds a branch on another machine. The branch writes to buffers as a command does, and reads
    /// no input.
    fn dispatch(&mut self, branch: &Dispatch) {
        let targets = self.targets(branch.io);
        let mut buffers: Vec<_> = targets.iter().filter_map(FdTarget::buffer).collect();
        buffers.dedup();
        let (scope, inputs) = (branch.scope, Vec::new());
        let command = LiveCommand { scope, is_in_attempt: false, is_away: true, buffers, inputs };
        self.scopes.enter(branch.scope, branch.process);
        self.commands.insert(branch.process, command);
    }

    /// Returns a descriptor by which to query the position of an input.
    fn reading(&self, input: SharedInput) -> Option<Reading> {
        let io = input.io;
        let targets = if io == IoId::INHERITED { Some(self.targets(io)) } else { None };
        let targets = targets.or_else(|| self.tables.get(&io).copied())?;
        let descriptor = targets.iter().position(|target| *target == FdTarget::Input(input))?;
        Some(Reading { input, io, descriptor: descriptor as u8 })
    }

    /// Returns the input that a descriptor of a table leads to.
    fn own_reading(&self, io: IoId, descriptor: u8) -> Option<Reading> {
        match self.targets(io)[usize::from(descriptor)] {
            FdTarget::Input(input) => {
                Some(self.reading(input).unwrap_or(Reading { input, io, descriptor }))
            }
            _ => None,
        }
    }

    fn targets(&self, io: IoId) -> FdTargets {
        let mut inherited = FdTargets::default();
        inherited[0] = FdTarget::Input(SharedInput::STANDARD);
        self.tables.get(&io).copied().unwrap_or(inherited)
    }

    /// Returns the targets of descriptors after changes.
    ///
    /// Inputs that the changes open are shared only if the changes belong to a table (`io`).
    fn changed(
        &mut self,
        mut targets: FdTargets,
        io: Option<IoId>,
        changes: &[FdChange],
    ) -> FdTargets {
        // Output held by an atomic attempt is lost with the attempt.
        let is_attempt = is_attempt(changes);
        for (at, FdChange { descriptor, source }) in changes.iter().enumerate() {
            let here = usize::from(*descriptor);
            let input = io.map_or(FdTarget::Elsewhere, |io| {
                FdTarget::Input(SharedInput { io, change: at as u32 })
            });
            targets[here] = match source {
                FdSource::File { access: Access::Read, .. }
                | FdSource::BufferRead(_)
                | FdSource::Bytes(_) => input,
                FdSource::Hold(_) if matches!(targets[here], FdTarget::Input(_)) && here > 2 => {
                    continue;
                }
                FdSource::Hold(_) if is_attempt => FdTarget::Elsewhere,
                FdSource::BufferCreate(buffer, _)
                | FdSource::BufferCopy { buffer, .. }
                | FdSource::BufferAppend(buffer)
                | FdSource::Hold(buffer) => FdTarget::Buffer(*buffer),
                FdSource::Relay { relay, .. } | FdSource::Tee { relay, .. } => {
                    self.operations.get(relay).map_or(FdTarget::Elsewhere, |targets| targets[here])
                }
                FdSource::Descriptor(from) => targets[usize::from(*from)],
                FdSource::Spool(replay) => {
                    if let FdTarget::Input(input) = targets[here] {
                        self.replays.entry(*replay).or_insert(input);
                    }
                    continue;
                }
                FdSource::Position(_) => continue,
                FdSource::File { .. }
                | FdSource::StagedFile { .. }
                | FdSource::Null
                | FdSource::Gone
                | FdSource::PipeReader(_)
                | FdSource::PipeWriter(_) => FdTarget::Elsewhere,
            };
        }
        targets
    }
}

/// Returns true if the changes begin an atomic attempt.
fn is_attempt(changes: &[FdChange]) -> bool {
    let has = |is: fn(&FdSource) -> bool| changes.iter().any(|it| is(&it.source));
    has(|it| matches!(it, FdSource::Spool(_))) && has(|it| matches!(it, FdSource::Hold(_)))
}

impl FdTarget {
    fn buffer(&self) -> Option<BufferId> {
        match self {
            Self::Buffer(buffer) => Some(*buffer),
            Self::Elsewhere | Self::Input(_) => None,
        }
    }
}

impl Changed {
    fn add(&mut self, command: Option<&LiveCommand>) {
        if let Some(command) = command {
            self.buffers.extend(&command.buffers);
            self.inputs.extend(&command.inputs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftsh_machine::effect::Directory;
    use ftsh_machine::event::Reply;

    #[test]
    fn output_taken_back_is_a_change_of_its_buffer() {
        let (io, buffer, operation) = (IoId(1), BufferId(2), OperationId(4));
        let create = FdSource::BufferCreate(buffer, "".into());
        let mut graph = FdGraph::default();
        graph.on_effect(&Effect::Open {
            operation: OperationId(3),
            io,
            base: IoId::INHERITED,
            directory: Directory::default(),
            umask: None,
            redirects: vec![FdChange { descriptor: 1, source: create }],
        });
        let (directory, query) = (Directory::default(), Query::TakeBack(io));
        graph.on_effect(&Effect::Query { operation, directory, query });
        let done = Event::Done { operation, result: Ok(Reply::Truth(true)) };
        assert_eq!(graph.changed_by(&done).buffers, [buffer]);
        graph.on_event(&done);
        assert_eq!(graph.changed_by(&done), Changed::default());
    }
}
