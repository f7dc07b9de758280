//! Failures and cancellation: the way out of frames, and `finally` groups.

pub(crate) mod cancel;
pub(crate) mod cleaning;
pub(crate) mod deferred_cut;
pub(crate) mod ending;
pub(crate) mod finally;
pub(crate) mod leaving;
pub(crate) mod unwinding;
