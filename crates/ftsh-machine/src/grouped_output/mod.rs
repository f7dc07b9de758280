//! Output of branches that is kept together or tagged line by line.

pub(crate) mod held;
pub(crate) mod let_out;
pub(crate) mod relay;
pub(crate) mod relaying;

use crate::tasks::core::Core;

/// Writes what branches have printed when its turn has come.
pub(crate) struct GroupedOutput<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    /// Returns what writes the output of branches.
    pub(crate) fn grouped_output(&mut self) -> GroupedOutput<'_> {
        GroupedOutput { core: self }
    }
}
