//! `full`: full jitter.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::growth::Growth;
use crate::backoff::nanos::capped;
use crate::backoff::parameters::Parameters;

/// Exponential growth of the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Full(Growth);

impl BackoffPolicy for Full {
    const DESCRIPTION: Description = Description {
        name: "full",
        clauses: &[Clause::From, Clause::To, Clause::By],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "U(0, min(T·Fⁿ, M))",
        help: "A random delay from 0 up to T times F to the power of n, at most M.",
        source: "Brooker, *Exponential Backoff And Jitter* (AWS), 2015: full jitter.",
    };

    fn start(parameters: Parameters) -> Self {
        Self(Growth::start(parameters))
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        capped(self.0.next(parameters) * rng.random::<f64>(), parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(Growth::values(parameters).map(|value| (0.0, value)), parameters.to)
    }
}
