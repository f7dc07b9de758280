//! The processes of commands: noticing their end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{CHILDREN, ProcessDriver, sys};
use crate::machine::effect::ProcessId;
use crate::machine::event::{Event, Status};
use crate::machine::record::LogEvent;

/// Orphans that have ended are looked for after so many commands, if not earlier.
const BETWEEN_ORPHANS: usize = 64;

/// How soon after a sign of it all children without a pidfd are looked at.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// A process of ours.
pub struct Child {
    /// The command it runs.
    pub process: ProcessId,
    /// Readable when it has ended.
    pub pidfd: Option<OwnedFd>,
}

impl Child {
    /// Whether the loop is told when it ends.
    pub fn is_watched(&self) -> bool {
        self.pidfd.is_some()
    }
}

impl ProcessDriver {
    pub(super) fn watch(&mut self, pid: i32, process: ProcessId) {
        let pidfd = if self.pidfds { self.pidfd(pid).ok() } else { None };
        if pidfd.is_none() && self.sweep.is_none() {
            // It may have ended before it was known here.
            self.sweep = Some(Instant::now() + SWEEP_INTERVAL);
        }
        if pidfd.is_none() {
            self.unwatched += 1;
        }
        self.children.insert(pid, Child { process, pidfd });
    }

    fn pidfd(&mut self, pid: i32) -> std::io::Result<OwnedFd> {
        let pidfd = sys::pidfd_open(pid)?;
        self.poller.add(pidfd.as_fd(), CHILDREN + pid as u64)?;
        Ok(pidfd)
    }

    /// Looks for the end of all children that the loop isn't told of.
    pub(super) fn reap_unwatched(&mut self) {
        let unwatched = self.children.iter().filter(|(_, child)| !child.is_watched());
        let pids: Vec<i32> = unwatched.map(|(&pid, _)| pid).collect();
        for pid in pids {
            self.reap(pid);
        }
    }

    /// Takes note of the end of a child, if it has ended.
    pub(super) fn reap(&mut self, pid: i32) {
        self.note_answers(pid);
        match sys::wait_for(pid, false) {
            Ok(Some((_, sys::Change::Ended(status)))) => self.child_ended(pid, status),
            Ok(_) => {}
            // Somebody else waited for it: how it ended is lost.
            Err(_) => self.child_ended(pid, Status::Signaled(libc::SIGKILL)),
        }
    }

    /// A child has ended and is gone.
    pub(super) fn child_ended(&mut self, pid: i32, status: Status) {
        let Some(child) = self.children.remove(&pid) else { return };
        match &child.pidfd {
            Some(pidfd) => self.poller.remove(pidfd.as_fd()),
            None => self.unwatched -= 1,
        }
        self.ended += 1;
        if self.ended.is_multiple_of(BETWEEN_ORPHANS) {
            self.reap_orphans();
        }
        self.release_terminal(pid, status);
        let process = child.process;
        let Some((command, wanted)) = self.leave(process) else { return };
        if self.logs_processes() {
            self.log(command.line, LogEvent::Exited { pid, status: describe(status) });
        }
        self.families.note_group(command.scope, pid);
        if wanted {
            self.ready.push_back(Event::Exited { process, status, line: None });
        }
    }
}

fn describe(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("exit {code}"),
        Status::Signaled(signal) => {
            use nix::sys::signal::Signal;
            let name = Signal::try_from(signal).map(Signal::as_str);
            name.map_or_else(|_| format!("signal {signal}"), Into::into)
        }
    }
}
