//! `windowed`: attempts fall in windows that never overlap.
//!
//! A delay lasts for the rest of the previous window, plus a part of the next. Windows stop growing
//! at M/2, because a delay can last for nearly all of one window and all of the next. Time spent in
//! attempts counts: the retry of an attempt that outlasts its window falls in the rest of the
//! window that has begun by then.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::backoff::backoff_policy::{BackoffPolicy, Description, MINUTE, SECOND};
use crate::backoff::bounds::Bound;
use crate::backoff::clause::Clause;
use crate::backoff::nanos::{capped, duration, nanos};
use crate::backoff::parameters::Parameters;

/// Windows used already, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windowed {
    /// Length of the next window.
    length: f64,
    /// End of the last window, after the first failure.
    end: f64,
}

impl BackoffPolicy for Windowed {
    const DESCRIPTION: Description = Description {
        name: "windowed",
        clauses: &[Clause::From, Clause::To],
        defaults: Parameters { from: SECOND, to: MINUTE, by: 2.0, jitter: 0.0 },
        depends_on_elapsed: true,
        formula: "the rest of the window before, plus U(0, min(T·2ⁿ, M/2))",
        help: "For crowds: attempts fall into windows that double and never overlap, so that \
               the rate of a crowd only falls.",
        source: "*Exponential back-off, revisited*, 2024.",
    };

    fn start(parameters: Parameters) -> Self {
        // A window without length would never end.
        Self { length: nanos(parameters.from).max(1.0).min(max_length(parameters)), end: 0.0 }
    }

    fn next_delay(
        &mut self,
        parameters: Parameters,
        elapsed: Duration,
        rng: &mut impl Rng,
    ) -> Duration {
        let now = nanos(elapsed);
        let max = max_length(parameters);
        let Self { mut length, end: mut start } = *self;
        while start + length <= now && length < max {
            start += length;
            length = (2.0 * length).min(max);
        }
        if start + length <= now {
            start += ((now - start) / length).floor() * length;
        }
        let end = start + length;
        *self = Self { length: (2.0 * length).min(max), end };
        let earliest = start.max(now);
        capped(earliest + (end - earliest) * rng.random::<f64>() - now, parameters)
    }

    fn bounds(parameters: Parameters) -> impl Iterator<Item = Bound> {
        let max = max_length(parameters);
        let mut windows = Self::start(parameters);
        let mut previous = 0.0;
        std::iter::repeat_with(move || {
            let Self { length, end: start } = windows;
            let bound = Bound {
                least: Duration::ZERO,
                most: capped(previous + length, parameters),
                earliest: duration(start),
                latest: duration(start + length),
            };
            previous = length;
            windows = Self { length: (2.0 * length).min(max), end: start + length };
            bound
        })
    }
}

/// Returns the length that windows grow to, in nanoseconds.
fn max_length(parameters: Parameters) -> f64 {
    nanos(parameters.to) / 2.0
}
