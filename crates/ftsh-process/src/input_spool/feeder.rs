//! Pipe that carries the bytes of a spool to commands, from some position on.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::OFlag;

use crate::buffers::SpillingLog;
use crate::events::{Poller, Token};
use ftsh_sys as sys;

/// Initial size of the pipe, in bytes. A command that reads nothing causes little reading ahead.
const NARROW: i32 = 4096;
/// Usual size of a pipe, in bytes.
const WIDE: i32 = 64 * 1024;

/// Pipe from a spool to commands.
pub(super) struct Feeder {
    /// Token of the pipe in the poller.
    token: Token,
    /// Read end. Commands keep it while they run.
    reader: Arc<OwnedFd>,
    /// Write end; none after the last byte.
    writer: Option<io::PipeWriter>,
    /// Position in the input up to which bytes were written.
    written: u64,
    is_wide: bool,
    /// True if the poller reports room in the pipe.
    is_watched: bool,
}

/// State of a pipe after writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeederState {
    /// No command reads at present, or no bytes are left to write.
    Idle,
    /// The pipe is full.
    Full,
    /// All available bytes were written.
    Dry,
}

impl Feeder {
    /// Creates an empty pipe that begins at a position of the input.
    pub(super) fn new(token: Token, at: u64) -> io::Result<Self> {
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

    /// Returns the read end.
    pub(super) fn reader(&self) -> Arc<OwnedFd> {
        self.reader.clone()
    }

    /// True if the pipe has this token.
    pub(super) fn is(&self, token: Token) -> bool {
        self.token == token
    }

    /// True if a command holds the read end.
    pub(super) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.reader) > 1
    }

    /// Returns the position up to which commands have read.
    pub(super) fn read_up_to(&self) -> u64 {
        let unread = sys::unread(self.reader.as_fd()).unwrap_or(0);
        self.written.saturating_sub(unread as u64)
    }

    /// Enlarges the pipe, for a command that has read everything written so far.
    pub(super) fn widen(&mut self) {
        if !std::mem::replace(&mut self.is_wide, true) {
            self.resize(true);
        }
    }

    /// Writes as much as fits, by means of a buffer, and polls for more room if the pipe is full.
    pub(super) fn push(
        &mut self,
        log: &SpillingLog,
        is_all: bool,
        block: &mut [u8],
        poller: &mut Poller,
    ) -> io::Result<FeederState> {
        let fed = if self.is_in_use() { self.write(log, block)? } else { FeederState::Idle };
        let watched = fed == FeederState::Full;
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
        if fed == FeederState::Dry && is_all {
            self.writer = None; // readers see the end of the input
            return Ok(FeederState::Idle);
        }
        Ok(fed)
    }

    fn write(&mut self, log: &SpillingLog, block: &mut [u8]) -> io::Result<FeederState> {
        let Some(writer) = &mut self.writer else { return Ok(FeederState::Idle) };
        loop {
            let count = log.read(self.written, block)?;
            if count == 0 {
                return Ok(FeederState::Dry);
            }
            match writer.write(&block[..count]) {
                Ok(count) => self.written += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(FeederState::Full);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the pipe. Its unread bytes are lost to commands that still hold the read end.
    pub(super) fn end(self, poller: &mut Poller) {
        if self.is_watched
            && let Some(writer) = &self.writer
        {
            poller.remove(writer.as_fd());
        }
    }
}
