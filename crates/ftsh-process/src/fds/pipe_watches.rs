//! Order in which the ends of pipes are closed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use ftsh_sys::{CloseEvents, WatchNumber};

/// Watched pipes of a shell. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PipeWatches(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    /// Opened for the first pipe.
    events: Option<CloseEvents>,
    pipes: HashMap<WatchNumber, ClosedEnds>,
}

/// Ends of a pipe closed since the watch began.
#[derive(Default)]
struct ClosedEnds {
    /// Number of watches.
    watches: usize,
    /// Set when a writer was closed.
    writer: bool,
    /// Set when a reader was closed after the last closed writer.
    reader_last: bool,
}

/// Watch of a pipe, until dropped.
pub(crate) struct PipeWatch {
    pipe_watches: PipeWatches,
    number: WatchNumber,
}

impl PipeWatches {
    /// Starts a watch of a pipe; none where the kernel does not support watches.
    pub(crate) fn watch(&self, pipe: &OwnedFd) -> Option<PipeWatch> {
        let path = CString::new(format!("/proc/self/fd/{}", pipe.as_raw_fd())).ok()?;
        let mut state = self.0.borrow_mut();
        if state.events.is_none() {
            state.events = CloseEvents::new().ok();
        }
        // Reads earlier events, so that the kernel's queue stays short.
        state.take();
        let number = state.events.as_ref()?.add(&path).ok()?;
        state.pipes.entry(number).or_default().watches += 1;
        Some(PipeWatch { pipe_watches: self.clone(), number })
    }
}

impl State {
    fn take(&mut self) {
        let Self { events, pipes } = self;
        let Some(events) = events else { return };
        events.take(|number, is_writer| {
            if let Some(closed) = pipes.get_mut(&number) {
                closed.writer |= is_writer;
                closed.reader_last = !is_writer;
            }
        });
    }
}

impl PipeWatch {
    /// True if the last closed end is a reader's, and a writer's was closed before. Then the reader
    /// may have read to the end of the output.
    pub(crate) fn reader_followed(&self) -> bool {
        let mut state = self.pipe_watches.0.borrow_mut();
        state.take();
        state.pipes.get(&self.number).is_some_and(|it| it.writer && it.reader_last)
    }
}

impl Drop for PipeWatch {
    fn drop(&mut self) {
        let mut state = self.pipe_watches.0.borrow_mut();
        let Some(closed) = state.pipes.get_mut(&self.number) else { return };
        closed.watches -= 1;
        if closed.watches == 0 {
            state.pipes.remove(&self.number);
            if let Some(events) = &state.events {
                events.remove(self.number);
            }
        }
    }
}
