//! Recorded state of a run: the changes to record with an event, and the parts already recorded.

use std::collections::{BTreeMap, BTreeSet};

use super::fd_graph::{FdGraph, Reading, SharedInput};
use super::lengths::Lengths;
use super::live_state::LiveState;
use ftsh_machine::driver::BufferPart;
use ftsh_machine::effect::{BufferId, FdSource, OperationId, Query};
use ftsh_machine::event::Reply;
use ftsh_machine::{Effect, Event};

/// Length of the shortest text that is compared with recorded buffers.
const MIN_TEXT: usize = 64;

/// Recorded part of the world.
#[derive(Default)]
pub(crate) struct RecordedState {
    fd_graph: FdGraph,
    lengths: Lengths,
    positions: BTreeMap<SharedInput, u64>,
    /// Buffers whose content the machine has requested, by operation.
    queries: BTreeMap<OperationId, BufferId>,
    /// Unanswered requests to commit staged files.
    committing_files: BTreeSet<OperationId>,
}

/// Data to query from the driver before an event is delivered.
#[derive(Debug, Default)]
pub struct DueQueries {
    /// Buffers to read, each from the recorded length on.
    pub buffers: Vec<(BufferId, u64)>,
    /// Inputs whose position to query.
    pub inputs: Vec<Reading>,
}

impl RecordedState {
    /// Returns the recorded state of a resumed run.
    pub(crate) fn new(alive: &LiveState) -> Self {
        let mut known = Self {
            fd_graph: alive.fd_graph.clone(),
            lengths: Lengths::new(alive),
            positions: alive.positions.clone(),
            queries: BTreeMap::new(),
            committing_files: BTreeSet::new(),
        };
        alive.in_flight().for_each(|effect| known.add_query(effect));
        known
    }

    /// Updates the state for an effect that the machine requests.
    pub(crate) fn on_effect(&mut self, effect: &Effect) {
        self.fd_graph.on_effect(effect);
        self.lengths.on_effect(effect);
        match effect {
            Effect::Abandon(operation) => {
                self.queries.remove(operation);
                self.committing_files.remove(operation);
            }
            Effect::Commit { operation, .. } | Effect::CommitView { operation, .. } => {
                _ = self.committing_files.insert(*operation);
            }
            Effect::CloseIo(io) => {
                let of = |change| SharedInput { io: *io, change };
                while let Some((input, _)) = self.positions.range(of(0)..=of(u32::MAX)).next() {
                    let input = *input;
                    self.positions.remove(&input);
                }
            }
            // Positions of inputs that are read again, or kept, are recorded again.
            Effect::KeepInput(_) | Effect::DropSpool(_) => self.positions.clear(),
            Effect::Open { redirects, .. } => {
                if redirects.iter().any(|it| matches!(it.source, FdSource::Spool(_))) {
                    self.positions.clear();
                }
            }
            effect => self.add_query(effect),
        }
    }

    /// Records the text of all later answers. The buffer may have changed between an answer and its
    /// delivery.
    pub(crate) fn forget_queries(&mut self) {
        self.queries.clear();
    }

    fn add_query(&mut self, effect: &Effect) {
        if let Effect::Query { operation, query: Query::Buffer(buffer), .. } = effect {
            self.queries.insert(*operation, *buffer);
        }
    }

    /// Updates the state for an event that the machine receives.
    pub(crate) fn on_event(&mut self, event: &Event) {
        self.fd_graph.on_event(event);
        if let Event::Done { operation, .. } = event {
            self.queries.remove(operation);
            self.committing_files.remove(operation);
        }
    }

    /// Returns true while staged files are being committed.
    pub(crate) fn is_committing_files(&self) -> bool {
        !self.committing_files.is_empty()
    }

    /// Returns the data to record before an event is delivered.
    pub(crate) fn due(&self, event: &Event) -> DueQueries {
        let mut changed = self.fd_graph.changed_by(event);
        changed.buffers.sort_unstable();
        changed.buffers.dedup();
        let known = |buffer| Some((buffer, self.lengths.of(buffer)?));
        DueQueries {
            buffers: changed.buffers.into_iter().filter_map(known).collect(),
            inputs: changed.inputs,
        }
    }

    /// Returns true if the event is the exit of a command in an atomic attempt.
    pub(crate) fn is_in_attempt(&self, event: &Event) -> bool {
        self.fd_graph.is_in_attempt(event)
    }

    /// Returns the input that an effect makes permanently read.
    pub(crate) fn kept(&self, effect: &Effect) -> Option<Reading> {
        match effect {
            Effect::KeepInput(replay) => self.fd_graph.kept(*replay),
            _ => None,
        }
    }

    /// Notes recorded bytes of a buffer.
    pub(crate) fn written(&mut self, buffer: BufferId, written: &BufferPart) {
        self.lengths.written(buffer, written);
    }

    /// Notes the position of an input, and returns true if the position is new.
    pub(crate) fn position(&mut self, input: SharedInput, at: u64) -> bool {
        self.positions.insert(input, at) != Some(at)
    }

    /// Returns the buffer whose recorded content equals the answer in `event`.
    pub(crate) fn buffer_in(&self, event: &Event) -> Option<BufferId> {
        let Event::Done { operation, result: Ok(Reply::Text(text)) } = event else { return None };
        let buffer = self.queries.get(operation)?;
        (text.len() >= MIN_TEXT && self.lengths.is(*buffer, text)).then_some(*buffer)
    }
}
