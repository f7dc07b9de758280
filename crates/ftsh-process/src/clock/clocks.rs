//! Time of a run.

use std::fs;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::ClockId;

use ftsh_machine::time::Time;

/// Time since the beginning of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunClock {
    /// Start of this process's part of the run.
    pub start: Instant,
    /// Duration of the run before this start.
    elapsed: Duration,
}

impl RunClock {
    /// Starts the clock of a run that has lasted `elapsed` in earlier starts.
    pub(crate) fn start(elapsed: Duration) -> Self {
        Self { start: Instant::now(), elapsed }
    }

    /// Returns the time from the start of this process's part of the run to a time of the run.
    pub(crate) fn since_start(&self, moment: Time) -> Duration {
        moment.elapsed().saturating_sub(self.elapsed)
    }

    /// Returns the time of the run.
    pub(crate) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// Returns the time from `now` until a time of the run; zero if the time is past.
    pub(crate) fn time_until(&self, until: Time, now: Instant) -> Duration {
        until.elapsed().saturating_sub(self.at(now).elapsed())
    }

    fn at(&self, now: Instant) -> Time {
        Time::after(self.elapsed.saturating_add(now.duration_since(self.start)))
    }
}

/// Returns the time since boot, including suspend. Changes of the wall clock do not affect it.
pub fn since_boot() -> Duration {
    let clock = ClockId::CLOCK_BOOTTIME;
    clock.now().map(Duration::from).unwrap_or_default()
}

/// File with the id of the current boot.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the id of the current boot. Without `/proc`, every boot has an empty id.
pub fn boot_id() -> io::Result<String> {
    match fs::read_to_string(BOOT_ID) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Ok(String::new())
        }
        id => Ok(id?.trim().to_owned()),
    }
}

/// Returns the time of the wall clock, since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
