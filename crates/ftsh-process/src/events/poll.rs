//! Readiness of descriptors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;

use ftsh_sys as sys;

/// Number that identifies a descriptor in the results of [`Poller::wait`].
pub(crate) type Token = u64;

/// Set of polled descriptors. The cost of a wait does not grow with their number.
pub(crate) struct Poller(Epoll);

impl Poller {
    /// Creates an empty set.
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self(Epoll(sys::move_up(epoll.0)?)))
    }

    /// Adds a descriptor and reports when it is readable. The descriptor must stay open until its
    /// removal.
    pub(crate) fn add(&mut self, fd: BorrowedFd, token: Token) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Adds a descriptor and reports when it is writable.
    pub(crate) fn add_for_writing(&mut self, fd: BorrowedFd, token: Token) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(EpollFlags::EPOLLOUT, token))?)
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&mut self, fd: BorrowedFd) {
        let _ = self.0.delete(fd);
    }

    /// Waits until a descriptor is ready, at most for `timeout`; without one, forever. The
    /// resolution is finer than the milliseconds of `epoll_wait`.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Vec<Token> {
        // The kernel rejects very long timeouts. One wake-up a year costs nothing.
        let timeout = timeout.map(|duration| duration.min(Duration::from_secs(365 * 86400)));
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = match sys::epoll_wait(self.0.0.as_fd(), &mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(_) => {
                let mut itself = [PollFd::new(self.0.0.as_fd(), PollFlags::POLLIN)];
                match ppoll(&mut itself, timeout.map(TimeSpec::from_duration), None) {
                    Ok(1..) => old_wait(&self.0, &mut events),
                    _ => 0,
                }
            }
        };
        events[..count].iter().map(|event| event.u64).collect()
    }
}

/// Returns the number of ready descriptors, without waiting. For Linux before 5.11, and where
/// `epoll_pwait2` is forbidden.
fn old_wait(epoll: &Epoll, events: &mut [libc::epoll_event]) -> usize {
    let mut found = [EpollEvent::empty(); 64];
    let count = epoll.wait(&mut found, EpollTimeout::ZERO).unwrap_or(0);
    for (event, found) in events.iter_mut().zip(&found[..count]) {
        event.u64 = found.data();
    }
    count.min(events.len())
}
