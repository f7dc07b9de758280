//! Notification of changes to a channel's file.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use ftsh_sys as sys;

/// Events on a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    /// True if any event occurred.
    pub anything: bool,
    /// True if a writer closed the file, perhaps because it was killed. The kernel reports the
    /// event shortly before it releases the locks.
    pub closed: bool,
}

#[derive(Debug)]
pub(crate) struct FileWatch(OwnedFd);

impl FileWatch {
    /// Creates a watch; none if the system provides no more.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        sys::watch_changes(path).ok().map(Self)
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Happened {
        let mut happened = Happened::default();
        let mut events = [0; 4096];
        while let Ok(count @ 1..) = nix::unistd::read(&self.0, &mut events) {
            happened.anything = true;
            happened.closed |= sys::report_closing(&events[..count]);
            if count < events.len() / 2 {
                break;
            }
        }
        happened
    }

    /// Waits for an event, up to a time limit or a signal.
    pub(crate) fn wait(&self, time: Duration) {
        let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(time)), None);
    }
}
