//! What is done before everything else, even before Rust's start-up code, or in place of that code.

use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use libc::c_int;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::stdio::{stderr, stdin, stdout};

use super::signals::{Action, is_ignored, set_action, set_of};

/// The signals that this process ignores for its own part, so that a write that can't be done fails
/// instead of ending it. The first is ignored from the start, as in any program of Rust, the second since
/// [`survive_file_limit`].
const IGNORED_HERE: [c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Set when SIGXFSZ was ignored before this process ignored it.
static FILE_LIMIT_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// A bit for each of descriptors 0 to 2 that was closed when this process began. `/dev/null` is opened
/// there, so that no other file gets these numbers.
static WERE_CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        hold_question();
        for (number, fd) in (0..).zip(standard()) {
            if fcntl_getfd(fd).is_err() {
                WERE_CLOSED.fetch_or(1 << number, Ordering::Relaxed);
                occupy(number);
            }
        }
        set_action(libc::SIGPIPE, Action::Ignore);
        FILE_LIMIT_WAS_IGNORED.store(is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
    }
    begin
};

/// Opens `/dev/null` as the lowest number that is free.
fn occupy(number: c_int) {
    let null = open(c"/dev/null", OFlags::RDWR, Mode::empty());
    if !null.is_ok_and(|fd| fd.into_raw_fd() == number) {
        std::process::abort();
    }
}

/// Returns descriptors 0 to 2.
fn standard() -> [BorrowedFd<'static>; 3] {
    [stdin(), stdout(), stderr()]
}

/// Returns true if one of descriptors 0 to 2 was closed when this process began.
pub fn was_closed(number: c_int) -> bool {
    WERE_CLOSED.load(Ordering::Relaxed) & 1 << number != 0
}

/// Has commands find descriptors closed that this process found closed: what they write there isn't lost
/// without an error.
pub fn keep_closed() {
    for (number, fd) in (0..).zip(standard()) {
        if was_closed(number) {
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
    }
}

/// From now on a file that may not grow any more is an error, as a full disk is.
pub fn survive_file_limit() {
    set_action(libc::SIGXFSZ, Action::Ignore);
}

/// Has SIGUSR1, which ends a process that has no handler, wait until there is one.
fn hold_question() {
    let _ = set_of(&[libc::SIGUSR1]).thread_block();
}

/// Returns true if commands find a signal ignored because this process began with it ignored. That is
/// never SIGPIPE: service managers ignore it for all, and a stage of a pipeline has to end by it.
pub fn was_ignored(signal: c_int) -> bool {
    match signal {
        libc::SIGPIPE => false,
        libc::SIGXFSZ => FILE_LIMIT_WAS_IGNORED.load(Ordering::Relaxed),
        _ => is_ignored(signal),
    }
}

/// What nobody ignores for a command's sake: the shell needs the first for itself, the others can't be.
const NOT_ASKED: [c_int; 4] = [libc::SIGCHLD, libc::SIGURG, libc::SIGKILL, libc::SIGSTOP];

/// The signals that commands find ignored, and that may be.
fn asked() -> impl Iterator<Item = c_int> {
    (1..=libc::SIGSYS).filter(|signal| !NOT_ASKED.contains(signal))
}

/// The signals that were ignored when this process began.
pub fn ignored_signals() -> Vec<c_int> {
    asked().filter(|&signal| was_ignored(signal)).collect()
}

/// From now on it is as if this process had begun with these signals ignored, and no others. To be called
/// before any is caught.
pub fn ignore_only(signals: &[c_int]) {
    for signal in asked() {
        let wanted = signals.contains(&signal);
        match signal {
            libc::SIGPIPE => {}
            libc::SIGXFSZ => FILE_LIMIT_WAS_IGNORED.store(wanted, Ordering::Relaxed),
            _ if wanted => set_action(signal, Action::Ignore),
            _ if is_ignored(signal) => set_action(signal, Action::Default),
            _ => {}
        }
    }
}

/// Before a program takes this process's place: gives back the signals that are ignored only here.
/// With false, after that failed: ignores them again.
pub(super) fn give_back_ignored(giving_back: bool) {
    let disposition = if giving_back { Action::Default } else { Action::Ignore };
    for signal in IGNORED_HERE.into_iter().filter(|&signal| !was_ignored(signal)) {
        set_action(signal, disposition);
    }
}
