//! Facts about entries of directories.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use serde::{Deserialize, Serialize};

/// Time of a file: seconds and nanoseconds since the epoch.
pub(crate) type FileTime = (i64, i64);

/// Prefix of the names of directories with layers.
pub(crate) const PREFIX: &str = ".ftsh-";

/// Prefix of the names of layers in the layers of an outer attempt.
pub(crate) const NESTED: &str = "nested-";

/// Identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev as _, inode: stat.st_ino as _ }
    }
}

/// Extended attributes of a file, with their values.
pub(crate) type AttributeSet = Vec<(CString, Vec<u8>)>;

/// Returns the facts about a name in a directory, or none if there is no such name.
pub(crate) fn find(directory: impl AsFd, name: &CStr) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    kind(stat) == FileType::Directory
}

/// True for an entry by which an overlay hides an entry below.
pub(crate) fn is_whiteout(stat: &Stat) -> bool {
    kind(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

pub(crate) fn inode(stat: &Stat) -> u64 {
    stat.st_ino as _
}

/// Returns the permission bits.
pub(crate) fn mode(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

pub(crate) fn change_time(stat: &Stat) -> FileTime {
    (stat.st_ctime as _, stat.st_ctime_nsec as _)
}

pub(crate) fn modification_time(stat: &Stat) -> FileTime {
    (stat.st_mtime as _, stat.st_mtime_nsec as _)
}

/// Opens a directory for reading. A link is not followed.
pub(crate) fn open_directory(at: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// Returns the names in a directory that is open for reading.
pub(crate) fn names(directory: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Returns a path to an entry of an open directory, for calls that accept only paths.
pub(crate) fn path_in(directory: BorrowedFd, name: &CStr) -> PathBuf {
    let directory = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
    directory.join(OsStr::from_bytes(name.to_bytes()))
}

/// Returns a path to an open directory. The path needs no permission to search the directory.
pub(crate) fn path_of(directory: BorrowedFd) -> PathBuf {
    // The slash at the end makes the kernel follow the link.
    path_in(directory, c"")
}

/// Number of digits at the end of a mark.
const MARK_DIGITS: usize = 16;

/// True if the name can belong to layers of some attempt: the prefix, a mark of hexadecimal digits,
/// and the number of the directory.
pub(crate) fn is_reserved(name: &CStr) -> bool {
    let rest = name.to_bytes().strip_prefix(PREFIX.as_bytes()).unwrap_or_default();
    let end = rest.iter().rposition(|byte| *byte == b'-').unwrap_or(0);
    let Some((begin, digits)) = rest[..end].split_at_checked(end.wrapping_sub(MARK_DIGITS)) else {
        return false;
    };
    let number = &rest[end + 1..];
    let is_mark = digits.iter().all(u8::is_ascii_hexdigit)
        && begin.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    is_mark && !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

/// Returns a path as a string of C.
pub(crate) fn c_string(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
