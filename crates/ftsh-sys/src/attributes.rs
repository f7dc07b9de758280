//! Extended attributes of files, access lists among them.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The names of a file's attributes, where there are any. The last link of the path isn't followed.
pub fn attributes(path: &Path) -> io::Result<Vec<CString>> {
    let names = system::list(path)?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// The value of an attribute.
pub fn attribute(path: &Path, name: &CStr) -> io::Result<Vec<u8>> {
    system::get(path, name)
}

/// Gives an open file an attribute.
pub fn set_attribute(file: BorrowedFd, name: &CStr, value: &[u8]) -> io::Result<()> {
    system::set(file, name, value)
}

/// Takes an attribute from an open file.
pub fn remove_attribute(file: BorrowedFd, name: &CStr) -> io::Result<()> {
    system::remove(file, name)
}

mod system {
    use std::ffi::{CStr, CString};
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use nix::errno::Errno;

    /// The kernel has no longer ones.
    const MOST: usize = 64 * 1024;

    fn filled(read: impl Fn(*mut libc::c_char, usize) -> isize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0_u8; MOST];
        let count = Errno::result(read(bytes.as_mut_ptr().cast(), MOST))?;
        bytes.truncate(count as usize);
        Ok(bytes)
    }

    fn text(path: &Path) -> io::Result<CString> {
        Ok(CString::new(path.as_os_str().as_bytes())?)
    }

    pub fn list(path: &Path) -> io::Result<Vec<u8>> {
        let path = text(path)?;
        // SAFETY: no more is written than there is room for.
        filled(|bytes, most| unsafe { libc::llistxattr(path.as_ptr(), bytes, most) })
    }

    pub fn get(path: &Path, name: &CStr) -> io::Result<Vec<u8>> {
        let path = text(path)?;
        // SAFETY: no more is written than there is room for.
        filled(|bytes, most| unsafe {
            libc::lgetxattr(path.as_ptr(), name.as_ptr(), bytes.cast(), most)
        })
    }

    pub fn set(file: BorrowedFd, name: &CStr, value: &[u8]) -> io::Result<()> {
        let (fd, bytes, size) = (file.as_raw_fd(), value.as_ptr().cast(), value.len());
        // SAFETY: the name and the value are only read.
        Errno::result(unsafe { libc::fsetxattr(fd, name.as_ptr(), bytes, size, 0) })?;
        Ok(())
    }

    pub fn remove(file: BorrowedFd, name: &CStr) -> io::Result<()> {
        // SAFETY: the name is only read.
        Errno::result(unsafe { libc::fremovexattr(file.as_raw_fd(), name.as_ptr()) })?;
        Ok(())
    }
}
