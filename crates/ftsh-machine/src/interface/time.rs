//! Moments and deadlines of a run.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Moment, measured from the beginning of the run. Only drivers relate moments to a clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(Duration);

impl Time {
    /// The beginning of the run.
    pub const START: Self = Self(Duration::ZERO);
    /// A moment after every other moment.
    pub const NEVER: Self = Self(Duration::MAX);

    /// Returns the moment `elapsed` after the beginning of the run.
    pub fn after(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the time since the beginning of the run.
    pub fn elapsed(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates at [`Time::NEVER`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Saturates at zero.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Moment by which something must end, or the absence of a limit.
///
/// Deadlines are ordered by their moments, so the minimum of two deadlines is the one that applies.
/// [`Deadline::NONE`] is greater than every other deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Deadline(Time);

impl Deadline {
    /// Absence of a limit.
    pub const NONE: Self = Self(Time::NEVER);

    /// Returns a deadline at `moment`.
    pub fn at(moment: Time) -> Self {
        Self(moment)
    }

    /// Returns the deadline of something that begins at `start` and may take `limit`.
    pub fn of_limit(start: Time, limit: Option<Duration>) -> Self {
        limit.map_or(Self::NONE, |limit| Self(start + limit))
    }

    /// Returns the moment of the deadline, or `None` without a limit.
    pub fn moment(self) -> Option<Time> {
        Some(self.0).filter(|moment| *moment != Time::NEVER)
    }

    /// Returns the moment for a timer: [`Time::NEVER`] without a limit.
    pub fn timer_moment(self) -> Time {
        self.0
    }

    /// Returns true if the deadline has passed at `now`.
    pub fn is_past(self, now: Time) -> bool {
        self.0 <= now
    }

    /// Returns the time from `now` to the deadline: zero if the deadline has passed, `None` without
    /// a limit.
    pub fn remaining(self, now: Time) -> Option<Duration> {
        self.moment().map(|moment| moment - now)
    }
}

impl Default for Deadline {
    /// Returns [`Deadline::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<Time>> for Deadline {
    fn from(moment: Option<Time>) -> Self {
        moment.map_or(Self::NONE, Self)
    }
}

impl Add<Duration> for Deadline {
    type Output = Self;

    /// Returns a later deadline. [`Deadline::NONE`] stays as it is.
    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Deadline {
        Deadline::at(Time::after(Duration::from_secs(seconds)))
    }

    #[test]
    fn the_earlier_deadline_applies() {
        assert_eq!(at(3).min(at(2)), at(2));
        assert_eq!(at(3).min(Deadline::NONE), at(3));
        assert_eq!(Deadline::NONE + Duration::from_secs(1), Deadline::NONE);
    }

    #[test]
    fn nothing_remains_at_the_deadline() {
        let now = Time::after(Duration::from_secs(5));
        assert!(at(5).is_past(now) && !at(6).is_past(now) && !Deadline::NONE.is_past(now));
        assert_eq!(at(4).remaining(now), Some(Duration::ZERO));
        assert_eq!(at(7).remaining(now), Some(Duration::from_secs(2)));
        assert_eq!(Deadline::NONE.remaining(now), None);
    }
}
