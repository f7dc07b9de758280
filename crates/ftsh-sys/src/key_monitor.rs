//! A process that does nothing but tell of signals.

use std::io;
use std::os::fd::BorrowedFd;

use libc::{c_int, pid_t};

/// Starts a process that writes the number of each of these signals that it gets to `writer`, as a
/// byte. It holds nothing else open, takes no notice of any other signal that
/// can be held back, and ends with the thread that started it. Of several that are pending the one
/// with the lowest number comes first.
pub fn start_key_monitor(signals: &[c_int], writer: BorrowedFd) -> io::Result<pid_t> {
    use nix::errno::Errno;
    use std::os::fd::AsRawFd;

    let mut awaited = super::signals::SignalSet::empty();
    for &signal in signals {
        awaited.add(signal);
    }
    let mut all = super::signals::SignalSet::empty();
    let mut before = super::signals::SignalSet::empty();
    let own = std::process::id() as pid_t;
    // SAFETY: the sets are initialised. The child makes system calls only, for other threads may have
    // held locks when it was made; no handler of ours runs in it, since all signals are blocked.
    let result = unsafe {
        libc::sigfillset(&raw mut all.0);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all.0, &raw mut before.0);
        let result = Errno::result(libc::fork());
        if result == Ok(0) {
            child::tell(&awaited.0, writer.as_raw_fd(), own);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before.0, std::ptr::null_mut());
        result
    };
    Ok(result?)
}

/// What runs in the child, where nothing may be allocated.
mod child {
    use libc::{c_int, pid_t};

    /// # Safety
    /// To be called in a process that nobody else uses, with all signals blocked.
    pub unsafe fn tell(awaited: &libc::sigset_t, writer: c_int, parent: pid_t) -> ! {
        // SAFETY: plain system calls on numbers, a constant string and objects on this stack.
        unsafe {
            libc::prctl(libc::PR_SET_NAME, c"ftsh-keys".as_ptr());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() == parent && libc::dup2(writer, 0) == 0 {
                close_from(1);
                loop {
                    let signal = libc::sigwaitinfo(awaited, std::ptr::null_mut());
                    let report = signal as u8;
                    if signal > 0 && libc::write(0, (&raw const report).cast(), 1) != 1 {
                        break; // nobody reads it any more
                    }
                }
            }
            libc::_exit(0)
        }
    }

    /// Closes all descriptors from this one on.
    ///
    /// # Safety
    /// As for `tell`.
    unsafe fn close_from(first: c_int) {
        // SAFETY: plain system calls; before Linux 5.9 there is only the slow way.
        unsafe {
            if libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) != 0 {
                let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as c_int;
                for number in first..most {
                    libc::close(number);
                }
            }
        }
    }
}
