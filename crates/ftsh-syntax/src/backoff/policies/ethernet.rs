//! `ethernet`: spreads the load, and never waits for less than `exponential`.

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
pub(crate) struct Ethernet(Growth);

impl BackoffPolicy for Ethernet {
    const DESCRIPTION: Description = Description {
        name: "ethernet",
        clauses: &[Clause::From, Clause::To, Clause::By],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "min(U(1, 2)·T·Fⁿ, M)",
        help: "The default policy: the delay is T times F to the power of n, at most M, where \
               T is multiplied by a random number from 1 to 2.",
        source: "Thain, *Exponential Backoff in Distributed Systems*, 2009.",
    };

    fn start(parameters: Parameters) -> Self {
        Self(Growth::start(parameters))
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        capped(self.0.next(parameters) * (1.0 + rng.random::<f64>()), parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(Growth::values(parameters).map(|value| (value, 2.0 * value)), parameters.to)
    }
}
