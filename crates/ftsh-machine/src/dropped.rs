//! Output that failed attempts hold, until it is read for the failure.

use std::collections::BTreeMap;

use crate::effect::{BufferId, Sink, StagedFileId};
use crate::resources::ResourceHandle;

/// Output of a failed attempt, read for the failure part by part before it is dropped.
pub(crate) type Dropped = BTreeMap<DroppedPart, Vec<OutputHolder>>;

/// Parts of the output of a failed attempt, in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DroppedPart {
    /// Held standard error.
    Errors,
    /// Held standard output.
    Output,
    /// Standard error that was also forwarded.
    Forwarded,
}

/// Output that an attempt holds.
#[derive(Clone, Debug)]
pub(crate) enum OutputHolder {
    /// Buffer of a stream or a variable.
    Buffer(ResourceHandle<BufferId>),
    /// File to be put in place.
    StagedFile(ResourceHandle<StagedFileId>),
}

impl OutputHolder {
    /// Returns the place to read.
    pub(crate) fn sink(&self) -> Sink {
        match self {
            Self::Buffer(buffer) => Sink::Buffer(buffer.id()),
            Self::StagedFile(file) => Sink::StagedFile(file.id()),
        }
    }
}
