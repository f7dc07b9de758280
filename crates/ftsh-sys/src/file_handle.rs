//! Handles of files, which name an inode and its generation.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

/// Maximum number of bytes of a handle, as the kernel defines it.
const MAX_HANDLE: usize = libc::MAX_HANDLE_SZ as usize;

/// Memory of a handle, in the layout of the kernel's `struct file_handle`.
#[repr(C)]
struct Handle {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; MAX_HANDLE],
}

/// Returns type and bytes of the handle of a file. A link is not followed.
///
/// Fails with EOPNOTSUPP on file systems without handles.
pub fn file_handle(directory: BorrowedFd, name: &CStr) -> io::Result<(i32, Vec<u8>)> {
    let mut handle = Handle { length: MAX_HANDLE as _, kind: 0, bytes: [0; MAX_HANDLE] };
    let mut mount = 0;
    // SAFETY: the memory has the layout and the size that its first field gives.
    Errno::result(unsafe {
        libc::name_to_handle_at(
            directory.as_raw_fd(),
            name.as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            0,
        )
    })?;
    let length = MAX_HANDLE.min(handle.length as usize);
    Ok((handle.kind, handle.bytes[..length].to_vec()))
}
