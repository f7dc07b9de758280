//! Locks on bytes far beyond the text of a file. The kernel drops them with the last descriptor of the
//! description that they were taken by (Linux: open file description locks), however that comes
//! about; descriptors of commands are closed before they begin.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::channel::NUMBERS;

/// Who waits has the byte of its number here.
const QUEUE: u64 = NUMBERS;
/// Who is inside has the byte of its number here.
const INSIDE: u64 = 2 * NUMBERS;
/// Who changes the text.
pub const STATE: Bytes = one(3 * NUMBERS);
/// The probe of an open breaker.
pub const PROBE: Bytes = one(3 * NUMBERS + 1);

/// Bytes by their places in a file: from the first to before the second.
pub type Bytes = (u64, u64);

const fn one(at: u64) -> Bytes {
    (at, at + 1)
}

/// The byte of whoever waits with this number.
pub fn waiter(number: u64) -> Bytes {
    one(QUEUE + number)
}

/// All who wait with numbers in this range.
pub fn waiters(numbers: Range<u64>) -> Bytes {
    (QUEUE + numbers.start, QUEUE + numbers.end)
}

/// The byte of an attempt that is inside.
pub fn attempt(number: u64) -> Bytes {
    one(INSIDE + number)
}

/// All that are inside.
pub const ATTEMPTS: Bytes = (INSIDE, INSIDE + NUMBERS);

#[cfg(target_os = "linux")]
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

/// Where locks belong to processes, they would be lost with any descriptor of the file.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::os::fd::BorrowedFd;

    use nix::errno::Errno;

    use super::Bytes;

    pub fn set(_: BorrowedFd, _: Bytes, _: i32, _: bool) -> nix::Result<()> {
        Err(Errno::ENOLCK)
    }

    pub fn get(_: BorrowedFd, _: Bytes) -> nix::Result<Option<Bytes>> {
        Err(Errno::ENOLCK)
    }
}

/// All there are.
#[cfg(test)]
pub const ALL: Bytes = (QUEUE, 4 * NUMBERS);

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

/// The last of somebody else's locks among these, if there is one.
pub fn last(fd: BorrowedFd, (mut start, end): Bytes) -> io::Result<Option<Bytes>> {
    let mut last = None;
    while let Some((_, after)) = find(fd, (start, end))? {
        let at = after.min(end) - 1;
        last = Some(one(at));
        start = at + 1;
    }
    Ok(last)
}

/// How many of these somebody else has locked.
pub fn count(fd: BorrowedFd, bytes: Bytes) -> io::Result<u64> {
    let mut count = 0;
    let mut left = vec![bytes];
    while let Some((start, end)) = left.pop() {
        if let Some(found) = find(fd, (start, end))? {
            let (first, after) = (found.0.max(start), found.1.min(end));
            count += after - first;
            left.extend([(start, first), (after, end)]);
        }
    }
    Ok(count)
}
