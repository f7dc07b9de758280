//! Reads and writes that do not wait.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use rustix::io::{ReadWriteFlags, ioctl_fionread, preadv2, pwritev2};

/// Stands for the current position of the file.
const CURRENT: u64 = u64::MAX;

/// Reads without waiting and without a change to the file's flags, which other processes share.
/// `WouldBlock` if there is nothing, `Unsupported` if the kernel cannot do that here.
pub fn read_now(fd: BorrowedFd, room: &mut [u8]) -> io::Result<usize> {
    let mut room = [IoSliceMut::new(room)];
    preadv2(fd, &mut room, CURRENT, ReadWriteFlags::NOWAIT).map_err(error)
}

/// Writes without waiting. `WouldBlock` if there is no room, `Unsupported` if the kernel cannot do that
/// here.
pub fn write_now(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    pwritev2(fd, &[IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT).map_err(error)
}

fn error(errno: rustix::io::Errno) -> io::Error {
    match Errno::from_raw(errno.raw_os_error()) {
        Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL => io::ErrorKind::Unsupported.into(),
        errno => errno.into(),
    }
}

/// Returns the number of bytes that wait to be read.
pub fn unread(fd: BorrowedFd) -> io::Result<usize> {
    Ok(usize::try_from(ioctl_fionread(fd)?).unwrap_or(0))
}
