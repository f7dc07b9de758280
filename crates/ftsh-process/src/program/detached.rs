//! Processes that belong to no command and outlive the shell.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use ftsh_sys as sys;

/// Starts a process with this name, which does the work with the given descriptors and ends. Returns
/// its process id. The work must not start threads if this process has other threads.
#[expect(unsafe_code, reason = "a process that outlives the shell")]
pub fn start_detached(name: &CStr, needed: &[BorrowedFd], work: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the child makes system calls and allocates, which the C library makes usable after a fork.
    if let Some(pid) = unsafe { sys::fork() }? {
        return Ok(pid);
    }
    // SAFETY: the child uses and drops nothing but these until it ends.
    unsafe { sys::detach(name, needed) };
    work();
    sys::exit_now(0)
}
