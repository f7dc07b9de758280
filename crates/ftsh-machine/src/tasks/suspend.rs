//! Reasons why an instruction cannot finish.

use std::fmt::Display;

use crate::effect::Query;
use crate::outcome::FailureKind;

/// Reason why an instruction cannot finish.
#[derive(Debug)]
pub enum Suspend {
    /// The driver has to answer a query first; then the instruction starts over.
    Pending(Query),
    /// The instruction fails.
    Failed(FailureKind, String),
    /// An invariant of the machine does not hold.
    Broken(&'static str),
}

impl Suspend {
    /// An expression or a word without a value.
    pub fn expression(message: impl Display) -> Self {
        Self::Failed(FailureKind::Expression, message.to_string())
    }

    /// A builtin that can't do what it should.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Failed(FailureKind::Failure, message.into())
    }
}
