//! Time as the machine sees it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Moment, measured from the beginning of the run. Only drivers relate moments to a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
