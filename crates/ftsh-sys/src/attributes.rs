//! Extended attributes of files, access lists among them.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, lgetxattr, llistxattr};

/// Maximum number of bytes that the kernel returns, for a list of names and for a value.
const LIMIT: usize = 64 * 1024;

/// Number of bytes that is enough for most files. The kernel allocates as much for each call.
const USUAL: usize = 512;

/// Returns the names of a file's attributes. The last link of the path is not followed.
pub fn attributes(path: &Path) -> io::Result<Vec<CString>> {
    let names = read(|names| llistxattr(path, spare_capacity(names)))?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
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
