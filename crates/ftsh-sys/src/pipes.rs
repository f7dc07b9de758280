//! Pipes and sockets, without waiting.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

/// Reads without waiting, and without a change to what others have open as well; `WouldBlock` if there
/// is nothing, `Unsupported` if the kernel can't do that here.
pub fn read_now(fd: BorrowedFd, room: &mut [u8]) -> io::Result<usize> {
    let part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: one part, which lives and is as long as said; the offset -1 stands for the current
    // position.
    let count = unsafe { libc::preadv2(fd.as_raw_fd(), &raw const part, 1, -1, libc::RWF_NOWAIT) };
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => match Errno::last() {
            Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL => {
                Err(io::ErrorKind::Unsupported.into())
            }
            error => Err(error.into()),
        },
    }
}

/// How many bytes wait to be read.
pub fn unread(fd: BorrowedFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: the kernel writes an integer to a live one.
    Errno::result(unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}
