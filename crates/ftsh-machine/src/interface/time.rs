//! The machine's clock reading.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, as the time since the run began. Only drivers know when that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// The moment the run began.
    pub const START: Self = Self(Duration::ZERO);
    /// Later than every other moment: never.
    pub const NEVER: Self = Self(Duration::MAX);

    /// The moment `elapsed` after the run began.
    pub fn after(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after the run began it is.
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
