//! Process that started the shell, whose end is to end the run.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{Builder, sleep};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use ftsh_sys as sys;

/// Time between checks where the system has no pidfds.
const INTERVAL: Duration = Duration::from_millis(100);

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
        let watch = move || {
            while sys::is_parent(self.pid) {
                match &self.pidfd {
                    Some(pidfd) => {
                        let mut ends = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
                        let _ = poll(&mut ends, PollTimeout::NONE);
                    }
                    None => sleep(INTERVAL),
                }
            }
            let _ = sys::kill(std::process::id() as i32, libc::SIGTERM);
        };
        if let Err(error) = Builder::new().name("caller".into()).spawn(watch) {
            eprintln!("ftsh: cannot watch the caller: {}", sys::os_error::plain(&error));
        }
    }
}
