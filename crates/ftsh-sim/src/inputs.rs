//! Modelled input, shared by all readers and read again by atomic attempts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bstr::BString;

use ftsh_machine::effect::{BufferId, PipeId, SpoolId};

/// Input with a position.
pub(crate) struct InputSource {
    pub of: Of,
    at: AtomicUsize,
}

/// Origin of an input.
pub(crate) enum Of {
    Bytes(BString),
    File(BString),
    /// Standard input of the shell: a pipe that is completely written.
    Stdin(BString),
    Buffer(BufferId),
    Pipe(PipeId),
}

impl InputSource {
    /// Creates an input at its beginning.
    pub(crate) fn new(of: Of) -> Arc<Self> {
        Arc::new(Self { of, at: AtomicUsize::new(0) })
    }

    /// Returns the position.
    pub(crate) fn at(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    pub(crate) fn go_to(&self, at: usize) {
        self.at.store(at, Ordering::Relaxed);
    }
}

/// Inputs that attempts read again.
#[derive(Default)]
pub(crate) struct SpooledInputs(BTreeMap<SpoolId, SpooledInput>);

struct SpooledInput {
    source: Arc<InputSource>,
    start: usize,
    kept: bool,
}

impl SpooledInputs {
    /// Resets an input to the position at the first attempt, or records the position.
    pub(crate) fn begin(&mut self, id: SpoolId, source: &Arc<InputSource>) {
        let start = source.at();
        let replay = self.0.entry(id);
        let replay = replay.or_insert_with(|| SpooledInput {
            source: Arc::clone(source),
            start,
            kept: false,
        });
        replay.source.go_to(replay.start);
    }

    pub(crate) fn keep(&mut self, id: SpoolId) {
        if let Some(replay) = self.0.get_mut(&id) {
            replay.kept = true;
        }
    }

    /// Resets all inputs that are not kept.
    pub(crate) fn end_all(&mut self) {
        // Reset the outermost attempt last, as its position counts.
        for SpooledInput { source, start, kept } in std::mem::take(&mut self.0).into_values().rev()
        {
            if !kept {
                source.go_to(start);
            }
        }
    }

    pub(crate) fn end(&mut self, id: SpoolId) {
        if let Some(SpooledInput { source, start, kept: false }) = self.0.remove(&id) {
            source.go_to(start);
        }
    }
}
