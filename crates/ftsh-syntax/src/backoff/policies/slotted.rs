//! `slotted`: whole slots, as on an Ethernet cable.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::nanos::{capped, nanos};
use crate::backoff::parameters::Parameters;

/// Largest number of slots that a delay is drawn from.
const MAX_SLOTS: f64 = 1024.0;

/// Number of slots that the next delay is drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slotted {
    slots: f64,
}

impl Slotted {
    const START: Self = Self { slots: 2.0 };

    fn next(&mut self) -> f64 {
        let slots = self.slots;
        self.slots = (2.0 * slots).min(MAX_SLOTS);
        slots
    }
}

impl BackoffPolicy for Slotted {
    const DESCRIPTION: Description = Description {
        name: "slotted",
        clauses: &[Clause::From, Clause::To],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: false,
        formula: "T times a whole number from 0 to 2^min(n+1, 10) − 1, at most M",
        help: "A random whole number of slots of length T; the range doubles with each \
               failure, up to 1023.",
        source: "IEEE 802.3: truncated binary exponential backoff of Ethernet.",
    };

    fn start(_: Parameters) -> Self {
        Self::START
    }

    fn next_delay(&mut self, parameters: Parameters, _: Duration, rng: &mut impl Rng) -> Duration {
        let slot = (self.next() * rng.random::<f64>()).floor();
        capped(nanos(parameters.from) * slot, parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        let from = nanos(parameters.from);
        let mut state = Self::START;
        Bound::series(
            std::iter::repeat_with(move || (0.0, from * (state.next() - 1.0))),
            parameters.to,
        )
    }
}
