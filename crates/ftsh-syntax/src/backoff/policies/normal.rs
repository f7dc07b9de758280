//! `normal`: normally distributed noise, which influences the next delay.

use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::growth::Growth;
use crate::backoff::nanos::{duration, nanos};
use crate::backoff::parameters::Parameters;

/// Previous delay, noise included, in nanoseconds; 0 at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normal {
    previous: f64,
}

impl BackoffPolicy for Normal {
    const DESCRIPTION: Description = Description {
        name: "normal",
        clauses: &[Clause::From, Clause::To, Clause::By, Clause::Jitter],
        defaults: Parameters { from: Duration::from_millis(100), to: MINUTE, by: 2.0, jitter: 0.1 },
        depends_on_elapsed: false,
        formula: "T, then v + N(0, P·v), v = min(*prev*·F, M), at least 0",
        help: "F times the delay before, at most M, with a normally distributed deviation of P.",
        source: "An article on the interval between retried requests, whose client in Go has \
               `MinDelay`, `MaxDelay`, `Factor` and `Jitter`.",
    };

    fn start(_: Parameters) -> Self {
        Self { previous: 0.0 }
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        let value = if self.previous > 0.0 {
            let value = (self.previous * parameters.by).min(nanos(parameters.to));
            let noise: f64 = rng.sample(StandardNormal);
            (value + noise * parameters.jitter * value).max(0.0)
        } else {
            // The first delay, or noise made the last delay 0 and all its multiples are 0.
            nanos(parameters.from.min(parameters.to))
        };
        self.previous = value;
        duration(value)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        let delays = Growth::values(parameters).enumerate().map(move |(count, value)| {
            // The first delay has no noise.
            if count == 0 || parameters.jitter == 0.0 {
                (value, value)
            } else {
                (0.0, f64::INFINITY)
            }
        });
        Bound::series(delays, Duration::MAX)
    }
}
