//! Waiting for a channel, which a worker does.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::os::workers::Control;
use super::file::ChannelFile;
use super::locks::{self, Bytes, STATE};
use super::watch::Watch;

/// When something that is needed to wait can't be had, it is tried anew so much later.
const PAUSE: Duration = Duration::from_millis(20);

/// What is to be waited for.
#[derive(Debug)]
pub struct Wait {
    /// What.
    pub reason: Reason,
    pub(super) file: Arc<ChannelFile>,
    pub(super) watch: Option<Arc<Watch>>,
    /// Longest time to wait. For `Reason::Others` the caller has to check again by then.
    pub most: Duration,
}

/// Why somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another shell changes the channel.
    Busy,
    /// An earlier waiter has one of these bytes.
    Others(Bytes),
    /// A place is to come free, or this moment to come.
    Change(Option<Duration>),
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub enum Waited {
    /// It may be worth another look; and whether somebody may have died.
    Happened {
        /// Whether the file was closed.
        closed: bool,
    },
    /// Nothing happened.
    Nothing,
}

impl Wait {
    /// Waits; none if that was given up.
    pub fn perform(self, control: &Control) -> Option<Waited> {
        let begun = Instant::now();
        let result = match self.reason {
            Reason::Busy => self.for_the_text(control),
            Reason::Others(before) => self.for_others(before, control),
            Reason::Change(_) => return self.for_a_change(control),
        };
        match result {
            Ok(waited) => waited,
            // There may be no descriptors, or another file by now.
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
            match locks::wait_until_free(file.as_fd(), STATE) {
                // It isn't kept: who stops a shell mustn't stop all others.
                Ok(()) => return Ok(Some(Waited::Happened { closed: false })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Each waits for the one just before it, so that whoever goes wakes but one.
    fn for_others(&self, before: Bytes, control: &Control) -> io::Result<Option<Waited>> {
        let file = self.file.open_to_wait().map_err(io::Error::other)?;
        while !control.is_cancelled() {
            let Some(before) = locks::last(file.as_fd(), before)? else {
                return Ok(Some(Waited::Happened { closed: false }));
            };
            match locks::wait_until_free(file.as_fd(), before) {
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
