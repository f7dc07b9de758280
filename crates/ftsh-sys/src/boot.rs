//! Timers that include the time that the machine sleeps.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Returns a descriptor that becomes readable at the time given to [`set_boot_timer`].
pub fn boot_timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    super::move_up(timerfd_create(TimerfdClockId::Boottime, flags)?)
}

/// Sets a timer to a time since the boot of the machine. A timer set to the past is readable at
/// once.
pub fn set_boot_timer(timer: BorrowedFd, moment: Duration) {
    // Zero would switch the timer off.
    let moment = moment.max(Duration::from_nanos(1));
    let it_value = Timespec {
        tv_sec: i64::try_from(moment.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: moment.subsec_nanos().into(),
    };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
    let _ = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once);
}
