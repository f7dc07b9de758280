//! The time of a run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::machine::time::Time;

/// Tells the time since the run began.
pub struct Clock {
    /// When that was.
    pub start: Instant,
    /// The same on the wall clock, since 1970.
    pub start_unix: Duration,
}

impl Clock {
    /// A run that begins now.
    pub fn start() -> Self {
        Self { start: Instant::now(), start_unix: since_1970() }
    }

    /// The time by now.
    pub fn now(&self) -> Time {
        Time::after(self.start.elapsed())
    }
}

/// The time of the wall clock, since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
