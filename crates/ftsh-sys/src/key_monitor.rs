//! Process that reports signals and does nothing else.
//!
//! The child is forked from a process with possibly several threads. Until the child ends, it may
//! only call async-signal-safe functions: no allocation, no locks, nothing that panics.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, pid_t};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::stdio::stdin;

use super::children::exit_now;
use super::signals::set_of;

/// Starts a process that writes the number of each received signal of `signals` to `writer`, as a
/// byte.
///
/// The process holds no other descriptor open, blocks all other signals, and ends with the thread
/// that started it. Of several pending signals, the one with the lowest number comes first.
pub fn start_key_monitor(signals: &[c_int], writer: BorrowedFd) -> io::Result<pid_t> {
    let awaited = set_of(signals);
    let own = std::process::id() as pid_t;
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: the child calls async-signal-safe functions only. No handler of this process runs in
    // the child, because all signals are blocked.
    let result = Errno::result(unsafe { libc::fork() });
    if result == Ok(0) {
        report(&awaited, writer, own);
    }
    let _ = before.thread_set_mask();
    Ok(result?)
}

/// Reports signals until the reader ends; runs in the child.
fn report(awaited: &SigSet, writer: BorrowedFd, parent: pid_t) -> ! {
    let _ = nix::sys::prctl::set_name(c"ftsh-keys");
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    if nix::unistd::getppid().as_raw() == parent && keep_only(writer) {
        while let Ok(signal) = awaited.wait() {
            if rustix::io::write(stdin(), &[signal as u8]).is_err() {
                break; // nobody reads it any more
            }
        }
    }
    exit_now(0)
}

/// Moves a descriptor to number 0, and closes all others. Returns false if that fails.
fn keep_only(fd: BorrowedFd) -> bool {
    // SAFETY: no other code of this process uses descriptors. Linux before 5.9 lacks `close_range`.
    unsafe {
        if libc::dup2(fd.as_raw_fd(), 0) != 0 {
            return false;
        }
        if libc::syscall(libc::SYS_close_range, 1, c_int::MAX, 0) != 0 {
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as c_int;
            for number in 1..most {
                libc::close(number);
            }
        }
        true
    }
}
