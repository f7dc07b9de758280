//! Errors in backoff policies, in scripts and on the command line.

use std::time::Duration;

use thiserror::Error;

use super::clause::Clause;
use super::percent::Percent;
use super::policies::PolicyKind;
use crate::duration::{Exact, Unit};
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;

/// Error in a policy.
///
/// `Display` describes the error, [`PolicyError::hint`] proposes a correction, and
/// [`PolicyError::one_line`] returns both.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PolicyError {
    /// The text is empty.
    #[error("a backoff policy is missing, like `full` or `fixed`")]
    Missing,
    /// The first word is the name of no policy.
    #[error("unknown backoff policy `{0}`")]
    UnknownPolicy(String),
    /// A word is the name of no clause.
    #[error("unknown clause `{0}`")]
    UnknownClause(String),
    /// The word after an amount of time is no unit.
    #[error("unknown unit of time `{0}`")]
    UnknownUnit(String),
    /// The policy does not take a clause.
    #[error("the policy `{}` takes no `{}`", .kind.name(), .clause.name())]
    NotTaken {
        /// Policy.
        kind: PolicyKind,
        /// Clause.
        clause: Clause,
    },
    /// A clause is given twice.
    #[error("`{}` is given twice", .0.name())]
    Twice(Clause),
    /// A clause is the last word.
    #[error("the value of `{}` is missing", .0.name())]
    NoValue(Clause),
    /// The word after a clause is no valid value.
    #[error("`{}` takes {}, not `{value}`", .clause.name(), .clause.value_form())]
    NotAValue {
        /// Clause.
        clause: Clause,
        /// Word after the clause.
        value: String,
    },
    /// A delay is 0.
    #[error("`{}` must be longer than 0", .0.name())]
    Zero(Clause),
    /// The first delay is longer than the longest delay.
    #[error("`from` ({}) is above `to` ({})", Exact(*.from), Exact(*.to))]
    Order {
        /// First delay.
        from: Duration,
        /// Longest delay.
        to: Duration,
    },
    /// A factor is less than 1.
    #[error("`by` must be a number from 1, not {0}")]
    Factor(f64),
    /// A jitter is not from 0 to 1.
    #[error("`jitter` must be from 0% to 100%, not {}%", Percent(*.0))]
    Jitter(f64),
}

impl PolicyError {
    /// Returns a proposed correction, or a list of the possible words.
    pub fn hint(&self) -> Option<Hint> {
        let meant = |word: &str, known: Vec<&str>, introduction: &str| match nearest(
            word,
            known.iter().copied(),
        ) {
            Some(known) => hint!("did you mean `{known}`?"),
            None => hint!("{introduction} {}", known.join(", ")),
        };
        match self {
            Self::UnknownPolicy(name) if name.starts_with(|c: char| c.is_ascii_digit()) => {
                Some(hint!("a constant delay is `backoff fixed from {name}`"))
            }
            Self::UnknownPolicy(name) => Some(meant(
                name,
                PolicyKind::ALL.map(PolicyKind::name).to_vec(),
                "the policies are",
            )),
            Self::UnknownClause(name) => {
                Some(meant(name, Clause::ALL.map(Clause::name).to_vec(), "the clauses are"))
            }
            Self::UnknownUnit(name) => match nearest(name, Unit::names()) {
                Some(known) => Some(hint!("did you mean `{known}`?")),
                None => Some(hint!("the units are ms, seconds, minutes, hours, days")),
            },
            Self::NotTaken { kind, .. } => Some(match kind.clauses() {
                [] => hint!("`{}` takes no clauses", kind.name()),
                clauses => {
                    let names: Vec<_> = clauses.iter().map(|clause| clause.name()).collect();
                    hint!("`{}` takes `{}`", kind.name(), names.join("`, `"))
                }
            }),
            Self::Zero(_) => Some(hint!("for no delays use `backoff none`")),
            Self::Missing
            | Self::Twice(_)
            | Self::NoValue(_)
            | Self::NotAValue { .. }
            | Self::Order { .. }
            | Self::Factor(_)
            | Self::Jitter(_) => None,
        }
    }

    /// Returns the slug of the error.
    pub const fn slug(&self) -> Slug {
        match self {
            Self::Missing | Self::NoValue(_) => Slug::MissingValue,
            Self::UnknownPolicy(_) => Slug::UnknownPolicy,
            Self::UnknownClause(_) => Slug::UnknownClause,
            Self::UnknownUnit(_) => Slug::UnknownUnit,
            Self::NotTaken { .. } => Slug::MisplacedClause,
            Self::Twice(_) => Slug::DuplicateClause,
            Self::NotAValue { clause: Clause::From | Clause::To, .. } => Slug::NotADuration,
            Self::NotAValue { .. } => Slug::NotANumber,
            Self::Zero(_) => Slug::ZeroDuration,
            Self::Order { .. } => Slug::ConflictingClauses,
            Self::Factor(_) | Self::Jitter(_) => Slug::OutOfRange,
        }
    }

    /// Returns the description and the hint in one line.
    pub fn one_line(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}
