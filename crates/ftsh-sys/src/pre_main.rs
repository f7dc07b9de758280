//! Code that runs before Rust's start-up code, which opens `/dev/null` in place of a closed standard
//! descriptor and ignores SIGPIPE.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

use libc::{c_int, pid_t};
use nix::unistd::getppid;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::stdio::{stderr, stdin, stdout};

use super::signals::{SignalAction, is_ignored, set_action, set_of};

/// Signals that this process ignores for itself only, so that an impossible write returns an error.
///
/// SIGPIPE is ignored from the start, as in any program of Rust, and SIGXFSZ since
/// [`ignore_file_size_limit`].
const IGNORED_HERE: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Set when SIGXFSZ was ignored before this process ignored it.
static FILE_LIMIT_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// One bit for each of descriptors 0 to 2 that was closed at the start of the process.
///
/// Rust's start-up code opens `/dev/null` there, so that no other file gets these numbers.
static WERE_CLOSED: AtomicU8 = AtomicU8::new(0);

/// Process id of the parent at the start of the process.
static PARENT: AtomicI32 = AtomicI32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        block_sigusr1();
        PARENT.store(getppid().as_raw(), Ordering::Relaxed);
        for (number, fd) in (0..).zip(standard()) {
            if fcntl_getfd(fd).is_err() {
                WERE_CLOSED.fetch_or(1 << number, Ordering::Relaxed);
            }
        }
        FILE_LIMIT_WAS_IGNORED.store(is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
    }
    begin
};

/// Returns descriptors 0 to 2.
fn standard() -> [BorrowedFd<'static>; 3] {
    [stdin(), stdout(), stderr()]
}

/// Returns true if one of descriptors 0 to 2 was closed at the start of the process.
pub fn was_closed(number: c_int) -> bool {
    WERE_CLOSED.load(Ordering::Relaxed) & 1 << number != 0
}

/// Returns the process id of the parent at the start of the process.
pub fn parent_at_start() -> pid_t {
    PARENT.load(Ordering::Relaxed)
}

/// Closes, for commands, the descriptors that were closed at the start of the process.
///
/// A command's write to a closed descriptor fails, and its output is not lost unnoticed.
pub fn keep_closed() {
    for (number, fd) in (0..).zip(standard()) {
        if was_closed(number) {
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
    }
}

/// Makes a write beyond the limit on file sizes return an error, like a write to a full disk.
pub fn ignore_file_size_limit() {
    set_action(libc::SIGXFSZ, SignalAction::Ignore);
}

/// Blocks SIGUSR1, which would end a process without a handler, until the handler is set.
fn block_sigusr1() {
    let _ = set_of(&[libc::SIGUSR1]).thread_block();
}

/// Returns true if commands inherit a signal as ignored, because this process began with the signal
/// ignored.
///
/// SIGPIPE is never inherited as ignored: service managers ignore it everywhere, and a stage of a
/// pipeline must end by it.
pub fn was_ignored(signal: c_int) -> bool {
    match signal {
        libc::SIGPIPE => false,
        libc::SIGXFSZ => FILE_LIMIT_WAS_IGNORED.load(Ordering::Relaxed),
        _ => is_ignored(signal),
    }
}

/// Signals whose disposition commands do not inherit: the shell uses the first two itself, and the
/// others cannot be ignored.
const NOT_INHERITABLE: [c_int; 4] = [libc::SIGCHLD, libc::SIGURG, libc::SIGKILL, libc::SIGSTOP];

/// Returns the signals that commands may inherit as ignored.
fn inheritable() -> impl Iterator<Item = c_int> {
    (1..=libc::SIGSYS).filter(|signal| !NOT_INHERITABLE.contains(signal))
}

/// Returns the signals that were ignored at the start of the process.
pub fn ignored_signals() -> Vec<c_int> {
    inheritable().filter(|&signal| was_ignored(signal)).collect()
}

/// Ignores these signals and no others, as if this process had begun in this state.
///
/// Call this function before any signal is caught.
pub fn ignore_only(signals: &[c_int]) {
    for signal in inheritable() {
        let wanted = signals.contains(&signal);
        match signal {
            libc::SIGPIPE => {}
            libc::SIGXFSZ => FILE_LIMIT_WAS_IGNORED.store(wanted, Ordering::Relaxed),
            _ if wanted => set_action(signal, SignalAction::Ignore),
            _ if is_ignored(signal) => set_action(signal, SignalAction::Default),
            _ => {}
        }
    }
}

/// Restores the signals that only this process ignores, before a program replaces this process.
///
/// With false, ignores the signals again after a failed replacement.
pub(super) fn restore_ignored(restore: bool) {
    let disposition = if restore { SignalAction::Default } else { SignalAction::Ignore };
    for signal in IGNORED_HERE.into_iter().filter(|&signal| !was_ignored(signal)) {
        set_action(signal, disposition);
    }
}
