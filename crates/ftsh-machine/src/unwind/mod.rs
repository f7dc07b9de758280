//! Failures and cancellation: unwinding of frames, and `finally` groups.

mod cancel;
mod cleanup;
mod deferred_cut;
mod emptying;
mod failing;
mod finally;
mod leaving;
mod propagate;
mod resume;

use crate::core::Core;

pub(crate) use self::cancel::Cut;
pub(crate) use self::finally::{guard, holds_output};
pub(crate) use self::leaving::take_over;

/// Leaves structures: by failure, by cancellation, or at their end.
pub(crate) struct Unwinder<'a> {
    pub(crate) core: &'a mut Core,
}

impl<'a> Unwinder<'a> {
    /// Creates the type for one step.
    pub(crate) fn new(core: &'a mut Core) -> Self {
        Self { core }
    }
}
