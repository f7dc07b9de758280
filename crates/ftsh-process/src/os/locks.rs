//! Locks on bytes of files. The kernel drops them with the last descriptor of the description that they were
//! taken by (Linux: open file description locks), however that comes about; descriptors of commands are
//! closed before they begin.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;

/// Bytes by their places in a file: from the first to before the second. There needn't be any.
pub type Bytes = (u64, u64);

/// A single one.
pub const fn one(at: u64) -> Bytes {
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

    pub fn set(fd: BorrowedFd, bytes: Bytes, kind: i32, waits: bool) -> nix::Result<()> {
        let request = request(bytes, kind);
        let argument =
            if waits { FcntlArg::F_OFD_SETLKW(&request) } else { FcntlArg::F_OFD_SETLK(&request) };
        fcntl(fd, argument).map(drop)
    }

    pub fn get(fd: BorrowedFd, bytes: Bytes) -> nix::Result<Option<Bytes>> {
        let mut request = request(bytes, libc::F_WRLCK);
        fcntl(fd, FcntlArg::F_OFD_GETLK(&mut request))?;
        let (start, length) = (request.l_start as u64, request.l_len as u64);
        let is_free = i32::from(request.l_type) == libc::F_UNLCK;
        Ok((!is_free).then(|| (start, start.saturating_add(length))))
    }
}

/// Takes locks, if nobody else has one of them.
pub fn try_lock(fd: BorrowedFd, bytes: Bytes) -> io::Result<bool> {
    match system::set(fd, bytes, libc::F_WRLCK, false) {
        Ok(()) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Waits until nobody has them. A signal ends it with an error.
pub fn wait_until_free(fd: BorrowedFd, bytes: Bytes) -> io::Result<()> {
    system::set(fd, bytes, libc::F_RDLCK, true)?;
    unlock(fd, bytes)
}

/// Gives locks back.
pub fn unlock(fd: BorrowedFd, bytes: Bytes) -> io::Result<()> {
    Ok(system::set(fd, bytes, libc::F_UNLCK, false)?)
}

/// A lock of somebody else among these, if there is one.
pub fn find(fd: BorrowedFd, bytes: Bytes) -> io::Result<Option<Bytes>> {
    if bytes.0 >= bytes.1 {
        return Ok(None);
    }
    Ok(system::get(fd, bytes)?)
}
