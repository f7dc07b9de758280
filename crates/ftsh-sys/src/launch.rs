//! Start and replacement of programs.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::pid_t;
use nix::errno::Errno;

use super::c_string_array::CStringArray;
use super::children::become_subreaper;
use super::descriptors::close_all;
use super::pre_main::restore_ignored;
use super::signals::{caught, release_signals, set_default};

/// Program to start, for `spawn` and `exec`.
pub struct Launch<'a> {
    /// File of the program.
    pub program: &'a CStr,
    /// Arguments, the name included.
    pub arguments: &'a CStringArray,
    /// Environment.
    pub environment: &'a CStringArray,
    /// Working directory; `None` for the directory of the shell.
    pub directory: Option<&'a CStr>,
    /// Descriptors to set: source (never below 10) and target.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    /// Umask; `None` for the umask of the shell.
    pub umask: Option<u16>,
}

/// Number of threads that are starting a program.
static STARTS: AtomicUsize = AtomicUsize::new(0);

/// Set when no further program may be started.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Start of a program in progress.
pub(super) struct StartGuard;

impl StartGuard {
    /// Begins a start, or returns `None` after [`forbid_starts`].
    pub(super) fn begin() -> Option<Self> {
        STARTS.fetch_add(1, Ordering::SeqCst);
        let this = Self;
        // The check follows the count: a concurrent `forbid_starts` either sees the count or is
        // seen here.
        (!FORBIDDEN.load(Ordering::SeqCst)).then_some(this)
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        STARTS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Forbids further starts permanently. Programs already being started may still appear.
pub fn forbid_starts() {
    FORBIDDEN.store(true, Ordering::SeqCst);
}

/// Returns true if a program is being started and may not be among the children yet.
pub fn is_starting() -> bool {
    STARTS.load(Ordering::SeqCst) > 0
}

/// Replaces the process; returns only after a failure. The caller sets descriptors and directory.
pub fn exec(program: &CStr, arguments: &CStringArray, environment: &CStringArray) -> Errno {
    let (arguments, environment) = (arguments.pointers(), environment.pointers());
    // SAFETY: the pointers lead to live strings, and end with a null pointer.
    unsafe {
        libc::execve(program.as_ptr(), arguments.as_ptr().cast(), environment.as_ptr().cast())
    };
    Errno::last()
}

/// Restores the inherited state of the shell before an `exec`. With false, undoes the restoration
/// after a failed `exec`.
pub fn prepare_exec(restore: bool, subreaper: bool) {
    restore_ignored(restore);
    if subreaper {
        become_subreaper(!restore);
    }
}

/// Forks the process; returns `None` in the child.
///
/// # Safety
///
/// This process has no other thread. Otherwise the child only calls async-signal-safe functions,
/// and functions that the C library makes usable after a fork, such as its allocator.
pub unsafe fn fork() -> Result<Option<pid_t>, Errno> {
    // SAFETY: as the caller promises.
    let pid = Errno::result(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Makes the child of a fork a process of its own, with this name and the given descriptors only, and
/// with default actions for signals.
///
/// # Safety
///
/// Nothing in this process uses another descriptor any more, not even to drop it.
pub unsafe fn detach(name: &CStr, but: &[BorrowedFd]) {
    let _ = nix::sys::prctl::set_name(name);
    caught().for_each(set_default);
    release_signals();
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
    // SAFETY: as the caller promises.
    unsafe { close_all(but) };
}
