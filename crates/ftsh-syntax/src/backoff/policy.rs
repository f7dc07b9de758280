//! Parameters of a policy: defaults, checks and text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::bounds::Bound;
use super::clause::Clause;
use super::parameters::Parameters;
use super::percent::Percent;
use super::policies::PolicyKind;
use super::policy_error::PolicyError;
use crate::clauses::clauses;
use crate::duration::{self, Exact, Unit};

/// Policy with its parameters. A policy ignores parameters that it does not take.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Policy {
    /// Kind of the policy, which selects the formula.
    pub kind: PolicyKind,
    /// T
    pub from: Duration,
    /// M
    pub to: Duration,
    /// F, at least 1.
    pub by: f64,
    /// P, from 0 to 1.
    pub jitter: f64,
}

clauses! {
    /// Parameters given in a script or on the command line, as lengths of time `L` and numbers `N`.
    ///
    /// Parameters without a value have the default of the policy.
    Clauses<L = Duration => L2: length, N = f64 => N2: number> {
        /// T
        from: Option<L> => length,
        /// M
        to: Option<L> => length,
        /// F
        by: Option<N> => number,
        /// P: from 0 to 1, or a percentage while a script is parsed.
        jitter: Option<N> => number,
    }
}

impl Clauses {
    /// Returns the parameters with a jitter given as a percentage converted to a fraction.
    #[must_use]
    pub fn jitter_from_percent(self) -> Self {
        Self { jitter: self.jitter.map(|percent| percent / 100.0), ..self }
    }
}

impl Policy {
    /// Returns the policy with its default parameters.
    pub fn new(kind: PolicyKind) -> Self {
        let Parameters { from, to, by, jitter } = kind.description().defaults;
        Self { kind, from, to, by, jitter }
    }

    /// Returns the policy with the given parameters.
    ///
    /// A default that contradicts a given parameter is adjusted: `to 500 ms` alone starts at 500 ms
    /// too. Returns an error if the policy does not take a parameter, or a value is impossible.
    pub fn with(kind: PolicyKind, clauses: &Clauses) -> Result<Self, PolicyError> {
        let Clauses { from, to, by, jitter } = clauses;
        let given = [
            (Clause::From, from.is_some()),
            (Clause::To, to.is_some()),
            (Clause::By, by.is_some()),
            (Clause::Jitter, jitter.is_some()),
        ];
        for (clause, given) in given {
            if given && !kind.takes(clause) {
                return Err(PolicyError::NotTaken { kind, clause });
            }
        }
        let mut policy = Self::new(kind);
        policy.by = by.unwrap_or(policy.by);
        policy.jitter = jitter.unwrap_or(policy.jitter);
        (policy.from, policy.to) = match (*from, *to) {
            (Some(from), Some(to)) => (from, to),
            (Some(from), None) => (from, policy.to.max(from)),
            (None, Some(to)) => (policy.from.min(to), to),
            (None, None) => (policy.from, policy.to),
        };
        policy.check()?;
        Ok(policy)
    }

    /// Returns all parameters.
    pub(super) fn parameters(&self) -> Parameters {
        let Self { kind: _, from, to, by, jitter } = *self;
        Parameters { from, to, by, jitter }
    }

    /// Returns the bounds of every delay, without end, for attempts that take no time.
    pub fn bounds(&self) -> impl Iterator<Item = Bound> + use<> {
        self.kind.bounds(self.parameters())
    }

    /// Returns the least length of the first delay.
    pub fn least_first_delay(&self) -> Duration {
        self.bounds().next().map_or(Duration::ZERO, |bound| bound.least)
    }

    /// Returns the delay that growth ends at, before noise is added.
    pub fn cap(&self) -> Duration {
        self.kind.cap(self.parameters())
    }

    /// Returns the value of a parameter as scripts write it.
    pub fn value(&self, clause: Clause) -> String {
        match clause {
            Clause::From => Exact(self.from).to_string(),
            Clause::To => Exact(self.to).to_string(),
            Clause::By => self.by.to_string(),
            Clause::Jitter => format!("{}%", Percent(self.jitter)),
        }
    }

    /// Returns an error if a parameter is impossible.
    pub fn check(&self) -> Result<(), PolicyError> {
        let Self { kind, from, to, by, jitter } = self;
        if kind.takes(Clause::To) && to.is_zero() {
            return Err(PolicyError::Zero(Clause::To));
        }
        if kind.takes(Clause::From) && from.is_zero() {
            return Err(PolicyError::Zero(Clause::From));
        }
        if kind.takes(Clause::To) && from > to {
            return Err(PolicyError::Order { from: *from, to: *to });
        }
        if kind.takes(Clause::By) && !(by.is_finite() && *by >= 1.0) {
            return Err(PolicyError::Factor(*by));
        }
        if kind.takes(Clause::Jitter) && !(0.0..=1.0).contains(jitter) {
            return Err(PolicyError::Jitter(*jitter));
        }
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(PolicyKind::Ethernet)
    }
}

impl fmt::Display for Policy {
    /// Formats the policy as in scripts, with every parameter: `full from 100 ms to 20 s by 2`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for clause in self.kind.clauses() {
            write!(f, " {} {}", clause.name(), self.value(*clause))?;
        }
        Ok(())
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Parses the text after `backoff` in a script, with numbers in place of expressions.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let mut words = text.split_whitespace().peekable();
        let name = words.next().ok_or(PolicyError::Missing)?;
        let kind =
            PolicyKind::named(name).ok_or_else(|| PolicyError::UnknownPolicy(name.into()))?;
        let mut clauses = Clauses::default();
        while let Some(word) = words.next() {
            let clause =
                Clause::named(word).ok_or_else(|| PolicyError::UnknownClause(word.into()))?;
            let amount = words.next().ok_or(PolicyError::NoValue(clause))?;
            let not_a_value = || PolicyError::NotAValue { clause, value: amount.into() };
            let twice = match clause {
                Clause::From | Clause::To => {
                    let value = match words.peek() {
                        Some(unit) if Clause::named(unit).is_none() => {
                            let unit = words.next().unwrap_or_default();
                            let unit = Unit::named(unit)
                                .ok_or_else(|| PolicyError::UnknownUnit(unit.into()))?;
                            unit.times(amount)
                        }
                        _ => duration::parse_joined(amount),
                    };
                    let value = value.ok_or_else(not_a_value)?;
                    let place =
                        if clause == Clause::From { &mut clauses.from } else { &mut clauses.to };
                    place.replace(value).is_some()
                }
                Clause::By => {
                    let value = amount.parse().map_err(|_| not_a_value())?;
                    clauses.by.replace(value).is_some()
                }
                Clause::Jitter => {
                    let percent = amount
                        .strip_suffix('%')
                        .or_else(|| words.next_if(|word| *word == "%").map(|_| amount));
                    let value: f64 =
                        percent.and_then(|percent| percent.parse().ok()).ok_or_else(not_a_value)?;
                    clauses.jitter.replace(value / 100.0).is_some()
                }
            };
            if twice {
                return Err(PolicyError::Twice(clause));
            }
        }
        Self::with(kind, &clauses)
    }
}
