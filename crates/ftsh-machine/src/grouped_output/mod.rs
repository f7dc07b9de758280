//! Output of branches, grouped or tagged line by line.

mod flush;
mod relay;

use crate::core::Core;

pub(crate) use self::flush::{NOT_WRITTEN, WriteError, flushing, halt_flush};

/// Writes the buffered output of branches.
pub(crate) struct GroupedOutput<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    /// Returns the writer of buffered output.
    pub(crate) fn grouped_output(&mut self) -> GroupedOutput<'_> {
        GroupedOutput { core: self }
    }
}
