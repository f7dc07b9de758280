//! The kernel's news about a file.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A descriptor that is readable when somebody changed a file, or closed it who could have.
#[cfg(target_os = "linux")]
pub fn watch_changes(path: &Path) -> io::Result<OwnedFd> {
    use std::os::fd::{AsRawFd, FromRawFd};
    let path = CString::new(path.as_os_str().as_bytes())?;
    let wanted = libc::IN_MODIFY | libc::IN_CLOSE_WRITE | libc::IN_ATTRIB | libc::IN_DELETE_SELF;
    // SAFETY: plain calls; the new descriptor belongs to nobody else, and the path is only read.
    unsafe {
        let new = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
        if new < 0 {
            return Err(io::Error::last_os_error());
        }
        let new = super::move_up(OwnedFd::from_raw_fd(new))?;
        if libc::inotify_add_watch(new.as_raw_fd(), path.as_ptr(), wanted) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(new)
    }
}

/// Where the kernel has no such news.
#[cfg(not(target_os = "linux"))]
pub fn watch_changes(path: &Path) -> io::Result<OwnedFd> {
    let _ = CString::new(path.as_os_str().as_bytes())?;
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether what was read from such a descriptor tells of somebody closing the file.
pub fn tell_of_closing(events: &[u8]) -> bool {
    #[cfg(target_os = "linux")]
    {
        // Number, mask, cookie and length of the name: the files that are watched have none.
        let words = |event: &[u8; 16]| u32::from_ne_bytes([event[4], event[5], event[6], event[7]]);
        let (events, _) = events.as_chunks::<16>();
        events.iter().any(|event| words(event) & (libc::IN_CLOSE_WRITE | libc::IN_Q_OVERFLOW) != 0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = events;
        false
    }
}
