//! Failures and cancellation: unwinding of frames, and `finally` groups.

pub(crate) mod cancel;
pub(crate) mod cleaning;
pub(crate) mod deferred_cut;
pub(crate) mod ending;
pub(crate) mod finally;
pub(crate) mod leaving;
pub(crate) mod unwinding;

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
