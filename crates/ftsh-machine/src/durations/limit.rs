//! The learned limit of a running `try`.

use super::execution::LimitedExecution;
use super::learned::LimitKey;

/// The learned limit of a `try` in one execution.
#[derive(Debug)]
pub(crate) struct UsualLimit {
    /// Key in the history of the file.
    pub key: LimitKey,
    /// Limits of the attempts.
    pub execution: LimitedExecution,
    /// Number of an attempt that the run's previous shell began. Its duration is unknown.
    pub resumed_attempt: Option<u64>,
}
