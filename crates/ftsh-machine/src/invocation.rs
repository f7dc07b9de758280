//! Commands with their redirections in progress, and tables of descriptors, as plain data.

use std::collections::VecDeque;
use std::sync::Arc;

use bstr::BString;

use crate::effect::{
    BufferId, Directory, Environment, FdChange, FdSource, IoId, OperationId, StagedFileId, Umask,
};
use crate::resources::ResourceHandle;
use crate::values::Value;
use crate::variables::{SavedVariable, Variables};
use ftsh_syntax::ast::{Mode, Name};

/// Table of descriptors.
#[derive(Clone, Debug)]
pub(crate) struct IoTable {
    io: ResourceHandle<IoId>,
    /// Bit set of the descriptors leading to a later stage of a pipeline, or to the shell's own
    /// output.
    piped: u16,
    /// Bit set of the descriptors that may read from a pipe or a socket, whose input can end.
    passing: u16,
    /// Bit set of the descriptors that redirections opened to files and variables.
    opened: u16,
}

impl IoTable {
    /// Returns the table with which the shell was started. `passing` states that descriptor 0 is a
    /// pipe or a socket.
    pub(crate) fn new(io: ResourceHandle<IoId>, passing: bool) -> Self {
        Self { io, piped: 1 << 1 | 1 << 2, passing: u16::from(passing), opened: 0 }
    }

    /// Returns the table after changes, under a new id.
    pub(crate) fn changed(&self, io: ResourceHandle<IoId>, changes: &[FdChange]) -> Self {
        let passing =
            follow(self.passing, changes, |source, _| matches!(source, FdSource::PipeReader(_)));
        let opened = changes.iter().fold(self.opened, |bits, change| match &change.source {
            FdSource::File { .. }
            | FdSource::StagedFile { .. }
            | FdSource::BufferCreate(..)
            | FdSource::BufferCopy { .. } => bits | 1 << change.descriptor,
            _ => bits & !(1 << change.descriptor),
        });
        Self { io, piped: self.piped_after(changes), passing, opened }
    }

    /// Returns true if a redirection opened the file or the variable of standard output.
    pub(crate) fn is_output_opened(&self) -> bool {
        self.opened & 1 << 1 != 0
    }

    /// Returns the id of the table.
    pub(crate) fn id(&self) -> IoId {
        self.io.id()
    }

    /// Returns true if output may go to a later stage of a pipeline, or to the shell's own output.
    /// The stage or the script ends when the reader is gone.
    pub(crate) fn has_readers(&self) -> bool {
        self.piped != 0
    }

    /// Returns true if output of a descriptor may go to such a reader.
    pub(crate) fn feeds(&self, descriptor: u8) -> bool {
        self.piped & 1 << descriptor != 0
    }

    /// Returns the bit set of such descriptors after changes.
    pub(crate) fn piped_after(&self, changes: &[FdChange]) -> u16 {
        follow(self.piped, changes, |source, before| match source {
            FdSource::PipeWriter(_) => true,
            FdSource::Relay { .. } | FdSource::Tee { .. } => before,
            _ => false,
        })
    }

    /// Returns true if descriptor 0 is input that can end.
    pub(crate) fn may_end(&self) -> bool {
        self.passing & 1 != 0
    }
}

/// Returns a bit set of descriptors after changes. `is` decides for sources other than descriptors,
/// with the descriptor's previous bit.
fn follow(bits: u16, changes: &[FdChange], is: impl Fn(&FdSource, bool) -> bool) -> u16 {
    changes.iter().fold(bits, |bits, change| {
        let bit = 1 << change.descriptor;
        let set = match &change.source {
            FdSource::Descriptor(from) => bits & 1 << from != 0,
            source => is(source, bits & bit != 0),
        };
        if set { bits | bit } else { bits & !bit }
    })
}

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

/// Command with expanded words.
#[derive(Clone, Debug)]
pub(crate) struct Expanded {
    /// Words; at least one.
    pub words: Vec<BString>,
    /// Variables for this command only.
    pub assignments: Vec<(Name, BString)>,
    /// Exported variables, if the command may be a program.
    pub environment: Option<Arc<Environment>>,
    /// Kind of the command.
    pub kind: CommandTarget,
    /// Words as typed, for messages.
    pub text: String,
}

/// Kind of a command, by its first word.
#[derive(Clone, Debug)]
pub(crate) enum CommandTarget {
    /// A function.
    Function(Name),
    /// A builtin with this name.
    Builtin(&'static str),
    /// A program.
    Program,
}
