//! Trait of every backoff policy.

use std::fmt;
use std::time::Duration;

use rand::Rng;

use super::bounds::Bound;
use super::clause::Clause;
use super::parameters::Parameters;

/// A backoff policy. A value of the type is the state of one series of delays.
pub trait BackoffPolicy: Clone + Copy + fmt::Debug + PartialEq {
    /// Name, clauses, defaults and documentation.
    const DESCRIPTION: Description;

    /// Returns the state before the first delay.
    fn start(parameters: Parameters) -> Self;

    /// Returns the next delay and advances the state.
    ///
    /// `elapsed` is the time since the first failure, including the time that attempts took.
    fn next_delay(
        &mut self,
        parameters: Parameters,
        elapsed: Duration,
        rng: &mut impl Rng,
    ) -> Duration;

    /// Returns the bounds of every delay, without end, for attempts that take no time.
    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound>;

    /// Returns the delay that growth ends at, before noise is added.
    fn cap(parameters: Parameters) -> Duration {
        parameters.to
    }
}

/// Properties of a policy that parser, completion, help and documentation read.
#[derive(Debug)]
pub struct Description {
    /// Name in scripts.
    pub name: &'static str,
    /// Clauses that the policy takes, in the order in which they are printed.
    pub clauses: &'static [Clause],
    /// Parameters of the policy where a script gives none.
    pub defaults: Parameters,
    /// True if the time that attempts take has an influence on the delays.
    pub depends_on_elapsed: bool,
    /// Formula of a delay, in Markdown, with the letters of [the module](super).
    pub formula: &'static str,
    /// Description for people, as one paragraph without the defaults.
    pub help: &'static str,
    /// Origin of the formula, in Markdown; empty for a formula that needs no reference.
    pub source: &'static str,
}

/// Default of T for most policies.
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Default of M for most policies.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
