//! Extended attributes of files, access lists among them.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, lgetxattr, llistxattr};

/// Maximum number of bytes that the kernel returns, for a list of names and for a value.
const LIMIT: usize = 64 * 1024;

/// Number of bytes that is enough for most files. The kernel allocates as much for each call.
const USUAL: usize = 512;

/// Number of the system call `listxattrat` (Linux 6.13), where it is this one.
const LISTXATTRAT: Option<libc::c_long> =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")) {
        Some(465)
    } else {
        None
    };

/// Returns the names of a file's attributes. The last link of the path is not followed.
pub fn attributes(path: &Path) -> io::Result<Vec<CString>> {
    Ok(split(&read(|names| llistxattr(path, spare_capacity(names)))?))
}

/// Returns the names of the attributes of an entry of a directory. A link is not followed.
///
/// On an older kernel, `path` is used, which leads to the entry.
pub fn attributes_in(
    directory: BorrowedFd,
    name: &CStr,
    path: impl FnOnce() -> PathBuf,
) -> io::Result<Vec<CString>> {
    match read(|names| list_in(directory, name, names)) {
        // A sandbox may refuse calls that it does not know.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            attributes(&path())
        }
        names => Ok(split(&names?)),
    }
}

/// Fills a buffer with names, each ended by a zero byte, like `listxattrat`.
fn list_in(directory: BorrowedFd, name: &CStr, names: &mut Vec<u8>) -> rustix::io::Result<usize> {
    let Some(number) = LISTXATTRAT else { return Err(rustix::io::Errno::NOSYS) };
    let (start, size) = (names.as_mut_ptr(), names.capacity());
    let directory = directory.as_raw_fd();
    // SAFETY: the name ends with a zero byte, and the kernel writes at most `size` bytes to the buffer.
    let length = unsafe {
        libc::syscall(number, directory, name.as_ptr(), libc::AT_SYMLINK_NOFOLLOW, start, size)
    };
    let Ok(length) = usize::try_from(length) else {
        let error = io::Error::last_os_error();
        return Err(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO));
    };
    // SAFETY: the kernel has written this many bytes.
    unsafe { names.set_len(length) };
    Ok(length)
}

fn split(names: &[u8]) -> Vec<CString> {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| CString::new(name).ok()).collect()
}

/// Returns the value of an attribute. The last link of the path is not followed.
pub fn attribute(path: &Path, name: &CStr) -> io::Result<Vec<u8>> {
    read(|value| lgetxattr(path, name, spare_capacity(value)))
}

/// Reads bytes into a small buffer, or into a large one if the small one is too small.
fn read(read: impl Fn(&mut Vec<u8>) -> rustix::io::Result<usize>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    match read(&mut bytes) {
        Err(rustix::io::Errno::RANGE) => {
            bytes = Vec::with_capacity(LIMIT);
            read(&mut bytes)?;
        }
        result => _ = result?,
    }
    Ok(bytes)
}

/// Sets an attribute of an open file.
pub fn set_attribute(file: BorrowedFd, name: &CStr, value: &[u8]) -> io::Result<()> {
    Ok(fsetxattr(file, name, value, XattrFlags::empty())?)
}

/// Removes an attribute of an open file.
pub fn remove_attribute(file: BorrowedFd, name: &CStr) -> io::Result<()> {
    Ok(fremovexattr(file, name)?)
}

#[cfg(test)]
#[path = "../../../tests/support/skipped.rs"]
mod skipped;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn both_calls_return_the_same_names() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("file");
        let file = std::fs::File::create(&path).expect("a file");
        let directory = std::fs::File::open(place.path()).expect("a directory");
        let in_directory = || attributes_in(directory.as_fd(), c"file", || path.clone());
        assert!(in_directory().expect("names").is_empty());
        // More than fits into the small buffer, where the file system has attributes of users.
        for number in 0..20 {
            let name = CString::new(format!("user.{number:040}")).expect("a name");
            if set_attribute(file.as_fd(), &name, b"x").is_err() {
                return skipped::skipped("attributes of files by users, for temporary files");
            }
        }
        assert_eq!(in_directory().expect("names"), attributes(&path).expect("names"));
        assert_eq!(in_directory().expect("names").len(), 20);
        let missing = attributes_in(directory.as_fd(), c"missing", || path.with_extension("x"));
        assert_eq!(missing.expect_err("no file").kind(), io::ErrorKind::NotFound);
    }
}
