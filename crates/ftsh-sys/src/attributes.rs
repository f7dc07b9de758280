//! Extended attributes of files, access lists among them.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, lgetxattr, llistxattr};

/// Maximum number of bytes that the kernel returns, for a list of names and for a value.
const LIMIT: usize = 64 * 1024;

/// Returns the names of a file's attributes. The last link of the path is not followed.
pub fn attributes(path: &Path) -> io::Result<Vec<CString>> {
    let mut names = Vec::with_capacity(LIMIT);
    llistxattr(path, spare_capacity(&mut names))?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// Returns the value of an attribute. The last link of the path is not followed.
pub fn attribute(path: &Path, name: &CStr) -> io::Result<Vec<u8>> {
    let mut value = Vec::with_capacity(LIMIT);
    lgetxattr(path, name, spare_capacity(&mut value))?;
    Ok(value)
}

/// Sets an attribute of an open file.
pub fn set_attribute(file: BorrowedFd, name: &CStr, value: &[u8]) -> io::Result<()> {
    Ok(fsetxattr(file, name, value, XattrFlags::empty())?)
}

/// Removes an attribute of an open file.
pub fn remove_attribute(file: BorrowedFd, name: &CStr) -> io::Result<()> {
    Ok(fremovexattr(file, name)?)
}
