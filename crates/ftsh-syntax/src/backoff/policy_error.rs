//! What can be wrong about a policy, wherever it was written.

use std::time::Duration;

use thiserror::Error;

use super::clause::Clause;
use super::percent::Percent;
use super::policies::Kind;
use crate::duration::{Exact, Unit};
use crate::hint::{Hint, hint};
use crate::nearest::nearest;
use crate::slug::Slug;

/// Why a policy isn't one. `Display` says what is wrong, [`Mistake::hint`] what to do, and
/// [`Mistake::in_a_line`] both.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mistake {
    /// There is nothing.
    #[error("a backoff policy is missing, like `full` or `fixed`")]
    Missing,
    /// The first word is no policy.
    #[error("unknown backoff policy `{0}`")]
    UnknownPolicy(String),
    /// A word is no clause.
    #[error("unknown clause `{0}`")]
    UnknownClause(String),
    /// What follows an amount of time is no unit.
    #[error("unknown unit of time `{0}`")]
    UnknownUnit(String),
    /// The policy can't be given this clause.
    #[error("the policy `{}` takes no `{}`", .kind.name(), .clause.name())]
    NotTaken {
        /// The policy.
        kind: Kind,
        /// The clause.
        clause: Clause,
    },
    /// A clause stands there twice.
    #[error("`{}` is given twice", .0.name())]
    Twice(Clause),
    /// A clause is the last word.
    #[error("`{}` lacks its value", .0.name())]
    NoValue(Clause),
    /// The word after a clause isn't what it wants.
    #[error("`{}` wants {}, not `{value}`", .clause.name(), .clause.wants())]
    NotAValue {
        /// The clause.
        clause: Clause,
        /// The word.
        value: String,
    },
    /// A delay of nothing, which would be no delay.
    #[error("`{}` must be longer than 0", .0.name())]
    Zero(Clause),
    /// The first delay is longer than the longest.
    #[error("`from` ({}) is above `to` ({})", Exact(*.from), Exact(*.to))]
    Order {
        /// The first delay.
        from: Duration,
        /// The longest one.
        to: Duration,
    },
    /// A factor that isn't at least 1.
    #[error("`by` must be a number from 1, not {0}")]
    Factor(f64),
    /// A jitter that isn't from 0 to 1.
    #[error("`jitter` must be from 0% to 100%, not {}%", Percent(*.0))]
    Jitter(f64),
}

impl Mistake {
    /// What may have been meant, or what there is.
    pub fn hint(&self) -> Option<Hint> {
        let meant =
            |word: &str, known: Vec<&str>, what: &str| match nearest(word, known.iter().copied()) {
                Some(known) => hint!("did you mean `{known}`?"),
                None => hint!("{what} {}", known.join(", ")),
            };
        match self {
            Self::UnknownPolicy(name) => {
                Some(meant(name, Kind::ALL.map(Kind::name).to_vec(), "the policies are"))
            }
            Self::UnknownClause(name) => {
                Some(meant(name, Clause::ALL.map(Clause::name).to_vec(), "the clauses are"))
            }
            Self::UnknownUnit(name) => match nearest(name, Unit::names()) {
                Some(known) => Some(hint!("did you mean `{known}`?")),
                None => Some(hint!("the units are ms, seconds, minutes, hours, days")),
            },
            Self::NotTaken { kind, .. } => Some(match kind.clauses() {
                [] => hint!("`{}` takes no settings at all", kind.name()),
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

    /// Returns the kind of mistake.
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

    /// What is wrong and what to do, in one line for people.
    pub fn in_a_line(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}
