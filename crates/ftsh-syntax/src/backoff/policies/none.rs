//! `none`: attempts without a delay between them.

use std::time::Duration;

use rand::Rng;

use crate::backoff::backoff_policy::{BackoffPolicy, Description};
use crate::backoff::bounds::Bound;
use crate::backoff::parameters::Parameters;

/// No state: all delays are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct None;

impl BackoffPolicy for None {
    const DESCRIPTION: Description = Description {
        name: "none",
        clauses: &[],
        defaults: Parameters { from: Duration::ZERO, to: Duration::ZERO, by: 1.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "0",
        help: "No delay.",
        source: "",
    };

    fn start(_: Parameters) -> Self {
        Self
    }

    fn next_delay(&mut self, _: Parameters, _: Duration, _: &mut impl Rng) -> Duration {
        Duration::ZERO
    }

    fn bounds(_: Parameters) -> impl Iterator<Item = Bound> {
        Bound::series(std::iter::repeat((0.0, 0.0)), Duration::ZERO)
    }
}
