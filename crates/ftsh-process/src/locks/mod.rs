//! Open-file-description locks on ranges of bytes. The kernel releases a lock when the last
//! descriptor of its open file description is closed. Commands cannot keep a lock: their copies of
//! descriptors are closed before they start.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;

/// Range of offsets: from the first up to, but excluding, the second. The file may be shorter.
pub(crate) type Bytes = (u64, u64);

/// Returns the range of a single byte.
pub(crate) const fn one(at: u64) -> Bytes {
    (at, at + 1)
}

mod system {
    use std::os::fd::BorrowedFd;

    use nix::fcntl::{FcntlArg, fcntl};

    use super::Bytes;

    fn request((start, end): Bytes, kind: i32) -> libc::flock {
        libc::flock {
            l_type: kind as _,
            l_whence: libc::SEEK_SET as _,
            l_start: start as _,
            l_len: (end - start) as _,
            l_pid: 0,
        }
    }

    pub(crate) fn set(fd: BorrowedFd, bytes: Bytes, kind: i32, waits: bool) -> nix::Result<()> {
        let request = request(bytes, kind);
        let argument =
            if waits { FcntlArg::F_OFD_SETLKW(&request) } else { FcntlArg::F_OFD_SETLK(&request) };
        fcntl(fd, argument).map(drop)
    }

    pub(crate) fn get(fd: BorrowedFd, bytes: Bytes) -> nix::Result<Option<Bytes>> {
        let mut request = request(bytes, libc::F_WRLCK);
        fcntl(fd, FcntlArg::F_OFD_GETLK(&mut request))?;
        let (start, length) = (request.l_start as u64, request.l_len as u64);
        let is_free = i32::from(request.l_type) == libc::F_UNLCK;
        Ok((!is_free).then(|| (start, start.saturating_add(length))))
    }
}

/// Locks a range for writing. Returns false if another open file description has a lock in the
/// range.
pub(crate) fn try_lock(fd: BorrowedFd, bytes: Bytes) -> io::Result<bool> {
    match system::set(fd, bytes, libc::F_WRLCK, false) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Blocks until no other lock is in the range. A signal interrupts the wait with an error.
pub(crate) fn wait_until_free(fd: BorrowedFd, bytes: Bytes) -> io::Result<()> {
    system::set(fd, bytes, libc::F_RDLCK, true)?;
    unlock(fd, bytes)
}

/// Releases the locks in a range.
pub(crate) fn unlock(fd: BorrowedFd, bytes: Bytes) -> io::Result<()> {
    Ok(system::set(fd, bytes, libc::F_UNLCK, false)?)
}

/// Returns the range of a lock that another open file description has in `bytes`, if any.
pub(crate) fn find(fd: BorrowedFd, bytes: Bytes) -> io::Result<Option<Bytes>> {
    if bytes.0 >= bytes.1 {
        return Ok(None);
    }
    Ok(system::get(fd, bytes)?)
}
