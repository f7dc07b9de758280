//! Clock shared by all shells of a machine.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::clock::boot_id;
use ftsh_machine::channels::Moment;

/// Clock that starts with the system and includes time in suspend.
pub(super) struct ChannelClock {
    /// Id of the boot, which distinguishes clocks of different boots.
    pub name: String,
    id: ClockId,
}

impl ChannelClock {
    /// Opens the clock. Fails if the id of the boot cannot be read: with a wrong id, the state of a
    /// channel would count as older than the boot.
    pub(super) fn new() -> io::Result<Self> {
        let is_id = |c: &char| c.is_ascii_hexdigit() || *c == '-';
        let name = boot_id()?.chars().filter(is_id).take(36).collect();
        Ok(Self { name, id: ClockId::CLOCK_BOOTTIME })
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Moment {
        clock_gettime(self.id).map_or(Duration::ZERO, Duration::from)
    }
}
