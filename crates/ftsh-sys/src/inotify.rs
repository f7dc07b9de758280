//! Changes and closings of files, by inotify.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::inotify::{add_watch, init, remove_watch};

/// Bytes of events read at a time.
const ROOM: usize = 4096;

fn new_queue() -> io::Result<OwnedFd> {
    super::move_up(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?)
}

/// Returns a descriptor that is readable after a file was changed, or closed by a possible writer.
pub fn watch_changes(path: &Path) -> io::Result<OwnedFd> {
    let queue = new_queue()?;
    let wanted =
        WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::DELETE_SELF;
    add_watch(&queue, path, wanted)?;
    Ok(queue)
}

/// Returns true if bytes read from such a descriptor report that a writer closed the file.
pub fn report_closing(events: &[u8]) -> bool {
    // Number, mask, cookie and length of the name: watched files have no names.
    let mask = |event: &[u8; 16]| u32::from_ne_bytes([event[4], event[5], event[6], event[7]]);
    let wanted = (ReadFlags::CLOSE_WRITE | ReadFlags::QUEUE_OVERFLOW).bits();
    let (events, _) = events.as_chunks::<16>();
    events.iter().any(|event| mask(event) & wanted != 0)
}

/// Number of a watched pipe.
pub type WatchNumber = i32;

/// Queue of closings of pipe ends, in order.
pub struct CloseEvents(OwnedFd);

impl CloseEvents {
    /// Opens an empty queue.
    pub fn new() -> io::Result<Self> {
        new_queue().map(Self)
    }

    /// Adds the closings of a pipe's ends from now on.
    pub fn add(&self, pipe: &CStr) -> io::Result<WatchNumber> {
        Ok(add_watch(&self.0, pipe, WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE)?)
    }

    /// Removes a pipe that `add` added.
    pub fn remove(&self, number: WatchNumber) {
        let _ = remove_watch(&self.0, number);
    }

    /// Takes all events so far, the oldest first: the number of the pipe, and true if a writer
    /// closed it.
    pub fn take(&self, mut each: impl FnMut(WatchNumber, bool)) {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut events = Reader::new(&self.0, &mut room);
        while let Ok(event) = events.next() {
            let is_writer = event.events().contains(ReadFlags::CLOSE_WRITE);
            if is_writer || event.events().contains(ReadFlags::CLOSE_NOWRITE) {
                each(event.wd(), is_writer);
            }
        }
    }
}
