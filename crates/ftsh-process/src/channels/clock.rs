//! A clock that all shells on the machine agree on.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::super::os::clock::boot_id;
use ftsh_machine::channels::Moment;

/// It begins with the system, and goes on while that is suspended.
pub struct Clock {
    /// Which one it is: another one when the system has begun anew.
    pub name: String,
    id: ClockId,
}

impl Clock {
    /// Returns the clock by now. Fails if the boot's id cannot be read: with another name, what a
    /// channel holds would count as older than the boot.
    pub fn new() -> io::Result<Self> {
        let is_id = |c: &char| c.is_ascii_hexdigit() || *c == '-';
        let name = boot_id()?.chars().filter(is_id).take(36).collect();
        Ok(Self { name, id: ClockId::CLOCK_BOOTTIME })
    }

    /// What it says.
    pub fn now(&self) -> Moment {
        clock_gettime(self.id).map_or(Duration::ZERO, Duration::from)
    }
}
