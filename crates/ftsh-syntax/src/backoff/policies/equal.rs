//! `equal`: equal jitter.

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
pub(crate) struct Equal(Growth);

impl BackoffPolicy for Equal {
    const DESCRIPTION: Description = Description {
        name: "equal",
        clauses: &[Clause::From, Clause::To, Clause::By],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "v/2 + U(0, v/2), v = min(T·Fⁿ, M)",
        help: "Half of T times F to the power of n, at most M, and a random part of the other \
               half.",
        source: "Brooker, *Exponential Backoff And Jitter* (AWS), 2015: equal jitter.",
    };

    fn start(parameters: Parameters) -> Self {
        Self(Growth::start(parameters))
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        capped(self.0.next(parameters) * (0.5 + 0.5 * rng.random::<f64>()), parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(Growth::values(parameters).map(|value| (value / 2.0, value)), parameters.to)
    }
}
