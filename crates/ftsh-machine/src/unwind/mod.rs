//! Failures and cancellation: unwinding of frames, and `finally` groups.

pub(crate) mod cancel;
pub(crate) mod cleanup;
pub(crate) mod continuation;
pub(crate) mod deferred_cut;
pub(crate) mod ending;
pub(crate) mod finally;
pub(crate) mod propagate;

use crate::tasks::core::Core;

/// Leaves structures: by failure, by cancellation, or at their end.
pub(crate) struct Unwinder<'a> {
    pub(crate) core: &'a mut Core,
}

impl Core {
    /// Returns the unwinder.
    pub(crate) fn unwinder(&mut self) -> Unwinder<'_> {
        Unwinder { core: self }
    }
}
