//! Bounds of delays.

use std::time::Duration;

use super::nanos::duration;

/// Bounds of one delay and of the moment it ends, if attempts take no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The shortest that the delay can be.
    pub least: Duration,
    /// The longest that it can be; [`Duration::MAX`] if nothing bounds it.
    pub most: Duration,
    /// The earliest that it can end, after the first failure.
    pub earliest: Duration,
    /// The latest that it can end, after the first failure.
    pub latest: Duration,
}

impl Bound {
    /// Returns the bounds of delays that do not depend on when attempts end, from the least and
    /// the longest delay in nanoseconds. No delay exceeds `longest`.
    pub(super) fn series(
        delays: impl Iterator<Item = (f64, f64)>,
        longest: Duration,
    ) -> impl Iterator<Item = Self> {
        let (mut earliest, mut latest) = (Duration::ZERO, Duration::ZERO);
        delays.map(move |(least, most)| {
            let (least, most) = (duration(least).min(longest), duration(most).min(longest));
            earliest = earliest.saturating_add(least);
            latest = latest.saturating_add(most);
            Self { least, most, earliest, latest }
        })
    }
}
