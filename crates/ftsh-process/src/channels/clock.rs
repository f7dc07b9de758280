//! A clock that all shells on the machine agree on.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use ftsh_machine::channels::Moment;

/// Where the system tells its boots apart.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// It begins with the system, and goes on while that is suspended.
pub struct Clock {
    /// Which one it is: another one when the system has begun anew.
    pub name: String,
    id: ClockId,
}

impl Clock {
    /// The clock by now.
    pub fn new() -> Self {
        let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
        let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        Self {
            name: boot.trim().chars().filter(|&c| is_id(c)).take(36).collect(),
            id: ClockId::CLOCK_BOOTTIME,
        }
    }

    /// What it says.
    pub fn now(&self) -> Moment {
        clock_gettime(self.id).map_or(Duration::ZERO, Duration::from)
    }
}
