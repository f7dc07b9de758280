//! `fixed`: the same delay before every attempt.

use std::time::Duration;

use rand::Rng;

use crate::backoff::backoff_policy::{BackoffPolicy, Description, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::nanos::nanos;
use crate::backoff::parameters::Parameters;

/// No state: all delays are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fixed;

impl BackoffPolicy for Fixed {
    const DESCRIPTION: Description = Description {
        name: "fixed",
        clauses: &[Clause::From],
        defaults: Parameters { from: SECOND, to: Duration::MAX, by: 1.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "T",
        help: "Always T.",
        source: "",
    };

    fn start(_: Parameters) -> Self {
        Self
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, _: &mut impl Rng) -> Duration {
        parameters.from
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        let from = nanos(parameters.from);
        Bound::series(std::iter::repeat((from, from)), Duration::MAX)
    }

    fn cap(parameters: Parameters) -> Duration {
        parameters.from
    }
}
