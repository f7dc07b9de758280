//! Source of recorded input: a pipe or socket that other processes may also have open.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::Mode;
use nix::unistd::read;

use crate::descriptors::Fd;
use ftsh_sys as sys;

/// Input that is not kept open by this value: its writers must see when no reader is left.
pub(super) struct SpoolSource {
    /// Device and inode.
    pub identity: (u64, u64),
    fd: SourceHandle,
}

enum SourceHandle {
    Inherited(sys::Inherited),
    Owned(Weak<OwnedFd>),
}

impl SpoolSource {
    /// Returns the source that a descriptor refers to.
    pub(super) fn of(fd: &Fd) -> Option<Self> {
        let handle = match fd {
            Fd::Inherited(fd) => SourceHandle::Inherited(*fd),
            Fd::Owned(fd) => SourceHandle::Owned(Arc::downgrade(fd)),
            Fd::Memory(_) | Fd::Reader(_) | Fd::Null(_) | Fd::Gone(_) => return None,
        };
        Some(Self { identity: fd.identity()?, fd: handle })
    }

    /// Returns a descriptor of the source, unless the last one was closed.
    pub(super) fn fd(&self) -> Option<Fd> {
        match &self.fd {
            SourceHandle::Inherited(fd) => Some(Fd::Inherited(*fd)),
            SourceHandle::Owned(fd) => fd.upgrade().map(Fd::Owned),
        }
    }
}

/// Reads available bytes; `WouldBlock` if there are none. Other readers may take them first.
pub(super) fn read_now(fd: &Fd, room: &mut [u8]) -> io::Result<usize> {
    match sys::read_now(fd.as_fd(), room) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        result => return result,
    }
    match recv(fd.as_fd().as_raw_fd(), room, MsgFlags::MSG_DONTWAIT) {
        Err(Errno::ENOTSOCK) => {}
        result => return Ok(result?),
    }
    // A new open file description of the pipe has its own flags.
    let own = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match open(own.as_str(), flags, Mode::empty()) {
        Ok(own) => Ok(read(own, room)?),
        // Last resort: if another process takes the bytes between the two calls, the second one
        // blocks.
        Err(_) => match sys::unread(fd.as_fd())? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => {
                let most = room.len().min(count);
                Ok(read(fd, &mut room[..most])?)
            }
        },
    }
}
