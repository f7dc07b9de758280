//! Kind, owner and size of an open file, without its times.
//!
//! After a read of the times, the next write records an exact time (Linux 6.13), which costs more
//! than the write.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};
use rustix::fs::{AtFlags, StatxFlags, statx};

/// Properties of an open file that decide how it is read and written.
pub struct FdKind {
    /// Type of the file.
    pub file_type: SFlag,
    /// User that owns the file.
    pub owner: u32,
    /// Size in bytes.
    pub size: u64,
    /// Number of a device; 0 for other files.
    pub device: libc::dev_t,
}

/// Returns the kind of an open file.
pub fn fd_kind(fd: BorrowedFd) -> nix::Result<FdKind> {
    // Linux before 4.11 lacks the call, and some sandboxes forbid the call.
    if let Ok(found) = without_times(fd) {
        return Ok(found);
    }
    with_times(fd)
}

fn without_times(fd: BorrowedFd) -> nix::Result<FdKind> {
    let wanted = StatxFlags::TYPE | StatxFlags::UID | StatxFlags::SIZE;
    let data = statx(fd, c"", AtFlags::EMPTY_PATH, wanted)
        .map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
    Ok(FdKind {
        file_type: SFlag::from_bits_truncate(data.stx_mode.into()) & SFlag::S_IFMT,
        owner: data.stx_uid,
        size: data.stx_size,
        device: libc::makedev(data.stx_rdev_major, data.stx_rdev_minor),
    })
}

fn with_times(fd: BorrowedFd) -> nix::Result<FdKind> {
    let data = fstat(fd)?;
    Ok(FdKind {
        file_type: SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT,
        owner: data.st_uid,
        size: data.st_size.cast_unsigned(),
        device: data.st_rdev,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_calls_agree() {
        let (pipe, _writer) = std::io::pipe().expect("a pipe");
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, b"some").expect("a disk");
        let null = File::open("/dev/null").expect("a device");
        for fd in [pipe.as_fd(), file.as_fd(), null.as_fd()] {
            let [one, other] = [without_times(fd), with_times(fd)].map(|kind| kind.expect("open"));
            assert_eq!(
                (one.file_type, one.owner, one.size, one.device),
                (other.file_type, other.owner, other.size, other.device)
            );
        }
    }
}
