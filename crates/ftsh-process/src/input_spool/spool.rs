//! One recorded input and its readers: nested attempts, each with its own position, and the script
//! around them.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;

use super::feeder::{Feeder, FeederState};
use super::source::{SpoolSource, read_now};
use crate::buffers::{FileBuffer, SpillingLog};
use crate::descriptors::Fd;
use crate::events::{Poller, Token};
use ftsh_machine::effect::SpoolId;

/// Maximum number of bytes read in advance for a program that replaces the shell.
const MAX_READ_AHEAD: u64 = 1024 * 1024;

/// Remaining input for a program that replaces the shell.
pub(super) struct RemainingInput {
    /// Recorded bytes, to be read first.
    pub ahead: Fd,
    /// Input to be read afterwards, unless it has ended.
    pub source: Option<Fd>,
}

/// Input that is recorded while it is read.
pub(super) struct Spool {
    /// Token of the source in the poller.
    token: Token,
    pub source: SpoolSource,
    log: SpillingLog,
    /// Set at the end of the input or after an error.
    has_ended: bool,
    /// Source, while it is polled.
    watched: Option<Fd>,
    /// Reader outside all attempts.
    root: SpoolReader,
    attempts: HashMap<SpoolId, SpoolAttempt>,
}

/// Reader of the input.
#[derive(Default)]
struct SpoolReader {
    /// Position while the reader has no pipe.
    at: u64,
    feeder: Option<Feeder>,
}

struct SpoolAttempt {
    /// Innermost enclosing attempt that reads this input.
    around: Option<SpoolId>,
    /// Position at its beginning.
    start: u64,
    reader: SpoolReader,
    is_kept: bool,
}

impl SpoolReader {
    fn place(&self) -> u64 {
        self.feeder.as_ref().map_or(self.at, Feeder::read_up_to)
    }

    /// Moves to a position. Commands keep the old pipe.
    fn go_to(&mut self, place: u64, poller: &mut Poller) {
        if let Some(feeder) = self.feeder.take() {
            feeder.end(poller);
        }
        self.at = place;
    }
}

impl Spool {
    /// Creates the recording of an input of which nothing was read.
    pub(super) fn new(token: Token, source: SpoolSource) -> Self {
        Self {
            token,
            source,
            log: SpillingLog::default(),
            has_ended: false,
            watched: None,
            root: SpoolReader::default(),
            attempts: HashMap::new(),
        }
    }

    fn reader(&mut self, replay: Option<SpoolId>) -> &mut SpoolReader {
        match replay.and_then(|id| self.attempts.get_mut(&id)) {
            Some(attempt) => &mut attempt.reader,
            None => &mut self.root,
        }
    }

    /// Returns the innermost of these attempts that reads this input.
    fn innermost(&self, replays: &[SpoolId]) -> Option<SpoolId> {
        replays.iter().rev().copied().find(|id| self.attempts.contains_key(id))
    }

    /// Begins an attempt inside others, at the position of the enclosing reader.
    pub(super) fn begin(&mut self, replay: SpoolId, inside: &[SpoolId], poller: &mut Poller) {
        let around = self.innermost(inside);
        let outer = self.reader(around);
        let start = outer.place();
        outer.go_to(start, poller);
        let reader = SpoolReader { at: start, feeder: None };
        self.attempts.insert(replay, SpoolAttempt { around, start, reader, is_kept: false });
    }

    /// Begins the next attempt, at the position of the first.
    pub(super) fn rewind(&mut self, replay: SpoolId, poller: &mut Poller) {
        if let Some(attempt) = self.attempts.get_mut(&replay) {
            attempt.is_kept = false;
            attempt.reader.go_to(attempt.start, poller);
        }
    }

    /// Moves the enclosing reader to the position of a successful attempt.
    pub(super) fn keep(&mut self, replay: SpoolId, poller: &mut Poller) {
        let Some(attempt) = self.attempts.get_mut(&replay) else { return };
        let (place, around) = (attempt.reader.place(), attempt.around);
        attempt.is_kept = true;
        attempt.reader.go_to(place, poller);
        self.reader(around).go_to(place, poller);
    }

    /// Ends the attempts. Unless one was kept, the enclosing reader returns to their beginning.
    pub(super) fn drop(&mut self, replay: SpoolId, poller: &mut Poller) {
        let Some(mut attempt) = self.attempts.remove(&replay) else { return };
        attempt.reader.go_to(attempt.start, poller);
        if !attempt.is_kept {
            self.reader(attempt.around).go_to(attempt.start, poller);
        }
        self.drop_unneeded();
    }

    /// Returns the pipe for commands inside these attempts; none if they read the source itself,
    /// since all recorded bytes are consumed.
    pub(super) fn connect(
        &mut self,
        inside: &[SpoolId],
        token: Token,
        poller: &mut Poller,
    ) -> io::Result<Option<Fd>> {
        let innermost = self.innermost(inside);
        let end = self.log.end();
        let reader = self.reader(innermost);
        if innermost.is_none() && reader.place() >= end {
            let is_in_use = reader.feeder.as_ref().is_some_and(Feeder::is_in_use);
            if !is_in_use {
                reader.go_to(end, poller);
                return Ok(None);
            }
        }
        let feeder = match &mut reader.feeder {
            Some(feeder) => feeder,
            none => none.insert(Feeder::new(token, reader.at)?),
        };
        Ok(Some(Fd::Owned(feeder.reader())))
    }

