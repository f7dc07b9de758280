//! One input, and all who read it: attempts inside attempts, each from a place of its own, and the script
//! around them.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;

use super::super::fds::Fd;
use super::super::fds::buffer::Buffer;
use super::super::fds::log::Log;
use super::super::os::poll::{Poller, Token};
use super::feed::{Fed, Feed};
use super::source::{self, Source};
use ftsh_machine::effect::ReplayId;

/// No more is read at once for a program that takes the shell's place.
const MOST_AT_ONCE: u64 = 1024 * 1024;

/// What a program that takes the shell's place is to read.
pub struct Rest {
    /// At first.
    pub ahead: Fd,
    /// Then, if more may come.
    pub source: Option<Fd>,
}

/// An input that is kept as it is read.
pub struct Tape {
    /// What the poller knows the source by.
    token: Token,
    pub source: Source,
    log: Log,
    /// Nothing more comes, or it can't be read any more.
    has_ended: bool,
    /// The source while the poller tells when something comes.
    watched: Option<Fd>,
    /// Who reads outside of all attempts.
    root: Reader,
    attempts: HashMap<ReplayId, Attempt>,
}

/// Who reads.
#[derive(Default)]
struct Reader {
    /// The place it stands at when it has no pipe.
    at: u64,
    feed: Option<Feed>,
}

struct Attempt {
    /// The innermost one around it.
    around: Option<ReplayId>,
    /// The place it began at.
    start: u64,
    reader: Reader,
    is_kept: bool,
}

impl Reader {
    fn place(&self) -> u64 {
        self.feed.as_ref().map_or(self.at, Feed::read_up_to)
    }

    /// Goes to a place; the pipe is left to who has it.
    fn go_to(&mut self, place: u64, poller: &mut Poller) {
        if let Some(feed) = self.feed.take() {
            feed.end(poller);
        }
        self.at = place;
    }
}

impl Tape {
    /// That of an input which was never looked at.
    pub fn new(token: Token, source: Source) -> Self {
        Self {
            token,
            source,
            log: Log::default(),
            has_ended: false,
            watched: None,
            root: Reader::default(),
            attempts: HashMap::new(),
        }
    }

    fn reader(&mut self, replay: Option<ReplayId>) -> &mut Reader {
        match replay.and_then(|id| self.attempts.get_mut(&id)) {
            Some(attempt) => &mut attempt.reader,
            None => &mut self.root,
        }
    }

    /// The innermost of these that reads from here.
    fn innermost(&self, replays: &[ReplayId]) -> Option<ReplayId> {
        replays.iter().rev().copied().find(|id| self.attempts.contains_key(id))
    }

    /// An attempt begins, inside of these: where the one around it stands.
    pub fn begin(&mut self, replay: ReplayId, inside: &[ReplayId], poller: &mut Poller) {
        let around = self.innermost(inside);
        let outer = self.reader(around);
        let start = outer.place();
        outer.go_to(start, poller);
        let reader = Reader { at: start, feed: None };
        self.attempts.insert(replay, Attempt { around, start, reader, is_kept: false });
    }

    /// The next attempt begins, where the first one did.
    pub fn rewind(&mut self, replay: ReplayId, poller: &mut Poller) {
        if let Some(attempt) = self.attempts.get_mut(&replay) {
            attempt.is_kept = false;
            attempt.reader.go_to(attempt.start, poller);
        }
    }

    /// Who is around an attempt goes on where that stands.
    pub fn keep(&mut self, replay: ReplayId, poller: &mut Poller) {
        let Some(attempt) = self.attempts.get_mut(&replay) else { return };
        let (place, around) = (attempt.reader.place(), attempt.around);
        attempt.is_kept = true;
        attempt.reader.go_to(place, poller);
        self.reader(around).go_to(place, poller);
    }

    /// An attempt is over; unless it was kept, who is around it goes on where that began.
    pub fn drop(&mut self, replay: ReplayId, poller: &mut Poller) {
        let Some(mut attempt) = self.attempts.remove(&replay) else { return };
        attempt.reader.go_to(attempt.start, poller);
        if !attempt.is_kept {
            self.reader(attempt.around).go_to(attempt.start, poller);
        }
        self.forget();
    }

