//! A timer that counts while the machine sleeps, too.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that is readable when the moment has come that [`set_boot_timer`] says.
pub fn boot_timer() -> io::Result<OwnedFd> {
    let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
    // SAFETY: a plain call; the new descriptor belongs to nobody else.
    unsafe {
        let new = libc::timerfd_create(libc::CLOCK_BOOTTIME, flags);
        if new < 0 {
            return Err(io::Error::last_os_error());
        }
        super::move_up(OwnedFd::from_raw_fd(new))
    }
}

/// Sets a timer to a moment since the machine was started. If that has passed, it is readable at once.
pub fn set_boot_timer(timer: BorrowedFd, moment: Duration) {
    // Zero would be never.
    let moment = moment.max(Duration::from_nanos(1));
    let time = libc::timespec {
        tv_sec: moment.as_secs().min(i64::MAX as u64) as _,
        tv_nsec: moment.subsec_nanos().into(),
    };
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let new = libc::itimerspec { it_interval: never, it_value: time };
    // SAFETY: the value is read from a live object; the old one isn't asked for.
    unsafe {
        libc::timerfd_settime(
            timer.as_raw_fd(),
            libc::TFD_TIMER_ABSTIME,
            &raw const new,
            std::ptr::null_mut(),
        );
    }
}
