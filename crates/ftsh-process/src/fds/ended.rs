//! Detection of the end of an input without reading.

use std::os::fd::{AsFd, AsRawFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use nix::sys::stat::{SFlag, fstat};

use super::table::Fd;

/// True if the descriptor is a pipe or a socket at its end.
pub(crate) fn has_ended(fd: &Fd) -> bool {
    let Ok(data) = fstat(fd) else { return false };
    match SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFIFO => {
            let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, PollTimeout::ZERO);
            let found = polled[0].revents().unwrap_or(PollFlags::empty());
            found.contains(PollFlags::POLLHUP) && !found.contains(PollFlags::POLLIN)
        }
        SFlag::S_IFSOCK => {
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            recv(fd.as_fd().as_raw_fd(), &mut [0], flags) == Ok(0)
        }
        _ => false,
    }
}
