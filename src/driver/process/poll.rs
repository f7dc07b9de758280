//! Waiting for descriptors: epoll where there is one, for it costs the same however many children
//! there are; else poll.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::sys;

/// What became ready: the number given when it was added.
pub type Token = u64;

/// A set of descriptors.
pub enum Poller {
    /// For any number.
    #[cfg(target_os = "linux")]
    Epoll(nix::sys::epoll::Epoll),
    /// For the few of the portable fallback, which are never removed.
    Poll(Vec<(RawFd, Token)>),
}

impl Poller {
    /// An empty set; `portable` asks for the fallback.
    pub fn new(portable: bool) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if !portable {
            use nix::sys::epoll::{Epoll, EpollCreateFlags};
            let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
            return Ok(Self::Epoll(Epoll(sys::move_up(epoll.0)?)));
        }
        let _ = portable;
        Ok(Self::Poll(Vec::new()))
    }

    /// Adds a descriptor, which must stay open until it is removed.
    pub fn add(&mut self, fd: BorrowedFd, token: Token) -> io::Result<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(epoll) => {
                use nix::sys::epoll::{EpollEvent, EpollFlags};
                epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
            }
            Self::Poll(descriptors) => descriptors.push((fd.as_raw_fd(), token)),
        }
        Ok(())
    }

    /// Removes a descriptor.
    pub fn remove(&mut self, fd: BorrowedFd) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(epoll) => drop(epoll.delete(fd)),
            Self::Poll(descriptors) => descriptors.retain(|&(other, _)| other != fd.as_raw_fd()),
        }
    }

    /// Waits until something is ready, but no longer than this (none: forever). Sharper than
    /// epoll's milliseconds.
    pub fn wait(&self, timeout: Option<Duration>) -> Vec<Token> {
        let timeout = timeout.map(|duration| {
            // The kernel refuses absurd times; nobody notices a wake-up once a year.
            TimeSpec::from_duration(duration.min(Duration::from_secs(365 * 86400)))
        });
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(epoll) => {
                use nix::sys::epoll::{EpollEvent, EpollTimeout};
                let mut itself = [PollFd::new(epoll.0.as_fd(), PollFlags::POLLIN)];
                let now = timeout.is_some_and(|time| time.num_nanoseconds() == 0);
                if !now && !matches!(ppoll(&mut itself, timeout, None), Ok(1..)) {
                    return Vec::new();
                }
                let mut events = [EpollEvent::empty(); 64];
                let count = epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
                events[..count].iter().map(EpollEvent::data).collect()
            }
            Self::Poll(descriptors) => {
                let mut polled: Vec<_> = descriptors
                    .iter()
                    .map(|&(fd, _)| PollFd::new(sys::borrow(fd), PollFlags::POLLIN))
                    .collect();
                match ppoll(&mut polled, timeout, None) {
                    Err(Errno::EINTR) | Ok(0) => Vec::new(),
                    _ => descriptors
                        .iter()
                        .zip(&polled)
                        .filter(|(_, polled)| polled.any().unwrap_or(true))
                        .map(|(&(_, token), _)| token)
                        .collect(),
                }
            }
        }
    }
}
