//! Output of branches, grouped or tagged line by line.

pub(crate) mod buffered;
pub(crate) mod escape;
pub(crate) mod flush;
pub(crate) mod relay;

use crate::tasks::core::Core;

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
