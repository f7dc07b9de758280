//! Children, and processes in general.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use libc::{c_int, pid_t};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use rustix::process::{Pid, PidfdFlags, WaitOptions, waitpid};

/// Returns a descriptor that becomes readable when the process has ended. The descriptor is closed
/// on exec.
pub fn pidfd_open(pid: pid_t) -> io::Result<OwnedFd> {
    let pid = process(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends SIGTERM to the process of a pidfd, and SIGCONT in case it is stopped.
pub fn terminate_process(pidfd: BorrowedFd) -> io::Result<()> {
    rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::TERM)?;
    Ok(rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::CONT)?)
}

/// Returns the process, or `None` for a number of no single process.
pub(super) fn process(pid: pid_t) -> Option<Pid> {
    Pid::from_raw(pid.max(0))
}

/// Returns true if the kernel has pidfds (Linux 5.3).
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

/// Change of a child's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildChange {
    /// End of the child.
    Ended(ExitStatus),
    /// Stop by this signal.
    Stopped(c_int),
}

/// Returns a change of a child (-1: of any child) without waiting, or `None` if there is none.
///
/// Fails with ECHILD if there is no such child. An ended child no longer exists afterwards.
pub fn wait_for(pid: pid_t, stopped_too: bool) -> Result<Option<(pid_t, ChildChange)>, Errno> {
    let stopped = if stopped_too { WaitOptions::UNTRACED } else { WaitOptions::empty() };
    let found = loop {
        match waitpid(process(pid), WaitOptions::NOHANG | stopped) {
            // A tracer or a sandbox interrupts even calls that do not wait.
            Err(rustix::io::Errno::INTR) => {}
            found => break found.map_err(|errno| Errno::from_raw(errno.raw_os_error()))?,
        }
    };
    Ok(found.map(|(pid, status)| {
        let ended = |status| ChildChange::Ended(status);
        let change = status
            .stopping_signal()
            .map(ChildChange::Stopped)
            .or(status.terminating_signal().map(ExitStatus::Signaled).map(ended))
            .unwrap_or(ChildChange::Ended(ExitStatus::Exited(
                status.exit_status().unwrap_or_default(),
            )));
        (pid.as_raw_nonzero().get(), change)
    }))
}

/// Waits for the end of a child. Fails with EINTR after a signal to the thread.
pub fn wait_for_end(pid: pid_t) -> Result<ExitStatus, Errno> {
    let found = waitpid(process(pid), WaitOptions::empty())
        .map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
    let (_, status) = found.ok_or(Errno::ECHILD)?;
    let killed = status.terminating_signal().map(ExitStatus::Signaled);
    Ok(killed.unwrap_or(ExitStatus::Exited(status.exit_status().unwrap_or_default())))
}

/// Returns some child with a change of these kinds, with its status, without waiting.
///
/// rustix does not return the child, and nix fails for a child killed by a real-time signal.
fn child_with_news(wanted: c_int) -> Result<Option<(pid_t, c_int)>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the information is zero or written by the kernel; its fields are plain data.
    unsafe {
        let options = wanted | libc::WNOHANG;
        Errno::result(libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options))?;
        let info = info.assume_init_ref();
        let pid = info.si_pid();
        Ok((pid != 0).then(|| (pid, info.si_status())))
    }
}

/// Returns some child that has ended and has not been waited for.
pub fn ended_child() -> Option<pid_t> {
    let found = child_with_news(libc::WEXITED | libc::WNOWAIT).ok()?;
    found.map(|(pid, _)| pid)
}

/// Returns some child that was stopped since the last call, and the signal that stopped it.
pub fn stopped_child() -> Option<(pid_t, c_int)> {
    child_with_news(libc::WSTOPPED).ok()?
}

/// Returns true if this process has no children at all, not even ended ones.
pub fn has_no_children() -> bool {
    child_with_news(libc::WEXITED | libc::WNOWAIT) == Err(Errno::ECHILD)
}

/// Returns true if a process is the parent of the process. An ended process is no parent.
pub fn is_parent(pid: pid_t) -> bool {
    nix::unistd::getppid().as_raw() == pid
}

/// Sets or removes a variable in the environment of the process.
///
/// Returns false, and changes nothing, if this process has other threads.
pub fn set_variable(name: &str, value: Option<OsString>) -> bool {
    if !has_one_thread() {
        return false;
    }
    // SAFETY: there is no other thread, which could use the environment at the same time.
    unsafe {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
    true
}

/// Returns true if this process certainly has no other thread.
fn has_one_thread() -> bool {
    // The call changes nothing with one thread, and fails with more.
    match unshare(CloneFlags::CLONE_THREAD) {
        Ok(()) => true,
        Err(Errno::EINVAL) => false,
        // A sandbox forbids the call.
        Err(_) => std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1),
    }
}

/// Ends the process without running exit handlers.
pub fn exit_now(code: c_int) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(code) }
}

/// Makes the process adopt orphaned descendants. Returns false if the system does not support it.
pub fn become_subreaper(wanted: bool) -> bool {
    nix::sys::prctl::set_child_subreaper(wanted).is_ok()
}

/// Kills the process when its parent ends, also after an `exec`, if the system supports it.
pub fn die_with_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
}

/// Continues the process, if stopped, when the thread that started it ends.
///
/// Does nothing if the system does not support it. Executing a program does not end a thread.
pub fn continue_without_parent() {
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGCONT);
}

/// Sends a signal to a process, or with a negative number to a group. Signal 0 only checks.
pub fn kill(pid: pid_t, signal: c_int) -> Result<(), Errno> {
    let signal = if signal == 0 { None } else { Some(Signal::try_from(signal)?) };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)
}

/// Returns the group of a process, or `None` if there is no such process.
pub fn group_of(pid: pid_t) -> Option<pid_t> {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::unistd::getpgid(Some(pid)).ok().map(nix::unistd::Pid::as_raw)
}

/// Returns true if a group has members.
pub fn is_group_alive(group: pid_t) -> bool {
    kill(-group, 0) != Err(Errno::ESRCH)
}
