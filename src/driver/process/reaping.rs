//! The processes of commands: noticing their end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::jobs::{Child, Others};
use super::procs::features::Containment;
use super::{CHILDREN, ProcessDriver, sys};
use crate::machine::effect::ProcessId;
use crate::machine::event::{Event, Status};
use crate::machine::record::LogEvent;

/// Orphans that have ended are looked for after so many commands, if not earlier.
const BETWEEN_ORPHANS: usize = 64;

/// How soon after a sign of it all children without a pidfd are looked at.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

impl ProcessDriver {
    /// Has the loop told of the end of a command's process.
    pub(super) fn watch(&mut self, pid: i32, process: ProcessId) {
        let wanted = self.pidfds && self.has_room_for_pidfd();
        let pidfd = if wanted { self.pidfd(pid).ok() } else { None };
        if pidfd.is_none() && self.sweep.is_none() {
            // It may have ended before it was known here.
            self.sweep = Some(Instant::now() + SWEEP_INTERVAL);
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
        for pid in self.children.unwatched_pids() {
            self.reap(pid);
        }
    }

    /// Takes note of the end of a command's process, if it has ended.
    pub(super) fn reap(&mut self, pid: i32) {
        self.note_answers(pid);
        let Some((child, status)) = self.children.end_of(pid) else { return };
        if let Some(pidfd) = &child.pidfd {
            self.poller.remove(pidfd.as_fd());
        }
        if self.children.ended().is_multiple_of(BETWEEN_ORPHANS) {
            self.reap_orphans();
        }
        self.release_terminal(pid, status);
        let process = child.process;
        let Some((command, wanted)) = self.leave(process) else { return };
        if self.logs_processes() {
            self.log(command.line, LogEvent::Exited { pid, status: describe(status) });
        }
        self.scopes.note_group(command.scope, pid);
        if wanted {
            self.ready.push_back(Event::Exited { process, status, line: None });
        }
    }

    /// The children that run no command: orphans that came to us. Those that have ended are taken
    /// note of. None if the system can't tell at the moment.
    pub(super) fn orphans(&mut self) -> Option<Vec<i32>> {
        if !matches!(self.containment, Containment::Subreaper) {
            return Some(Vec::new());
        }
        loop {
            let (pool, answers) = (&mut self.pool, &mut self.answers);
            let answered = || {
                answers.extend(std::iter::from_fn(|| pool.answer()));
                answers.iter().filter_map(|(_, answer)| answer.pid()).collect()
            };
            let Others { orphans, ended, preexisting } = self.children.others(answered).ok()?;
            // What has ended left its own children to us, perhaps after the list was made.
            let complete = ended.is_empty();
            for pid in ended {
                self.orphan_ended(pid);
            }
            for pid in preexisting {
                self.helper_ended(pid);
            }
            if complete {
                return Some(orphans);
            }
        }
    }

    /// Takes note of all orphans that have ended.
    pub(super) fn reap_orphans(&mut self) {
        let _ = self.orphans();
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
        Status::Lost => "lost".into(),
    }
}
