//! Where an input comes from: a pipe or a socket that others may have open as well.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::Mode;
use nix::unistd::read;

use super::super::fds::Fd;
use ftsh_sys as sys;

/// An input that isn't kept open by this: who writes to it is to see when nobody will read any more.
pub struct Source {
    /// Device and number.
    pub identity: (u64, u64),
    fd: Handle,
}

enum Handle {
    Inherited(sys::Inherited),
    Owned(Weak<OwnedFd>),
}

impl Source {
    /// What a descriptor leads to.
    pub fn of(fd: &Fd) -> Option<Self> {
        let handle = match fd {
            Fd::Inherited(fd) => Handle::Inherited(*fd),
            Fd::Owned(fd) => Handle::Owned(Arc::downgrade(fd)),
            Fd::Memory(_) | Fd::Reader(_) | Fd::Null(_) | Fd::Gone(_) => return None,
        };
        Some(Self { identity: fd.identity()?, fd: handle })
    }

    /// A descriptor of it, unless the last one is closed.
    pub fn fd(&self) -> Option<Fd> {
        match &self.fd {
            Handle::Inherited(fd) => Some(Fd::Inherited(*fd)),
            Handle::Owned(fd) => fd.upgrade().map(Fd::Owned),
        }
    }
}

/// Reads what is there; `WouldBlock` if that is nothing. Others may take it first.
pub fn read_now(fd: &Fd, room: &mut [u8]) -> io::Result<usize> {
    match sys::read_now(fd.as_fd(), room) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        result => return result,
    }
    match recv(fd.as_fd().as_raw_fd(), room, MsgFlags::MSG_DONTWAIT) {
        Err(Errno::ENOTSOCK) => {}
        result => return Ok(result?),
    }
    // Opened once more, a pipe has flags of its own.
    let own = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match open(own.as_str(), flags, Mode::empty()) {
        Ok(own) => Ok(read(own, room)?),
        // The best that is left: who takes it between the two calls makes the second one wait.
        Err(_) => match sys::unread(fd.as_fd())? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => {
                let most = room.len().min(count);
                Ok(read(fd, &mut room[..most])?)
            }
        },
    }
}
