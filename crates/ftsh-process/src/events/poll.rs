//! Readiness of descriptors: epoll, whose cost does not grow with the number of children, or poll
//! as the portable fallback.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use ftsh_sys as sys;

/// Number that identifies a descriptor in the results of [`Poller::wait`].
pub(crate) type Token = u64;

/// Set of polled descriptors.
pub(crate) enum Poller {
    /// Any number of descriptors.
    Epoll(nix::sys::epoll::Epoll),
    /// The few descriptors of the portable fallback.
    Poll(Vec<(RawFd, Token, PollFlags)>),
}

impl Poller {
    /// Creates an empty set; `portable` selects the fallback.
    pub(crate) fn new(portable: bool) -> io::Result<Self> {
        if !portable {
            use nix::sys::epoll::{Epoll, EpollCreateFlags};
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            return Ok(Self::Epoll(Epoll(sys::move_up(epoll.0)?)));
        }
        let _ = portable;
        Ok(Self::Poll(Vec::new()))
    }

    /// Adds a descriptor and reports when it is readable. The descriptor must stay open until its
    /// removal.
    pub(crate) fn add(&mut self, fd: BorrowedFd, token: Token) -> io::Result<()> {
        self.add_for(fd, token, PollFlags::POLLIN)
    }

    /// Adds a descriptor and reports when it is writable.
    pub(crate) fn add_for_writing(&mut self, fd: BorrowedFd, token: Token) -> io::Result<()> {
        self.add_for(fd, token, PollFlags::POLLOUT)
    }

    fn add_for(&mut self, fd: BorrowedFd, token: Token, flags: PollFlags) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => {
                use nix::sys::epoll::{EpollEvent, EpollFlags};
                let writes = flags.contains(PollFlags::POLLOUT);
                let flags = if writes { EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
                epoll.add(fd, EpollEvent::new(flags, token))?;
            }
            Self::Poll(descriptors) => descriptors.push((fd.as_raw_fd(), token, flags)),
        }
        Ok(())
    }

    /// Removes a descriptor.
    pub(crate) fn remove(&mut self, fd: BorrowedFd) {
        match self {
            Self::Epoll(epoll) => drop(epoll.delete(fd)),
            Self::Poll(descriptors) => descriptors.retain(|&(other, ..)| other != fd.as_raw_fd()),
        }
    }

    /// Waits until a descriptor is ready, at most for `timeout`; without one, forever. The
    /// resolution is finer than the milliseconds of `epoll_wait`.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Vec<Token> {
        // The kernel rejects very long timeouts. One wake-up a year costs nothing.
        let timeout = timeout.map(|duration| duration.min(Duration::from_secs(365 * 86400)));
        match self {
            Self::Epoll(epoll) => {
                let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
                let count = match sys::epoll_wait(epoll.0.as_fd(), &mut events, timeout) {
                    Ok(count) => count,
                    Err(Errno::EINTR) => 0,
                    Err(_) => {
                        let mut itself = [PollFd::new(epoll.0.as_fd(), PollFlags::POLLIN)];
                        let ready = ppoll(&mut itself, timeout.map(TimeSpec::from_duration), None);
                        match ready {
                            Ok(1..) => old_wait(epoll, &mut events),
                            _ => 0,
                        }
                    }
                };
                events[..count].iter().map(|event| event.u64).collect()
            }
            Self::Poll(descriptors) => {
                let mut polled: Vec<_> = descriptors
                    .iter()
                    .map(|&(fd, _, flags)| libc::pollfd { fd, events: flags.bits(), revents: 0 })
                    .collect();
                match sys::poll_numbers(&mut polled, timeout) {
                    Err(Errno::EINTR) | Ok(0) => Vec::new(),
                    _ => descriptors
                        .iter()
                        .zip(&polled)
                        .filter(|(_, polled)| polled.revents != 0)
                        .map(|(&(_, token, _), _)| token)
                        .collect(),
                }
            }
        }
    }
}

/// Returns the number of ready descriptors, without waiting. For Linux before 5.11, and where
/// `epoll_pwait2` is forbidden.
fn old_wait(epoll: &nix::sys::epoll::Epoll, events: &mut [libc::epoll_event]) -> usize {
    use nix::sys::epoll::{EpollEvent, EpollTimeout};
    let mut found = [EpollEvent::empty(); 64];
    let count = epoll.wait(&mut found, EpollTimeout::ZERO).unwrap_or(0);
    for (event, found) in events.iter_mut().zip(&found[..count]) {
        event.u64 = found.data();
    }
    count.min(events.len())
}
