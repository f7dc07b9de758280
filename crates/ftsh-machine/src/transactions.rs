//! Transactions as plain data: an attempt of an atomic `try`, or a redirection to files inside such
//! an attempt. A transaction takes effect as a whole or not at all.

use std::collections::VecDeque;

use crate::dropped::{Dropped, DroppedPart, OutputHolder};
use crate::effect::{
    BufferId, OperationId, ProcessId, ScopeId, ScratchId, SpoolId, StagedFileId, ViewId,
};
use crate::endings::Continuation;
use crate::invocation::{IoTable, WrittenVariable};
use crate::resources::ResourceHandle;

/// Descriptor with the buffer of its output, until written or dropped.
pub(crate) type BufferedStream = (u8, ResourceHandle<BufferId>);

/// Scratch directory of an attempt.
pub(crate) type Scratch = ResourceHandle<ScratchId>;

/// Transaction in progress.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// Kind of the transaction.
    pub kind: TransactionKind,
    /// Descriptors around the transaction.
    pub before: IoTable,
    /// Buffers of output.
    pub buffered: Vec<BufferedStream>,
    /// Staged files in order, each with its descriptor.
    pub drafts: Vec<(u8, ResourceHandle<StagedFileId>)>,
    /// Staged files of successful inner attempts, which are committed first. During the commit: all
    /// files to put in place.
    pub inner: Vec<ResourceHandle<StagedFileId>>,
    /// Variables to change, each with its descriptor.
    pub written: Vec<(u8, WrittenVariable)>,
    /// State of the commit, once begun.
    pub commit: Option<Commit>,
}

/// Kind of a transaction.
#[derive(Debug)]
pub(crate) enum TransactionKind {
    /// An attempt of an atomic `try`.
    Attempt {
        /// Replayed standard input.
        replay: SpoolId,
        /// Scratch directory.
        scratch: Scratch,
        /// View of the directories of `atomic in`.
        view: Option<AttemptView>,
    },
    /// An ordinary attempt whose standard error is kept and forwarded.
    Tee {
        /// Relay that forwards the output.
        relay: OperationId,
        /// Buffer of the last output.
        buffer: ResourceHandle<BufferId>,
        /// True if output may have come into the buffer since it was emptied.
        is_used: bool,
    },
    /// An attempt that is not atomic and reads the same standard input as the first one.
    Input(SpoolId),
    /// An attempt whose standard output is written when no other attempt follows.
    Held,
    /// A body of which nothing is left after its success.
    NoLeftovers {
        /// Scope of the body.
        scope: ScopeId,
        /// Scope around the body.
        outer_scope: ScopeId,
    },
    /// The `catch` of an atomic `try`.
    Catch,
    /// A structure or a call inside an atomic attempt, whose files are committed after its success.
    Redirected {
        /// True if the redirections end with the call inside.
        around_call: bool,
    },
}

/// View of an attempt, and what it replaces.
#[derive(Clone, Debug)]
pub(crate) struct AttemptView {
    /// The view.
    pub handle: ResourceHandle<ViewId>,
    /// Scope of everything that runs in the view.
    pub scope: ScopeId,
    /// View around the attempt.
    pub outer: Option<ViewId>,
    /// Scope around the view.
    pub outer_scope: ScopeId,
}

/// Request for the view of an attempt that begins.
#[derive(Debug)]
pub(crate) struct OpeningView {
    /// Id of the request.
    pub operation: OperationId,
    /// View being created.
    pub handle: ResourceHandle<ViewId>,
}

/// Commit in progress.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Continuation after the commit.
    pub then: Continuation,
    /// Streams still to be written.
    pub streams: VecDeque<BufferedStream>,
}

/// Request for the descriptors of a new transaction.
#[derive(Debug)]
pub(crate) struct OpeningTransaction {
    /// Id of the request.
    pub operation: OperationId,
    /// Table being created.
    pub io: IoTable,
    /// Transaction to begin.
    pub transaction: Box<Transaction>,
}

/// Request of a commit in progress.
#[derive(Debug)]
pub(crate) enum Committing {
    /// Commit of files.
    Files(OperationId),
    /// Query for non-empty buffers.
    Filled(OperationId),
    /// End of a relay.
    Relay(OperationId),
    /// Writing of a stream.
    Writing(ProcessId, BufferedStream),
}

impl Transaction {
    /// Creates a transaction without output.
    pub(crate) fn bare(kind: TransactionKind, before: IoTable) -> Self {
        let (buffered, drafts, inner, written) = Default::default();
        Self { kind, before, buffered, drafts, inner, written, commit: None }
    }

    /// Creates the transaction of held standard output.
    pub(crate) fn held(buffer: ResourceHandle<BufferId>, before: IoTable) -> Self {
        Self { buffered: vec![(1, buffer)], ..Self::bare(TransactionKind::Held, before) }
    }

    /// Creates the transaction of a redirection, whose files are committed after its success.
    pub(crate) fn redirected(
        before: IoTable,
        around_call: bool,
        drafts: Vec<ResourceHandle<StagedFileId>>,
    ) -> Self {
        Self { inner: drafts, ..Self::bare(TransactionKind::Redirected { around_call }, before) }
    }

    /// Returns the output that is lost or kept with a failure: first buffers and then files.
    pub(crate) fn dropped(&self) -> Dropped {
        let buffer =
            |descriptor, it: &ResourceHandle<_>| (descriptor, OutputHolder::Buffer(it.clone()));
        let buffered = self.buffered.iter().map(|(descriptor, it)| buffer(*descriptor, it));
        let written = self.written.iter().map(|(descriptor, it)| buffer(*descriptor, &it.buffer));
        let drafts = self.drafts.iter().map(|(to, it)| (*to, OutputHolder::StagedFile(it.clone())));
        let mut dropped = Dropped::new();
        for (descriptor, held) in buffered.chain(written).chain(drafts) {
            let part = match (&self.kind, descriptor) {
                (TransactionKind::Attempt { .. }, 2) => DroppedPart::Errors,
                (TransactionKind::Attempt { .. }, 1) => DroppedPart::Output,
                _ => continue,
            };
            dropped.entry(part).or_default().push(held);
        }
        if let TransactionKind::Tee { buffer, .. } = &self.kind {
            dropped.insert(DroppedPart::Forwarded, vec![OutputHolder::Buffer(buffer.clone())]);
        }
        dropped
    }

    /// Returns the view of an attempt.
    pub(crate) fn view(&self) -> Option<&AttemptView> {
        match &self.kind {
            TransactionKind::Attempt { view, .. } => view.as_ref(),
            _ => None,
        }
    }

    /// Returns true for held output that is not being written yet.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.kind, TransactionKind::Held) && self.commit.is_none()
    }

    /// Returns true if the redirections end with the call inside.
    pub(crate) fn is_around_call(&self) -> bool {
        matches!(self.kind, TransactionKind::Redirected { around_call: true })
    }
}
