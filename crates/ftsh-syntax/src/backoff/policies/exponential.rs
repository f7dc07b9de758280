//! `exponential`: no jitter, hence clients that failed together return together.

use std::time::Duration;

use rand::Rng;

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::growth::Growth;
use crate::backoff::nanos::capped;
use crate::backoff::parameters::Parameters;

/// Exponential growth of the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exponential(Growth);

impl BackoffPolicy for Exponential {
    const DESCRIPTION: Description = Description {
        name: "exponential",
        clauses: &[Clause::From, Clause::To, Clause::By],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "min(T·Fⁿ, M)",
        help: "Delays of T times F to the power of n, at most M; nothing random.",
        source: "",
    };

    fn start(parameters: Parameters) -> Self {
        Self(Growth::start(parameters))
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, _: &mut impl Rng) -> Duration {
        capped(self.0.next(parameters), parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(Growth::values(parameters).map(|value| (value, value)), parameters.to)
    }
}
