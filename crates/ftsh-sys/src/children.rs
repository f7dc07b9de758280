//! Children, and processes in general.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{c_int, pid_t};
use nix::errno::Errno;

/// A descriptor that is readable when the process has ended.
pub fn pidfd_open(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain call; the new descriptor (closed on exec) belongs to nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as c_int)) }
    }
}

/// Whether the kernel has pidfds (Linux 5.3).
pub fn has_pidfds() -> bool {
    pidfd_open(std::process::id() as pid_t).is_ok()
}

/// Exit of a child process as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// The process exited with this code.
    Exited(c_int),
    /// This signal killed the process.
    Signaled(c_int),
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended.
    Ended(ExitStatus),
    /// This signal stopped it.
    Stopped(c_int),
}

/// Asks without waiting what became of a child (-1: of any); none if nothing did.
/// ECHILD says that there is no such child. An ended one is gone from then on.
pub fn wait_for(pid: pid_t, stopped_too: bool) -> Result<Option<(pid_t, Change)>, Errno> {
    let mut status = 0;
    let options = libc::WNOHANG | if stopped_too { libc::WUNTRACED } else { 0 };
    // SAFETY: the status is written to a live integer.
    let found = Errno::result(unsafe { libc::waitpid(pid, &raw mut status, options) })?;
    if found == 0 {
        return Ok(None);
    }
    let change = if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Ended(ExitStatus::Signaled(libc::WTERMSIG(status)))
    } else {
        Change::Ended(ExitStatus::Exited(libc::WEXITSTATUS(status)))
    };
    Ok(Some((found, change)))
}

/// Some child that has ended and not been waited for.
pub fn ended_child() -> Option<pid_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the information is zero or written by the kernel; its process id is plain data.
    unsafe {
        if libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0 {
            return None;
        }
        let pid = info.assume_init_ref().si_pid();
        (pid != 0).then_some(pid)
    }
}

/// Some child that was stopped since the last call, and by which signal.
pub fn stopped_child() -> Option<(pid_t, c_int)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WSTOPPED | libc::WNOHANG;
    // SAFETY: the information is zero or written by the kernel; its fields are plain data.
    unsafe {
        if libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0 {
            return None;
        }
        let info = info.assume_init_ref();
        let pid = info.si_pid();
        (pid != 0).then(|| (pid, info.si_status()))
    }
}

/// Whether this process has no children at all, not even ended ones.
pub fn has_no_children() -> bool {
    // The process id of the result is not looked at: nothing may have ended.
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the information is written to a live object, and not read.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) };
    result == -1 && Errno::last() == Errno::ECHILD
}

/// Whether this is the parent of this process: one that has ended isn't.
pub fn is_parent(pid: pid_t) -> bool {
    nix::unistd::getppid().as_raw() == pid
}

/// Sets a variable of this process's environment, or takes it out. To be called while there is one
/// thread only.
pub fn set_variable(name: &str, value: Option<OsString>) {
    // SAFETY: nobody else looks at the environment at the same time, as the caller sees to.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
}

/// Has processes that lose their parents come to this one; false where that can't be had.
pub fn become_subreaper(wanted: bool) -> bool {
    nix::sys::prctl::set_child_subreaper(wanted).is_ok()
}

/// Has this process killed when its parent ends, also after an `exec`; where that can be had.
pub fn die_with_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
}

/// Has this process continued when the thread that started it ends, should it be stopped then; where
/// that can be had. Executing a program doesn't end a thread.
pub fn continue_without_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGCONT);
}

/// Sends a signal to a process, or with a negative number to a group.
pub fn kill(pid: pid_t, signal: c_int) -> Result<(), Errno> {
    // SAFETY: a plain call.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// A process's group; none if there is no such process.
pub fn group_of(pid: pid_t) -> Option<pid_t> {
    // SAFETY: a plain call.
    Errno::result(unsafe { libc::getpgid(pid) }).ok()
}

/// Whether a group has members.
pub fn is_group_alive(group: pid_t) -> bool {
    kill(-group, 0) != Err(Errno::ESRCH)
}
