//! Being told when somebody changes a channel's file, or closes it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use ftsh_sys as sys;

/// What has happened to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Anything.
    pub anything: bool,
    /// Somebody who could change it has closed it, perhaps by dying. The kernel says so a moment before
    /// it drops locks.
    pub closed: bool,
}

/// Listens for what happens to a file.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// None if the system gives no more of them, or has none.
    pub fn of(path: &Path) -> Option<Self> {
        sys::watch_changes(path).ok().map(Self)
    }

    /// What has happened since this was asked last.
    pub fn take(&self) -> Happened {
        let mut happened = Happened::default();
        let mut events = [0; 4096];
        while let Ok(count @ 1..) = nix::unistd::read(&self.0, &mut events) {
            happened.anything = true;
            happened.closed |= sys::tell_of_closing(&events[..count]);
            if count < events.len() / 2 {
                break;
            }
        }
        happened
    }

    /// Waits for something to happen, but no longer than this, nor past a signal.
    pub fn wait(&self, time: Duration) {
        let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(time)), None);
    }
}