    /// Returns all recorded bytes for commands inside these attempts, as a file, and the source if
    /// more may follow; none if no recorded bytes are left.
    pub(super) fn rest(
        &mut self,
        inside: &[SpoolId],
        block: &mut [u8],
    ) -> io::Result<Option<RemainingInput>> {
        let innermost = self.innermost(inside);
        let mut place = self.reader(innermost).place();
        if place >= self.log.end() {
            return Ok(None);
        }
        while !self.has_ended {
            match self.source.fd().map(|fd| read_now(&fd, block)) {
                Some(Ok(0)) | None => self.has_ended = true,
                Some(Ok(count)) => self.log.append(&block[..count]),
                Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Some(Err(error)) => return Err(error),
            }
            if self.log.end() - place > MAX_READ_AHEAD {
                break;
            }
        }
        let rest = FileBuffer::large()?;
        loop {
            match self.log.read(place, block)? {
                0 => {
                    let ahead = Fd::Reader(Arc::new(rest.reader()?));
                    let source = if self.has_ended { None } else { self.source.fd() };
                    return Ok(Some(RemainingInput { ahead, source }));
                }
                count => {
                    rest.append(&block[..count])?;
                    place += count as u64;
                }
            }
        }
    }

    /// True if a reader inside these attempts would find the end of the input; none if only the
    /// source can show.
    pub(super) fn has_ended(&mut self, inside: &[SpoolId]) -> Option<bool> {
        let (end, has_ended) = (self.log.end(), self.has_ended);
        let innermost = self.innermost(inside);
        if self.reader(innermost).place() < end { Some(false) } else { has_ended.then_some(true) }
    }

    /// True if the recording is no longer needed: its bytes are consumed, or no command can read
    /// them.
    pub(super) fn is_over(&mut self) -> bool {
        let is_in_use = self.root.feeder.as_ref().is_some_and(Feeder::is_in_use);
        let is_read = self.root.place() >= self.log.end();
        !is_in_use && self.attempts.is_empty() && (is_read || self.source.fd().is_none())
    }

    /// Stops polling and ends the pipe.
    pub(super) fn end(&mut self, poller: &mut Poller) {
        self.watch(false, poller);
        self.root.go_to(0, poller);
    }

    /// True if the token belongs to this input.
    pub(super) fn has_token(&self, token: Token) -> bool {
        let mut readers = self.attempts.values().map(|it| &it.reader).chain([&self.root]);
        let feeds =
            |reader: &SpoolReader| reader.feeder.as_ref().is_some_and(|feeder| feeder.is(token));
        self.token == token || readers.any(feeds)
    }

    /// Handles available input or room in a pipe. Fails if the input ends early.
    pub(super) fn handle_event(
        &mut self,
        token: Token,
        block: &mut [u8],
        poller: &mut Poller,
    ) -> io::Result<()> {
        let mut result = Ok(());
        if self.token == token {
            result = self.read(block);
        } else {
            let readers = self.attempts.values_mut().map(|it| &mut it.reader);
            let feeds = readers.chain([&mut self.root]).filter_map(|it| it.feeder.as_mut());
            feeds.filter(|feeder| feeder.is(token)).for_each(Feeder::widen);
        }
        self.feeder(block, poller);
        result
    }

    fn read(&mut self, block: &mut [u8]) -> io::Result<()> {
        let Some(fd) = &self.watched else { return Ok(()) };
        match read_now(fd, block) {
            Ok(0) => self.has_ended = true,
            Ok(count) => self.log.append(&block[..count]),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                self.has_ended = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes available bytes into the pipes, and polls the source if a reader wants more.
    pub(super) fn feeder(&mut self, block: &mut [u8], poller: &mut Poller) {
        let mut wants_more = false;
        let readers = self.attempts.values_mut().map(|it| &mut it.reader);
        for reader in readers.chain([&mut self.root]) {
            let Some(feeder) = &mut reader.feeder else { continue };
            match feeder.push(&self.log, self.has_ended, block, poller) {
                Ok(state) => wants_more |= state == FeederState::Dry,
                Err(_) => {
                    let place = feeder.read_up_to();
                    reader.go_to(place, poller);
                }
            }
        }
        self.watch(wants_more, poller);
        self.drop_unneeded();
    }

    fn watch(&mut self, wanted: bool, poller: &mut Poller) {
        match (&self.watched, wanted) {
            (None, true) => {
                self.watched = self.source.fd();
                match &self.watched {
                    Some(fd) if poller.add(fd.as_fd(), self.token).is_ok() => {}
                    _ => (self.watched, self.has_ended) = (None, true),
                }
            }
            (Some(fd), false) => {
                poller.remove(fd.as_fd());
                self.watched = None;
            }
            _ => {}
        }
    }

    /// Drops bytes before every position that is still needed.
    fn drop_unneeded(&mut self) {
        let starts = self.attempts.values().map(|it| it.start);
        let needed = starts.chain([self.root.place()]).min();
        self.log.forget_before(needed.unwrap_or_default());
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
