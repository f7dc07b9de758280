//! What the terminal's user types while a command has the terminal.
//!
//! Ctrl-C reaches the group in the foreground, which is the command's, not the shell's. So a process
//! of ours joins that group and remembers, also in the instant after the command's end.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, setpgid};

use ftsh_sys as sys;

/// The signals of keys that interrupt.
const KEYS: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Comes after those of keys where several are pending.
const QUESTION: i32 = libc::SIGUSR1;

/// A monitor that takes longer to answer is of no use.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process that remembers.
pub struct KeySignalMonitor {
    /// None if it is gone.
    pid: Option<Pid>,
    reports: PipeReader,
    /// The last key that it told of, unless that was asked for since.
    typed: Option<i32>,
}

impl KeySignalMonitor {
    /// Starts it, in a group of its own.
    pub fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let reports = PipeReader::from(sys::move_up(reader.into())?);
        let pid = sys::start_key_monitor(&[KEYS[0], KEYS[1], QUESTION], writer.as_fd())?;
        let mut monitor = Self { pid: Some(Pid::from_raw(pid)), reports, typed: None };
        monitor.join(pid);
        // Before that, the shell itself got what was typed.
        monitor.testify()?;
        Ok(monitor)
    }

    /// Readable when a key was typed.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// The signals of the keys that were typed since the last call; an error if it is of no use any
    /// more.
    pub fn heed(&mut self) -> io::Result<Vec<i32>> {
        let mut signals = Vec::new();
        while self.has_report(PollTimeout::ZERO)? {
            signals.push(self.report()?);
        }
        self.typed = signals.last().copied().or(self.typed);
        Ok(signals)
    }

    /// What was typed until now is told.
    pub fn forget(&mut self) {
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

    /// Its process id, unless it is gone.
    pub fn pid(&self) -> Option<i32> {
        self.pid.map(Pid::as_raw)
    }

    /// Somebody ended it, and it was waited for.
    pub fn gone(&mut self) {
        self.pid = None;
    }

    /// Joins a group that has a member, its own if it is its leader. It stays after the command's end:
    /// a key that was typed before may still be on its way through the kernel.
    pub fn join(&self, group: i32) {
        if let Some(pid) = self.pid {
            let _ = setpgid(pid, Pid::from_raw(group));
        }
    }

    /// The signal of the last key that was typed since the last call while it was in a group, if any;
    /// an error if it is of no use any more.
    pub fn testify(&mut self) -> io::Result<Option<i32>> {
        let pid = self.pid.ok_or(io::ErrorKind::NotFound)?;
        sys::kill(pid.as_raw(), QUESTION)?;
        // It may have been stopped with the others of its group.
        sys::kill(pid.as_raw(), libc::SIGCONT)?;
        let limit = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::NONE);
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
