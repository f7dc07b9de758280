//! Process that started the shell, whose end is to end the run.

use std::io::{self, pipe};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::{Builder, scope};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use ftsh_sys as sys;

/// Time between checks where the system has no pidfds, in milliseconds.
const INTERVAL: u8 = 100;

/// Process that started the shell.
pub struct Caller {
    pid: i32,
    pidfd: Option<OwnedFd>,
}

impl Caller {
    /// Returns the process that started the shell. Returns none if that process has ended: process 1
    /// adopts the children of ended processes.
    pub fn find() -> Option<Arc<Self>> {
        let pid = sys::parent_at_start();
        let caller = Self { pid, pidfd: sys::pidfd_open(pid).ok() };
        // After the descriptor was opened, so that the descriptor is that of the parent.
        (pid > 1 && sys::is_parent(pid)).then(|| Arc::new(caller))
    }

    /// Sends this process SIGTERM at the end of the caller.
    pub(super) fn watch(self: Arc<Self>) {
        let watch = move || self.wait(None);
        if let Err(error) = Builder::new().name("caller".into()).spawn(watch) {
            report(&error);
        }
    }

    /// Does work of this process, and sends it SIGTERM if the caller ends meanwhile. No thread is
    /// left afterwards, since a process with threads must not fork.
    pub fn watch_during<T>(&self, work: impl FnOnce() -> T) -> T {
        let (reader, writer) = match pipe() {
            Ok(ends) => ends,
            Err(error) => {
                report(&error);
                return work();
            }
        };
        scope(|scope| {
            let watch = || self.wait(Some(reader.as_fd()));
            if let Err(error) = Builder::new().name("caller".into()).spawn_scoped(scope, watch) {
                report(&error);
            }
            let result = work();
            drop(writer);
            result
        })
    }

    /// Waits for the end of the caller, and then sends this process SIGTERM; or for the end of
    /// `stop`.
    fn wait(&self, stop: Option<BorrowedFd>) {
        while sys::is_parent(self.pid) {
            let ends = [self.pidfd.as_ref().map(AsFd::as_fd), stop];
            let mut ends: Vec<_> =
                ends.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            let timeout = match self.pidfd {
                Some(_) => PollTimeout::NONE,
                None => PollTimeout::from(INTERVAL),
            };
            let _ = poll(&mut ends, timeout);
            let is_stopped = stop.is_some() && ends.last().and_then(PollFd::any).unwrap_or(false);
            if is_stopped {
                return;
            }
        }
        let _ = sys::kill(std::process::id() as i32, libc::SIGTERM);
    }
}

fn report(error: &io::Error) {
    eprintln!("ftsh: cannot watch the caller: {}", sys::os_error::plain(error));
}
