//! Monitor of keys typed while a command is in the foreground.
//!
//! Ctrl-C signals the foreground group, which is the command's rather than the shell's. A process
//! of the shell therefore joins that group and records the signals, even just after the end of the
//! command.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, setpgid};

use ftsh_sys as sys;

/// Signals of interrupting keys.
const KEYS: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Signal that requests a report. The kernel delivers the lowest number first, so pending key
/// signals precede this one.
const QUESTION: i32 = libc::SIGUSR1;

/// Time limit for a report of the monitor.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// Process that records key signals.
pub(crate) struct KeySignalMonitor {
    /// Process id; none after its end.
    pid: Option<Pid>,
    reports: PipeReader,
    /// Last reported key, unless taken since.
    typed: Option<i32>,
}

impl KeySignalMonitor {
    /// Starts the monitor in its own group.
    pub(crate) fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let reports = PipeReader::from(sys::move_up(reader.into())?);
        let pid = sys::start_key_monitor(&[KEYS[0], KEYS[1], QUESTION], writer.as_fd())?;
        let mut monitor = Self { pid: Some(Pid::from_raw(pid)), reports, typed: None };
        monitor.join(pid);
        // Keys typed before this point signaled the shell itself.
        monitor.take_last_key()?;
        Ok(monitor)
    }

    /// Returns a descriptor that is readable after a key.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Returns the signals of keys typed since the last call. Fails if the monitor is unusable.
    pub(crate) fn read_signals(&mut self) -> io::Result<Vec<i32>> {
        let mut signals = Vec::new();
        while self.has_report(PollTimeout::ZERO)? {
            signals.push(self.report()?);
        }
        self.typed = signals.last().copied().or(self.typed);
        Ok(signals)
    }

    /// Drops the last reported key.
    pub(crate) fn forget(&mut self) {
        self.typed = None;
    }

    fn has_report(&self, limit: PollTimeout) -> io::Result<bool> {
        loop {
            let mut polled = [PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, limit) {
                Err(Errno::EINTR) => {} // the end of a child
                result => return Ok(result? > 0),
            }
        }
    }

    fn report(&mut self) -> io::Result<i32> {
        let mut byte = [0];
        self.reports.read_exact(&mut byte)?;
        Ok(i32::from(byte[0]))
    }

    /// Returns the process id of the monitor, unless it has ended.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid.map(Pid::as_raw)
    }

    /// Records the end of the monitor, after it was reaped.
    pub(crate) fn gone(&mut self) {
        self.pid = None;
    }

    /// Moves the monitor to a group that has a member, or to its own group. The monitor stays there
    /// after the command's end, since a key typed before may still be on its way through the
    /// kernel.
    pub(crate) fn join(&self, group: i32) {
        if let Some(pid) = self.pid {
            let _ = setpgid(pid, Pid::from_raw(group));
        }
    }

    /// Returns the signal of the last key typed in the monitor's group since the last call, if any.
    /// Fails if the monitor is unusable.
    pub(crate) fn take_last_key(&mut self) -> io::Result<Option<i32>> {
        let pid = self.pid.ok_or(io::ErrorKind::NotFound)?;
        sys::kill(pid.as_raw(), QUESTION)?;
        // The monitor may have been stopped with the rest of its group.
        sys::kill(pid.as_raw(), libc::SIGCONT)?;
        let limit = PollTimeout::try_from(REPORT_TIMEOUT).unwrap_or(PollTimeout::NONE);
        while self.has_report(limit)? {
            match self.report()? {
                QUESTION => return Ok(self.typed.take()),
                signal => self.typed = Some(signal),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Drop for KeySignalMonitor {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let _ = sys::kill(pid.as_raw(), libc::SIGKILL);
            let _ = waitpid(pid, None);
        }
    }
}
