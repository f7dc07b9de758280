//! Reads and writes that do not wait.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use rustix::io::{ReadWriteFlags, ioctl_fionread, preadv2, pwritev2};

/// Current position of the file, in calls with an offset.
const CURRENT: u64 = u64::MAX;

/// Reads without waiting, and without a change to the flags of the file, which other processes
/// share.
///
/// Returns `WouldBlock` if there is no data, and `Unsupported` if the kernel cannot read this file
/// without waiting.
pub fn read_now(fd: BorrowedFd, room: &mut [u8]) -> io::Result<usize> {
    let mut room = [IoSliceMut::new(room)];
    preadv2(fd, &mut room, CURRENT, ReadWriteFlags::NOWAIT).map_err(error)
}

/// Writes without waiting.
///
/// Returns `WouldBlock` if there is no room, and `Unsupported` if the kernel cannot write this file
/// without waiting.
pub fn write_now(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    pwritev2(fd, &[IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT).map_err(error)
}

fn error(errno: rustix::io::Errno) -> io::Error {
    match Errno::from_raw(errno.raw_os_error()) {
        Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL => io::ErrorKind::Unsupported.into(),
        errno => errno.into(),
    }
}

/// Returns the number of bytes available for reading.
pub fn unread(fd: BorrowedFd) -> io::Result<usize> {
    Ok(usize::try_from(ioctl_fionread(fd)?).unwrap_or(0))
}
