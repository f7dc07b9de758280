//! Modelled input: read by all who share it, and read again by atomic attempts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bstr::BString;

use ftsh_machine::effect::{BufferId, PipeId, ReplayId};

/// What is read, and how far it has been.
pub struct Source {
    pub of: Of,
    at: AtomicUsize,
}

/// Where input comes from.
pub enum Of {
    Bytes(BString),
    File(BString),
    /// The shell's own standard input, as through a pipe that has been written to its end.
    Stdin(BString),
    Buffer(BufferId),
    Pipe(PipeId),
}

impl Source {
    /// From the beginning.
    pub fn new(of: Of) -> Arc<Self> {
        Arc::new(Self { of, at: AtomicUsize::new(0) })
    }

    /// How far it has been read.
    pub fn at(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    pub fn go_to(&self, at: usize) {
        self.at.store(at, Ordering::Relaxed);
    }
}

/// Inputs that attempts read anew.
#[derive(Default)]
pub struct Replays(BTreeMap<ReplayId, Replay>);

struct Replay {
    source: Arc<Source>,
    start: usize,
    kept: bool,
}

impl Replays {
    /// An attempt begins that reads this.
    pub fn begin(&mut self, id: ReplayId, source: &Arc<Source>) {
        let start = source.at();
        let replay = self.0.entry(id);
        let replay =
            replay.or_insert_with(|| Replay { source: Arc::clone(source), start, kept: false });
        replay.source.go_to(replay.start);
    }

    pub fn keep(&mut self, id: ReplayId) {
        if let Some(replay) = self.0.get_mut(&id) {
            replay.kept = true;
        }
    }

    /// None of it is kept that isn't yet.
    pub fn end_all(&mut self) {
        // The outermost began first.
        for Replay { source, start, kept } in std::mem::take(&mut self.0).into_values().rev() {
            if !kept {
                source.go_to(start);
            }
        }
    }

    pub fn end(&mut self, id: ReplayId) {
        if let Some(Replay { source, start, kept: false }) = self.0.remove(&id) {
            source.go_to(start);
        }
    }
}
