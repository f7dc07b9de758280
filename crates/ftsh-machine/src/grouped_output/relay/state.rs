//! State of a relay, which forwards the output of branches line by line.

use crate::effect::OperationId;

/// Relay of the output of a `forall`.
#[derive(Debug)]
pub(crate) struct OutputRelay {
    /// Id of the relay's operation, which ends with the relay.
    pub operation: OperationId,
    progress: RelayPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayPhase {
    /// Branches run, or may still begin.
    Open,
    /// All branches have ended, and the rest of their output is being written.
    Finishing,
    /// All output is written, writing failed, or the relay was abandoned.
    Done,
}

impl OutputRelay {
    /// Creates an open relay.
    pub(crate) fn new(operation: OperationId) -> Self {
        Self { operation, progress: RelayPhase::Open }
    }

    /// Finishes the relay, because no more branches begin. Returns false if already finished.
    pub(crate) fn finish(&mut self) -> bool {
        let is_news = self.progress == RelayPhase::Open;
        if is_news {
            self.progress = RelayPhase::Finishing;
        }
        is_news
    }

    /// Ends the relay. Returns false if already ended.
    pub(crate) fn end(&mut self) -> bool {
        std::mem::replace(&mut self.progress, RelayPhase::Done) != RelayPhase::Done
    }

    /// Returns true if the relay is not awaited any more.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == RelayPhase::Done
    }
}
