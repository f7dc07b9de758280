//! Words before a command that change the meaning of its end.

use std::fmt;
use std::sync::Arc;

use crate::span::Span;

/// Words before a command that change the meaning of its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifier {
    /// Span of the words.
    pub span: Span,
    /// Kind of the modifier.
    pub kind: ModifierKind,
}

/// Kind of a modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModifierKind {
    /// `accept 24,3`: the command succeeds also with these statuses.
    Accept(AcceptedStatuses),
    /// `keep`: processes that the command leaves running belong to the script.
    Keep,
}

impl ModifierKind {
    /// Returns the first word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Keep => "keep",
        }
    }
}

impl fmt::Display for ModifierKind {
    /// Writes the words.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Accept(statuses) => write!(f, "accept {statuses}"),
            Self::Keep => f.write_str("keep"),
        }
    }
}

/// Statuses after `accept`, in the order of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedStatuses(
    /// Statuses from 0 to 255.
    pub Arc<[u8]>,
);

impl fmt::Display for AcceptedStatuses {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let statuses: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&statuses.join(","))
    }
}
