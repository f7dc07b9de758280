//! `proportional`: jitter to both sides, beyond the cap too.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::growth::Growth;
use crate::backoff::nanos::duration;
use crate::backoff::parameters::Parameters;

/// Exponential growth of the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Proportional(Growth);

impl BackoffPolicy for Proportional {
    const DESCRIPTION: Description = Description {
        name: "proportional",
        clauses: &[Clause::From, Clause::To, Clause::By, Clause::Jitter],
        defaults: Parameters { from: Duration::from_millis(500), to: MINUTE, by: 1.5, jitter: 0.5 },
        depends_on_elapsed: false,
        formula: "v·U(1−P, 1+P), v = min(T·Fⁿ, M)",
        help: "T times F to the power of n, at most M, give or take P.",
        source: "Google, `ExponentialBackOff` of the HTTP client library for Java.",
    };

    fn start(parameters: Parameters) -> Self {
        Self(Growth::start(parameters))
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        let noise = 2.0 * rng.random::<f64>() - 1.0;
        duration(self.0.next(parameters) * (1.0 + parameters.jitter * noise))
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(
            Growth::values(parameters).map(move |value| {
                (value * (1.0 - parameters.jitter), value * (1.0 + parameters.jitter))
            }),
            Duration::MAX,
        )
    }
}
