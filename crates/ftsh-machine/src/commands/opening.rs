//! Redirections in progress, and requests for descriptors.

use std::collections::VecDeque;

use crate::commands::table::IoTable;
use crate::effect::{BufferId, Directory, FdChange, FdSource, OperationId, StagedFileId, Umask};
use crate::values::value::{ResourceHandle, Value};
use crate::values::variables::{SavedVariable, Variables};
use ftsh_syntax::ast::{Mode, Name};

/// Redirections with expanded words, still to be set up from left to right.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    /// Redirections in order.
    pub pending: VecDeque<Resolved>,
    /// Buffers read by redirections already set up. Output appended to the same variable goes to a
    /// copy, so a command cannot read its own output.
    pub read: Vec<ResourceHandle<BufferId>>,
    /// Staged files of the redirections.
    pub drafts: Vec<ResourceHandle<StagedFileId>>,
    /// Previous values of the variables changed by redirections already set up.
    pub before: Vec<SavedVariable>,
}

/// Redirections with expanded words, set up again for each attempt.
#[derive(Debug)]
pub(crate) struct Targets {
    /// Redirections from left to right.
    pub resolved: VecDeque<Resolved>,
    /// Base of relative paths.
    pub directory: Directory,
    /// Umask for new files.
    pub umask: Umask,
}

/// Redirection with expanded words.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// Descriptor to set.
    pub descriptor: u8,
    /// True if descriptor 2 follows.
    pub with_errors: bool,
    /// New source or target.
    pub target: RedirectTarget,
}

/// Source or target of a redirection.
#[derive(Clone, Debug)]
pub(crate) enum RedirectTarget {
    /// A source known to the driver.
    FdSource(FdSource),
    /// A variable to read.
    ReadVariable(Name),
    /// A variable to write, truncated first or not.
    WriteVariable(Name, Mode),
}

/// Redirections set up in a single step. If one fails, no variable is changed.
#[derive(Debug)]
pub(crate) struct RedirectPhase {
    /// Changes of the table of descriptors.
    pub changes: Vec<FdChange>,
    /// Change of a variable, applied once the redirections are set up.
    pub written: Option<WrittenVariable>,
}

/// Variable that receives the output of a command.
#[derive(Debug)]
pub(crate) struct WrittenVariable {
    /// Name of the variable.
    pub name: Name,
    /// Buffer of the output.
    pub buffer: ResourceHandle<BufferId>,
    /// True if opening an earlier redirection may block.
    pub waits: bool,
}

impl Redirects {
    /// Returns true if all redirections are set up.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

impl WrittenVariable {
    /// Changes the variable.
    pub(crate) fn commit(self, variables: &mut Variables) {
        variables.set(&self.name, Value::Buffer(self.buffer));
    }

    /// Changes the variable after a canceled request, unless an earlier redirection may have
    /// blocked. In that case, the progress of the request is unknown.
    pub(crate) fn abandon(self, variables: &mut Variables) {
        if !self.waits {
            self.commit(variables);
        }
    }
}

/// Request for descriptors in progress.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Id of the request.
    pub operation: OperationId,
    /// Table being created.
    pub io: IoTable,
    /// Change of a variable, applied when the table exists.
    pub written: Option<WrittenVariable>,
}
