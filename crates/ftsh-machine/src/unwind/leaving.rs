//! Ways to leave a `try`, kept while its `finally` group runs.

use crate::program::code::Address;
use crate::unwind::ending::{Ending, Retry, Thrown};
use crate::values::value::Value;

/// What comes after a `finally` group.
#[derive(Debug)]
pub enum Leaving {
    /// The script goes on here.
    To(Address),
    /// `break`, `continue`.
    JumpOut {
        /// How many frames more are left.
        frames: usize,
        /// Where the script goes on then.
        to: Address,
    },
    /// `return`, with its value.
    Return(Option<Value>),
    /// The task ends.
    End(Ending),
    /// A failure.
    Throw(Thrown),
    /// What cancelled the task.
    Cancelled,
}

impl Leaving {
    /// Whether something has failed, so that a failure of the `finally` group comes second. That nobody
    /// reads any more what a stage writes is no failure.
    pub fn is_failing(&self) -> bool {
        match self {
            Self::To(_) | Self::JumpOut { .. } | Self::Return(_) => false,
            Self::End(ending) => !matches!(ending, Ending::Succeeded) && !ending.is_cut_off(),
            Self::Throw(thrown) => thrown.retry != Retry::Unread,
            Self::Cancelled => true,
        }
    }
}
