//! `decorrelated`: each delay depends on the one before, not on the number of delays.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::nanos::{capped, nanos};
use crate::backoff::parameters::Parameters;

/// Previous delay in nanoseconds; T at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decorrelated {
    previous: f64,
}

impl BackoffPolicy for Decorrelated {
    const DESCRIPTION: Description = Description {
        name: "decorrelated",
        clauses: &[Clause::From, Clause::To],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "min(M, U(T, 3·*prev*)), *prev* starts at T",
        help: "A random delay from T up to three times the delay before, at most M.",
        source: "Brooker, *Exponential Backoff And Jitter* (AWS), 2015: decorrelated jitter.",
    };

    fn start(parameters: Parameters) -> Self {
        Self { previous: nanos(parameters.from) }
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        let (from, to) = (nanos(parameters.from), nanos(parameters.to));
        let uniform = rng.random::<f64>();
        self.previous = (from + (3.0 * self.previous - from) * uniform).min(to);
        capped(self.previous, parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        let (from, to) = (nanos(parameters.from), nanos(parameters.to));
        let mut longest = from.min(to);
        let delays = std::iter::repeat_with(move || {
            longest = (3.0 * longest).min(to);
            (from, longest)
        });
        Bound::series(delays, parameters.to)
    }
}
