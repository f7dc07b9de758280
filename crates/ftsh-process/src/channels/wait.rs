//! Waits for channels, performed by workers.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::ChannelFile;
use super::file_watch::FileWatch;
use super::locks::{STATE, last, wait_until_free};
use crate::locks::Bytes;
use crate::workers::Control;

/// Pause before a retry after an error.
const PAUSE: Duration = Duration::from_millis(20);

/// Wait for a change of a channel.
#[derive(Debug)]
pub(crate) struct Wait {
    /// Reason.
    pub reason: WaitReason,
    pub(super) file: Arc<ChannelFile>,
    pub(super) watch: Option<Arc<FileWatch>>,
    /// Longest time to wait. For `WaitReason::Others` the caller has to check again by then.
    pub most: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Another shell changes the text.
    Busy,
    /// An earlier waiter has locked one of these bytes.
    Others(Bytes),
    /// All places are taken, or attempts are admitted only from this time on.
    Change(Option<Duration>),
}

/// Result of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waited {
    /// The channel may have changed.
    Happened {
        /// True if another process closed the file, perhaps because it was killed.
        closed: bool,
    },
    /// The time limit has passed.
    Nothing,
}

impl Wait {
    /// Performs the wait; none if it was canceled.
    pub(crate) fn perform(self, control: &Control) -> Option<Waited> {
        let begun = Instant::now();
        let result = match self.reason {
            WaitReason::Busy => self.for_the_text(control),
            WaitReason::Others(before) => self.for_others(before, control),
            WaitReason::Change(_) => return self.for_a_change(control),
        };
        match result {
            Ok(waited) => waited,
            // The process may be out of descriptors, or the file was replaced.
            Err(_) => {
                while begun.elapsed() < PAUSE && !control.is_cancelled() {
                    std::thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
                }
                (!control.is_cancelled()).then_some(Waited::Nothing)
            }
        }
    }

    fn for_the_text(&self, control: &Control) -> io::Result<Option<Waited>> {
        let file = self.file.open_to_wait().map_err(io::Error::other)?;
        while !control.is_cancelled() {
            match wait_until_free(file.as_fd(), STATE) {
                // Releases the lock at once: a stopped shell must not stop all others.
                Ok(()) => return Ok(Some(Waited::Happened { closed: false })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Each waiter waits for its immediate predecessor, so an end wakes only one.
    fn for_others(&self, before: Bytes, control: &Control) -> io::Result<Option<Waited>> {
        let file = self.file.open_to_wait().map_err(io::Error::other)?;
        while !control.is_cancelled() {
            let Some(before) = last(file.as_fd(), before)? else {
                return Ok(Some(Waited::Happened { closed: false }));
            };
            match wait_until_free(file.as_fd(), before) {
                // The remaining ones may have been passed over meanwhile.
                Ok(()) => return Ok(Some(Waited::Happened { closed: false })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn for_a_change(&self, control: &Control) -> Option<Waited> {
        let begun = Instant::now();
        while !control.is_cancelled() {
            let left = self.most.saturating_sub(begun.elapsed());
            match &self.watch {
                Some(watch) => watch.wait(left),
                None => std::thread::sleep(left),
            }
            let happened = self.watch.as_ref().map(|watch| watch.take()).unwrap_or_default();
            if happened.anything {
                return Some(Waited::Happened { closed: happened.closed });
            }
            if begun.elapsed() >= self.most {
                return Some(Waited::Nothing);
            }
        }
        None
    }
}
