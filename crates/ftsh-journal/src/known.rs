//! What the writer of a journal knows of the world that the run has: what may have changed by an event, and
//! how much of it is recorded.

use std::collections::{BTreeMap, BTreeSet};

use super::fd_graph::{Input, Plumbing, Reading};
use super::lengths::Lengths;
use super::live_state::Alive;
use ftsh_machine::driver::Written;
use ftsh_machine::effect::{BufferId, FdSource, OperationId, Query};
use ftsh_machine::event::Reply;
use ftsh_machine::{Effect, Event};

/// Less than this isn't worth looking for among what is recorded.
const SHORT: usize = 64;

/// The world, as far as it is recorded.
#[derive(Default)]
pub struct Known {
    plumbing: Plumbing,
    lengths: Lengths,
    positions: BTreeMap<Input, u64>,
    /// The buffers whose content is asked for.
    questions: BTreeMap<OperationId, BufferId>,
    /// The requests to have files take their places that aren't answered.
    settling: BTreeSet<OperationId>,
}

/// What the driver has to be asked for.
#[derive(Debug, Default)]
pub struct Due {
    /// What buffers hold, each after so many bytes.
    pub buffers: Vec<(BufferId, u64)>,
    /// How far inputs have been read.
    pub inputs: Vec<Reading>,
}

impl Known {
    /// That of a run that goes on.
    pub fn new(alive: &Alive) -> Self {
        let mut known = Self {
            plumbing: alive.plumbing.clone(),
            lengths: Lengths::new(alive),
            positions: alive.positions.clone(),
            questions: BTreeMap::new(),
            settling: BTreeSet::new(),
        };
        alive.flights().for_each(|effect| known.question(effect));
        known
    }

    /// Something is asked of the driver.
    pub fn asked(&mut self, effect: &Effect) {
        self.plumbing.asked(effect);
        self.lengths.asked(effect);
        match effect {
            Effect::Abandon(operation) => {
                self.questions.remove(operation);
                self.settling.remove(operation);
            }
            Effect::Settle { operation, .. } => _ = self.settling.insert(*operation),
            Effect::CloseIo(io) => {
                let of = |change| Input { io: *io, change };
                while let Some((input, _)) = self.positions.range(of(0)..=of(u32::MAX)).next() {
                    let input = *input;
                    self.positions.remove(&input);
                }
            }
            // What is read anew is recorded anew, and so is what is kept of that.
            Effect::KeepInput(_) | Effect::DropReplay(_) => self.positions.clear(),
            Effect::Open { redirects, .. } => {
                if redirects.iter().any(|it| matches!(it.source, FdSource::Replay(_))) {
                    self.positions.clear();
                }
            }
            effect => self.question(effect),
        }
    }

    /// From here on answers are recorded as they are: it may not be known what there was when they came.
    pub fn forget_questions(&mut self) {
        self.questions.clear();
    }

    fn question(&mut self, effect: &Effect) {
        if let Effect::Query { operation, query: Query::Buffer(buffer), .. } = effect {
            self.questions.insert(*operation, *buffer);
        }
    }

    /// The machine is told something.
    pub fn told(&mut self, event: &Event) {
        self.plumbing.told(event);
        if let Event::Done { operation, .. } = event {
            self.questions.remove(operation);
            self.settling.remove(operation);
        }
    }

    /// Whether files are taking their places.
    pub fn is_settling(&self) -> bool {
        !self.settling.is_empty()
    }

    /// What has to be known before this is told.
    pub fn due(&self, event: &Event) -> Due {
        let mut changed = self.plumbing.changed_by(event);
        changed.buffers.sort_unstable();
        changed.buffers.dedup();
        let known = |buffer| Some((buffer, self.lengths.of(buffer)?));
        Due {
            buffers: changed.buffers.into_iter().filter_map(known).collect(),
            inputs: changed.inputs,
        }
    }

    /// Whether this tells of a command in an atomic attempt.
    pub fn is_in_attempt(&self, event: &Event) -> bool {
        self.plumbing.is_in_attempt(event)
    }

    /// An input that is read for good when this is carried out.
    pub fn kept(&self, effect: &Effect) -> Option<Reading> {
        match effect {
            Effect::KeepInput(replay) => self.plumbing.kept(*replay),
            _ => None,
        }
    }

    /// This is recorded.
    pub fn written(&mut self, buffer: BufferId, written: &Written) {
        self.lengths.written(buffer, written);
    }

    /// How far an input has been read; says whether that is news.
    pub fn position(&mut self, input: Input, at: u64) -> bool {
        self.positions.insert(input, at) != Some(at)
    }

    /// The buffer whose content this is the answer to, if it is what is recorded of it.
    pub fn buffer_in(&self, event: &Event) -> Option<BufferId> {
        let Event::Done { operation, result: Ok(Reply::Text(text)) } = event else { return None };
        let buffer = self.questions.get(operation)?;
        (text.len() >= SHORT && self.lengths.is(*buffer, text)).then_some(*buffer)
    }
}
