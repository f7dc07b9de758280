//! Output of branches, grouped or tagged line by line.

pub(crate) mod held;
pub(crate) mod let_out;
pub(crate) mod relay;
pub(crate) mod relaying;

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
