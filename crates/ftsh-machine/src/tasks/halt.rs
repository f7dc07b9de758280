//! Why an instruction stops.

use std::fmt::Display;

use crate::effect::Query;
use crate::outcome::FailureKind;

/// Why something could not be computed yet, or at all.
#[derive(Debug)]
pub enum Halt {
    /// Find this out and start over.
    Need(Query),
    /// It fails.
    Fail(FailureKind, String),
    /// The machine itself has gone wrong: what doesn't hold.
    Broken(&'static str),
}

impl Halt {
    /// An expression or a word without a value.
    pub fn expression(message: impl Display) -> Self {
        Self::Fail(FailureKind::Expression, message.to_string())
    }

    /// A builtin that can't do what it should.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Fail(FailureKind::Failure, message.into())
    }
}
