//! Output of branches, grouped or tagged line by line.

mod flush;
mod relay;

use crate::core::Core;

pub(crate) use self::relay::tag_output;

pub(crate) use self::flush::{NOT_WRITTEN, WriteError, flushing, halt_flush};

/// Writes the buffered output of branches.
pub(crate) struct GroupedOutput<'a> {
    pub(crate) core: &'a mut Core,
}

impl<'a> GroupedOutput<'a> {
    /// Creates the type for one step.
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core }
    }
}
