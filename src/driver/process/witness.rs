//! What the terminal's user types while a command has the terminal.
//!
//! Ctrl-C reaches the group in the foreground, which is the command's, not the shell's. So a process
//! of ours joins that group and remembers, also in the instant after the command's end.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, setpgid};

use super::sys;

/// The signals of keys that interrupt.
const KEYS: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Comes after those of keys where several are pending.
const QUESTION: i32 = libc::SIGUSR1;

/// A witness that takes longer to answer is of no use.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process that remembers.
pub struct Witness {
    /// None if it is gone.
    pid: Option<Pid>,
    reports: PipeReader,
}

impl Witness {
    /// Starts it, in a group of its own.
    pub fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let reports = PipeReader::from(sys::move_up(reader.into())?);
        let pid = sys::start_witness(&[KEYS[0], KEYS[1], QUESTION], writer.as_fd())?;
        let mut witness = Self { pid: Some(Pid::from_raw(pid)), reports };
        witness.join(pid);
        // Before that, the shell itself got what was typed.
        witness.testify()?;
        Ok(witness)
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
        let mut typed = None;
        loop {
            let mut polled = [PollFd::new(self.reports.as_fd(), PollFlags::POLLIN)];
            let limit = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::NONE);
            match poll(&mut polled, limit) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Err(Errno::EINTR) => continue, // the end of a child
                result => result?,
            };
            let mut byte = [0];
            self.reports.read_exact(&mut byte)?;
            match i32::from(byte[0]) {
                QUESTION => return Ok(typed),
                signal => typed = Some(signal),
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let _ = sys::kill(pid.as_raw(), libc::SIGKILL);
            let _ = waitpid(pid, None);
        }
    }
}
