//! A second process in the memory of the first.

use std::convert::Infallible;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::{c_int, pid_t};
use nix::errno::Errno;

use crate::ExitStatus;

/// A process that shares this one's memory.
pub struct Sharer {
    /// Its process id.
    pub pid: pid_t,
    /// Readable when it has ended.
    pidfd: OwnedFd,
}

/// Has a new process do something, in the memory of this one as a thread would, but with
/// descriptors, signal handlers and children of its own. Nothing is copied, so this takes a fraction
/// of what `fork` takes.
///
/// In return, this process may only use its own stack from now on, and system calls that don't
/// fail (`errno` is shared as well), until it executes a program or the other process has ended. If
/// that was killed, the heap may be in any state.
pub fn share<F: FnOnce() -> Infallible>(action: F) -> Result<Sharer, Errno> {
    #[expect(unreachable_code, reason = "nothing follows the action")]
    extern "C" fn start<F: FnOnce() -> Infallible>(action: *mut c_void) -> c_int {
        // SAFETY: it is what `share` boxed, and nobody else takes it.
        let action = *unsafe { Box::from_raw(action.cast::<F>()) };
        match action() {}
    }
    // Other C libraries keep the id elsewhere, and `raise` and `abort` of the new process would go to this one.
    if !cfg!(target_env = "gnu") {
        return Err(Errno::ENOSYS);
    }
    let stack = super::new_stack()?;
    // SAFETY: the address past the end of the stack.
    let top = unsafe { stack.cast::<c_void>().byte_add(stack.len()) };
    let action = Box::into_raw(Box::new(action));
    let mut pidfd: c_int = -1;
    let noted = thread_id();
    let note = if noted.is_null() { 0 } else { libc::CLONE_CHILD_SETTID };
    keep_thread_id();
    // SAFETY: the stack is aligned, and nobody else uses it; `start` gets what it expects. The
    // kernel writes the pidfd to a live integer, and the new thread's id where that of this one is.
    let result = Errno::result(unsafe {
        libc::clone(
            start::<F>,
            top.as_ptr(),
            libc::CLONE_VM | libc::CLONE_PIDFD | note | libc::SIGCHLD,
            action.cast(),
            &raw mut pidfd,
            std::ptr::null_mut::<c_void>(),
            noted,
        )
    });
    match result {
        // SAFETY: the kernel made it for us.
        Ok(pid) => Ok(Sharer { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
        Err(errno) => {
            // SAFETY: there is no other process that could have taken it.
            drop(unsafe { Box::from_raw(action) });
            Err(errno)
        }
    }
}

/// Where the C library has the id of this thread, by which it knows the owners of its locks; null if
/// that can't be found out.
fn thread_id() -> *mut pid_t {
    let mut noted: *mut pid_t = std::ptr::null_mut();
    // SAFETY: the kernel writes an address to a live pointer, or nothing. It has it from the C
    // library, for an integer that lives as long as the thread.
    unsafe {
        let found = libc::prctl(PR_GET_TID_ADDRESS, &raw mut noted) == 0 && !noted.is_null();
        if !found || *noted != libc::gettid() {
            return std::ptr::null_mut();
        }
    }
    noted
}

/// From linux/prctl.h.
const PR_GET_TID_ADDRESS: c_int = 40;

/// When a process that shares its memory executes a program or ends, the kernel clears the integer
/// in which the C library has the id of its thread. Whoever is left would have none, and find that
/// it owns every lock that nobody owns: the kernel is to leave it alone.
fn keep_thread_id() {
    // SAFETY: a plain call; the kernel forgets an address.
    unsafe { libc::syscall(libc::SYS_set_tid_address, std::ptr::null_mut::<pid_t>()) };
}

/// Closes a descriptor while the memory is shared.
pub fn close_shared(number: RawFd) {
    // SAFETY: the other process owns the object; its descriptor is another one. The C library's
    // wrapper is passed by, as in `wait`.
    unsafe { libc::syscall(libc::SYS_close, number) };
}

impl Sharer {
    /// Waits until it has ended, but no longer than this; says how it did. It stays a zombie.
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let mut poll =
            libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit =
            libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: plain calls on live objects, past the wrappers of the C library, which make notes
        // in memory that belongs to the other process. The information is zero or written by the
        // kernel; its fields are plain data.
        unsafe {
            let (fds, none) = (&raw mut poll, std::ptr::null::<c_void>());
            libc::syscall(libc::SYS_ppoll, fds, 1, &raw const limit, none, 0);
            let info_pointer = info.as_mut_ptr();
            libc::syscall(libc::SYS_waitid, libc::P_PID, self.pid, info_pointer, options, none);
            let info = info.assume_init_ref();
            match info.si_code {
                _ if info.si_pid() == 0 => None,
                libc::CLD_EXITED => Some(ExitStatus::Exited(info.si_status())),
                _ => Some(ExitStatus::Signaled(info.si_status())),
            }
        }
    }
}
