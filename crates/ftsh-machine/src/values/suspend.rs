//! Reasons why an instruction cannot finish.

use std::fmt::Display;

use crate::effect::Query;
use crate::outcome::FailureKind;
use ftsh_syntax::slug::Slug;

/// Reason why an instruction cannot finish.
#[derive(Debug)]
pub enum Suspend {
    /// The driver must answer a query first. The instruction then starts over.
    Pending(Query),
    /// The call in a word that begins at this offset of the source must be evaluated first. The
    /// instruction then starts over.
    Call(usize),
    /// The instruction fails.
    Failed(FailureKind, Slug, String),
    /// An invariant of the machine does not hold.
    Broken(&'static str),
}

impl Suspend {
    /// Returns the failure of an expression or a word without a value.
    pub fn expression(slug: Slug, message: impl Display) -> Self {
        Self::Failed(FailureKind::Expression, slug, message.to_string())
    }

    /// Returns the failure of a builtin.
    pub fn builtin(slug: Slug, message: impl Into<String>) -> Self {
        Self::Failed(FailureKind::Failure, slug, message.into())
    }

    /// Returns the failure of a builtin with wrong arguments.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Failed(FailureKind::Usage, Slug::BuiltinArguments, message.into())
    }
}
