//! Starting and replacing programs.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::pid_t;
use nix::errno::Errno;

use super::c_string_array::CStringArray;
use super::children::become_subreaper;
use super::descriptors::close_all;
use super::pre_main::give_back_ignored;
use super::signals::{Mask, caught, release_signals, set_default};

/// A program to start; the same for `spawn` and `exec`.
pub struct Launch<'a> {
    /// Its file.
    pub program: &'a CStr,
    /// Its arguments, the name included.
    pub arguments: &'a CStringArray,
    /// Its environment.
    pub environment: &'a CStringArray,
    /// Where it runs, if not where the shell does.
    pub directory: Option<&'a CStr>,
    /// Descriptors to set: from (never below 10) and to.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    /// What it makes files without, if not what the shell does.
    pub umask: Option<u16>,
}

/// How many threads are starting a program.
static STARTS: AtomicUsize = AtomicUsize::new(0);

/// Whether no further program may be started.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// A start in progress.
pub(super) struct Start;

impl Start {
    /// None if it is too late for that.
    pub(super) fn begin() -> Option<Self> {
        STARTS.fetch_add(1, Ordering::SeqCst);
        let this = Self;
        // Only now: whoever forbade it before the count either sees it or is seen here.
        (!FORBIDDEN.load(Ordering::SeqCst)).then_some(this)
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        STARTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// From now on `spawn` starts nothing more, for good; what it was starting may still come.
pub fn forbid_starts() {
    FORBIDDEN.store(true, Ordering::SeqCst);
}

/// Whether a program is being started that may not be among the children yet.
pub fn is_starting() -> bool {
    STARTS.load(Ordering::SeqCst) > 0
}

/// Replaces this process; returns only if that fails. Descriptors and directory are the caller's.
pub fn exec(program: &CStr, arguments: &CStringArray, environment: &CStringArray) -> Errno {
    let (arguments, environment) = (arguments.pointers(), environment.pointers());
    // SAFETY: the pointers are to strings that live, and end with a null pointer.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr().cast(), environment.as_ptr().cast())
    };
    Errno::last()
}

/// Before an `exec`: gives back what the shell was started with. With false, after one that failed:
/// takes it again.
pub fn prepare_exec(giving_back: bool, subreaper: bool) {
    give_back_ignored(giving_back);
    if subreaper {
        become_subreaper(!giving_back);
    }
}

/// Splits this process; in the child there is no number.
///
/// # Safety
///
/// This process has no other thread. Otherwise the child only calls functions that are async-signal-safe or
/// that the C library makes usable after a fork, as its allocator.
pub unsafe fn fork() -> Result<Option<pid_t>, Errno> {
    // SAFETY: as the caller promises.
    let pid = Errno::result(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Makes the child of a fork a process of its own that holds nothing open but some descriptors, and ends
/// by signals as others do.
///
/// # Safety
///
/// Nothing in this process uses another descriptor any more, not even to drop it.
pub unsafe fn detach(but: &[BorrowedFd]) {
    caught().for_each(set_default);
    release_signals(&Mask::empty());
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    // SAFETY: as the caller promises.
    unsafe { close_all(but) };
    let _ = nix::sys::prctl::set_name(c"ftsh-reader");
}