    /// What commands in these attempts read from: none if that is the source itself, as nothing of it was
    /// read ahead.
    pub fn connect(
        &mut self,
        inside: &[ReplayId],
        token: Token,
        poller: &mut Poller,
    ) -> io::Result<Option<Fd>> {
        let innermost = self.innermost(inside);
        let end = self.log.end();
        let reader = self.reader(innermost);
        if innermost.is_none() && reader.place() >= end {
            let is_in_use = reader.feed.as_ref().is_some_and(Feed::is_in_use);
            if !is_in_use {
                reader.go_to(end, poller);
                return Ok(None);
            }
        }
        let feed = match &mut reader.feed {
            Some(feed) => feed,
            none => none.insert(Feed::new(token, reader.at)?),
        };
        Ok(Some(Fd::Owned(feed.reader())))
    }

    /// All that was read ahead for commands in these attempts, as a file, and the source if more may come from
    /// that; none if nothing was read ahead.
    pub fn rest(&mut self, inside: &[ReplayId], block: &mut [u8]) -> io::Result<Option<Rest>> {
        let innermost = self.innermost(inside);
        let mut place = self.reader(innermost).place();
        if place >= self.log.end() {
            return Ok(None);
        }
        while !self.has_ended {
            match self.source.fd().map(|fd| source::read_now(&fd, block)) {
                Some(Ok(0)) | None => self.has_ended = true,
                Some(Ok(count)) => self.log.append(&block[..count]),
                Some(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => break,
                Some(Err(error)) => return Err(error),
            }
            if self.log.end() - place > MOST_AT_ONCE {
                break;
            }
        }
        let rest = Buffer::large()?;
        loop {
            match self.log.read(place, block)? {
                0 => {
                    let ahead = Fd::Reader(Arc::new(rest.reader()?));
                    let source = if self.has_ended { None } else { self.source.fd() };
                    return Ok(Some(Rest { ahead, source }));
                }
                count => {
                    rest.append(&block[..count])?;
                    place += count as u64;
                }
            }
        }
    }

    /// Whether who reads in these attempts finds nothing more; none if only the source itself can say.
    pub fn has_ended(&mut self, inside: &[ReplayId]) -> Option<bool> {
        let (end, has_ended) = (self.log.end(), self.has_ended);
        let innermost = self.innermost(inside);
        if self.reader(innermost).place() < end { Some(false) } else { has_ended.then_some(true) }
    }

    /// Whether nobody needs it any more: what was read ahead is read, or nobody can read it.
    pub fn is_over(&mut self) -> bool {
        let is_in_use = self.root.feed.as_ref().is_some_and(Feed::is_in_use);
        let is_read = self.root.place() >= self.log.end();
        !is_in_use && self.attempts.is_empty() && (is_read || self.source.fd().is_none())
    }

    /// Ends it.
    pub fn end(&mut self, poller: &mut Poller) {
        self.watch(false, poller);
        self.root.go_to(0, poller);
    }

    /// Whether the poller means this one.
    pub fn is_meant(&self, token: Token) -> bool {
        let mut readers = self.attempts.values().map(|it| &it.reader).chain([&self.root]);
        let feeds = |reader: &Reader| reader.feed.as_ref().is_some_and(|feed| feed.is(token));
        self.token == token || readers.any(feeds)
    }

    /// Something has come, or there is room in a pipe. An error is an end that isn't that of the input.
    pub fn go_on(&mut self, token: Token, block: &mut [u8], poller: &mut Poller) -> io::Result<()> {
        let mut result = Ok(());
        if self.token == token {
            result = self.read(block);
        } else {
            let readers = self.attempts.values_mut().map(|it| &mut it.reader);
            let feeds = readers.chain([&mut self.root]).filter_map(|it| it.feed.as_mut());
            feeds.filter(|feed| feed.is(token)).for_each(Feed::widen);
        }
        self.feed(block, poller);
        result
    }

    fn read(&mut self, block: &mut [u8]) -> io::Result<()> {
        let Some(fd) = &self.watched else { return Ok(()) };
        match source::read_now(fd, block) {
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

    /// Gives those who read what there is, and asks for more if they want it.
    pub fn feed(&mut self, block: &mut [u8], poller: &mut Poller) {
        let mut wants_more = false;
        let readers = self.attempts.values_mut().map(|it| &mut it.reader);
        for reader in readers.chain([&mut self.root]) {
            let Some(feed) = &mut reader.feed else { continue };
            match feed.push(&self.log, self.has_ended, block, poller) {
                Ok(state) => wants_more |= state == Fed::Dry,
                Err(_) => {
                    let place = feed.read_up_to();
                    reader.go_to(place, poller);
                }
            }
        }
        self.watch(wants_more, poller);
        self.forget();
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

    /// Forgets what nobody can go back to.
    fn forget(&mut self) {
        let starts = self.attempts.values().map(|it| it.start);
        let needed = starts.chain([self.root.place()]).min();
        self.log.forget_before(needed.unwrap_or_default());
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
