//! Changes and closings of files, by inotify.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A descriptor that is readable when somebody changed a file, or closed it who could have.
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

/// Whether what was read from such a descriptor tells of somebody closing the file.
pub fn tell_of_closing(events: &[u8]) -> bool {
    // Number, mask, cookie and length of the name: the files that are watched have none.
    let words = |event: &[u8; 16]| u32::from_ne_bytes([event[4], event[5], event[6], event[7]]);
    let (events, _) = events.as_chunks::<16>();
    events.iter().any(|event| words(event) & (libc::IN_CLOSE_WRITE | libc::IN_Q_OVERFLOW) != 0)
}

/// Number of a watched pipe.
pub type WatchNumber = i32;

/// A queue of the closings of pipes' ends, in their order.
pub struct CloseEvents(OwnedFd);

impl CloseEvents {
    /// Opens an empty queue.
    pub fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd;
        // SAFETY: a plain call; the new descriptor belongs to nobody else.
        let new = unsafe {
            let new = libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK);
            if new < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(new)
        };
        Ok(Self(super::move_up(new)?))
    }

    /// Adds the closings of a pipe's ends from now on.
    pub fn add(&self, pipe: &CStr) -> io::Result<WatchNumber> {
        use std::os::fd::AsRawFd;
        let wanted = libc::IN_CLOSE_WRITE | libc::IN_CLOSE_NOWRITE;
        // SAFETY: a plain call; the path is only read.
        let number = unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), pipe.as_ptr(), wanted) };
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
    }

    /// Ends what `add` began.
    pub fn remove(&self, number: WatchNumber) {
        use std::os::fd::AsRawFd;
        // SAFETY: a plain call.
        unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), number) };
    }

    /// Takes all events so far, the oldest first: which pipe, and whether a writer was closed or a reader.
    pub fn take(&self, mut each: impl FnMut(WatchNumber, bool)) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = nix::unistd::read(&self.0, &mut bytes) {
            // Number, mask, cookie and length of the name: pipes have none.
            let (events, _) = bytes[..count].as_chunks::<16>();
            for event in events {
                let word = |at: usize| [event[at], event[at + 1], event[at + 2], event[at + 3]];
                let mask = u32::from_ne_bytes(word(4));
                if mask & (libc::IN_CLOSE_WRITE | libc::IN_CLOSE_NOWRITE) != 0 {
                    each(i32::from_ne_bytes(word(0)), mask & libc::IN_CLOSE_WRITE != 0);
                }
            }
        }
    }
}
