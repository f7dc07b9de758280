//! The pipe through which commands read what an input holds, from some place on.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::OFlag;

use super::super::fds::log::Log;
use super::super::os::poll::{Poller, Token};
use ftsh_sys as sys;

/// At first a pipe takes no more than that: who reads nothing has little read ahead for it.
const NARROW: i32 = 4096;
/// What pipes usually take.
const WIDE: i32 = 64 * 1024;

/// A pipe.
pub struct Feed {
    /// What the poller knows it by.
    token: Token,
    /// What commands read from, and keep as long as they do.
    reader: Arc<OwnedFd>,
    /// None when all is written.
    writer: Option<io::PipeWriter>,
    /// The place up to which the input is written.
    written: u64,
    is_wide: bool,
    /// Whether the poller tells when there is room.
    is_watched: bool,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// Nobody reads at present, or there is nothing more to be written.
    Idle,
    /// The pipe is full.
    Full,
    /// All is written that was there.
    Dry,
}

impl Feed {
    /// An empty one that begins at a place.
    pub fn new(token: Token, at: u64) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let reader = sys::move_up(reader.into())?;
        let writer = sys::move_up(writer.into())?;
        sys::add_flags(writer.as_fd(), OFlag::O_NONBLOCK)?;
        let this = Self {
            token,
            reader: Arc::new(reader),
            writer: Some(writer.into()),
            written: at,
            is_wide: false,
            is_watched: false,
        };
        this.resize(false);
        Ok(this)
    }

    fn resize(&self, wide: bool) {
        use nix::fcntl::{FcntlArg, fcntl};
        let size = if wide { WIDE } else { NARROW };
        let _ = fcntl(&self.reader, FcntlArg::F_SETPIPE_SZ(size));
    }

    /// The end that commands read from.
    pub fn reader(&self) -> Arc<OwnedFd> {
        self.reader.clone()
    }

    /// Whether it has this name.
    pub fn is(&self, token: Token) -> bool {
        self.token == token
    }

    /// Whether a command has it.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.reader) > 1
    }

    /// The place up to which it was read.
    pub fn read_up_to(&self) -> u64 {
        let unread = sys::unread(self.reader.as_fd()).unwrap_or(0);
        self.written.saturating_sub(unread as u64)
    }

    /// What was written was read: who reads so much gets more at once.
    pub fn widen(&mut self) {
        if !std::mem::replace(&mut self.is_wide, true) {
            self.resize(true);
        }
    }

    /// Writes what there is room for, by way of a block, and sees to it that the loop hears of more room.
    pub fn push(
        &mut self,
        log: &Log,
        is_all: bool,
        block: &mut [u8],
        poller: &mut Poller,
    ) -> io::Result<Fed> {
        let fed = if self.is_in_use() { self.write(log, block)? } else { Fed::Idle };
        let watched = fed == Fed::Full;
        if watched != self.is_watched
            && let Some(writer) = &self.writer
        {
            if watched {
                poller.add_for_writing(writer.as_fd(), self.token)?;
            } else {
                poller.remove(writer.as_fd());
            }
            self.is_watched = watched;
        }
        if fed == Fed::Dry && is_all {
            self.writer = None; // who reads sees the end
            return Ok(Fed::Idle);
        }
        Ok(fed)
    }

    fn write(&mut self, log: &Log, block: &mut [u8]) -> io::Result<Fed> {
        let Some(writer) = &mut self.writer else { return Ok(Fed::Idle) };
        loop {
            let count = log.read(self.written, block)?;
            if count == 0 {
                return Ok(Fed::Dry);
            }
            match writer.write(&block[..count]) {
                Ok(count) => self.written += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fed::Full),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends it: what wasn't read of it is lost to who has it.
    pub fn end(self, poller: &mut Poller) {
        if self.is_watched
            && let Some(writer) = &self.writer
        {
            poller.remove(writer.as_fd());
        }
    }
}
