//! Ways to leave a `try`, kept while its `finally` group runs.

use crate::program::code::Address;
use crate::unwind::ending::{Retry, TaskEnding, Thrown};
use crate::values::value::Value;

/// Continuation after a `finally` group.
#[derive(Debug)]
pub(crate) enum Continuation {
    /// Jump to an address.
    To(Address),
    /// Continue `break` or `continue`.
    JumpOut {
        /// Number of frames still to leave.
        frames: usize,
        /// Target address.
        to: Address,
    },
    /// Continue `return`, with its value.
    Return(Option<Value>),
    /// End the task.
    End(TaskEnding),
    /// Continue a failure.
    Throw(Thrown),
    /// Continue a cancellation.
    Canceled,
}

impl Continuation {
    /// Returns true if a failure is in progress, so that a failure of the group is secondary. A
    /// stage whose reader is gone has not failed.
    pub(crate) fn is_failing(&self) -> bool {
        match self {
            Self::To(_) | Self::JumpOut { .. } | Self::Return(_) => false,
            Self::End(ending) => {
                !matches!(ending, TaskEnding::Succeeded) && !ending.is_broken_pipe()
            }
            Self::Throw(thrown) => thrown.retry != Retry::BrokenPipe,
            Self::Canceled => true,
        }
    }
}
