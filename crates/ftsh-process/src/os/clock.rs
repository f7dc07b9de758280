//! The time of a run.

use std::fs;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::ClockId;

use ftsh_machine::time::Time;

/// Tells the time since the run began.
pub struct Clock {
    /// When this shell took the run up.
    pub start: Instant,
    /// How long the run had been on by then.
    elapsed: Duration,
    /// When it began, on the wall clock, since 1970.
    pub start_unix: Duration,
}

impl Clock {
    /// A run that has been on for so long.
    pub fn start(elapsed: Duration) -> Self {
        let start_unix = since_1970().saturating_sub(elapsed);
        Self { start: Instant::now(), elapsed, start_unix }
    }

    /// The time by now.
    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// How long it is until a moment.
    pub fn left(&self, until: Time, now: Instant) -> Duration {
        until.elapsed().saturating_sub(self.at(now).elapsed())
    }

    fn at(&self, now: Instant) -> Time {
        Time::after(self.elapsed.saturating_add(now.duration_since(self.start)))
    }
}

/// The time since the machine was started, also what it slept of that. Nobody sets that clock.
pub fn since_boot() -> Duration {
    let clock = ClockId::CLOCK_BOOTTIME;
    clock.now().map(Duration::from).unwrap_or_default()
}

/// File with the id of the machine's present boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the id of the machine's present boot; without `/proc`, all boots have an empty one.
pub fn boot_id() -> io::Result<String> {
    match fs::read_to_string(BOOT_ID) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Ok(String::new())
        }
        id => Ok(id?.trim().to_owned()),
    }
}

/// The time of the wall clock, since 1970.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
