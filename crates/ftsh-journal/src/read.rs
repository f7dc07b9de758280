//! Reading a journal: what of it holds, and what doesn't.

use std::time::Duration;

use thiserror::Error;

use super::beginning::Beginning;
use super::entry::{Entry, Head, Over};
use super::frame::{self, Frames, Start};
use super::started::Started;
use super::tail;
use ftsh_machine::Time;

/// A journal that was read.
#[derive(Debug)]
pub struct Journal {
    /// Tells the run from others.
    pub run: u64,
    /// What it began with.
    pub beginning: Beginning,
    /// The processes that it was in, the first one first.
    pub starts: Vec<Started>,
    /// Why it was left by the last of them to the next, if it was.
    pub suspended: Option<Suspended>,
    /// How it ended, if that is known.
    pub over: Option<Over>,
    /// Whether the end was told to whoever started it.
    pub reported: bool,
    /// How many effects the drivers of each start were asked for, the first one first.
    pub(super) begun: Vec<u64>,
    /// How many whole frames there are, and where the last one ends.
    pub(super) frames: u64,
    pub(super) end: usize,
    /// All of it: what millions of entries hold takes several times as much, so they are read again and again.
    bytes: Vec<u8>,
}

/// How a run was left to be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// When.
    pub at: Time,
    /// By this signal, or because of a deadline.
    pub signal: Option<i32>,
}

/// Why there is nothing to be had of a file.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Nothing was told of a run.
    #[error("it holds no run yet")]
    Empty,
    /// It is something else.
    #[error("it is no journal")]
    NoJournal,
    /// It is of another version.
    #[error("it was written by another version of ftsh, whose journals this one can't read")]
    OtherFormat,
    /// A part of it isn't what was written.
    #[error(
        "it is damaged at byte {0}: what was written there is lost, and what follows means nothing"
    )]
    Damaged(usize),
    /// A part of it is missing. Up to there it is a run like any other.
    #[error(
        "it has a gap at byte {0}, as copies have that are made while something is recorded: what is \
         behind it isn't all there"
    )]
    Gap(usize),
    /// It can't be looked at here.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

/// What a journal holds may be more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is too little memory for what it holds (see `ulimit -v`)")]
pub struct NoMemory;

impl NoMemory {
    /// An error unless there is room for so many bytes more.
    pub(super) fn unless(bytes: usize) -> Result<(), Self> {
        // What is smaller is there, or the shell is at its end anyway.
        let is_large = bytes > 64 * 1024;
        if is_large { Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Self) } else { Ok(()) }
    }
}

/// Reads a copy of the bytes of a file, as [`Journal::of`].
pub fn read(bytes: &[u8]) -> Result<Journal, Unreadable> {
    Journal::of(bytes.to_vec())
}

impl Journal {
    /// Reads the bytes of a file. A last part that wasn't written to its end counts for nothing: nothing was
    /// done because of it.
    pub fn of(mut bytes: Vec<u8>) -> Result<Self, Unreadable> {
        let run = match frame::start(&bytes) {
            Start::Run(run) => run,
            Start::Empty => return Err(Unreadable::Empty),
            Start::OtherFormat => return Err(Unreadable::OtherFormat),
            Start::Other => return Err(Unreadable::NoJournal),
        };
        let mut frames = Frames::of(&bytes, run);
        let (mut beginning, mut seen, mut last) = (None, Seen::default(), None::<Head>);
        for content in &mut frames {
            let damaged = |_| Unreadable::Damaged(content.start);
            NoMemory::unless(content.len())?;
            let (head, rest) =
                postcard::take_from_bytes::<Head>(&bytes[content.clone()]).map_err(damaged)?;
            if head.number != last.map_or(0, |last| last.number + 1) {
                return Err(Unreadable::Damaged(content.start));
            }
            last = Some(head);
            for entry in Entries(rest) {
                match (entry.map_err(damaged)?, &beginning) {
                    (Entry::Began(began), None) => beginning = Some(*began),
                    (_, None) => return Err(Unreadable::Damaged(frame::HEADER)),
                    (entry, Some(_)) => seen.add(entry),
                }
            }
        }
        let end = frames.end();
        if let Some(later) = tail::later(&bytes, run, end, last) {
            let has_hole = tail::has_hole(&bytes, end..later);
            return Err(if has_hole { Unreadable::Gap(end) } else { Unreadable::Damaged(end) });
        }
        let (Some(beginning), Some(last)) = (beginning, last) else {
            return Err(Unreadable::Empty);
        };
        bytes.truncate(end);
        let Seen { starts, suspended, over, reported, mut begun, effects, .. } = seen;
        begun.push(effects.unwrap_or(u64::MAX));
        let frames = last.number + 1;
        Ok(Self { run, beginning, starts, suspended, over, reported, begun, frames, end, bytes })
    }

    /// What happened, after the beginning.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry, NoMemory>> {
        let entries = self.contents().flat_map(|content| {
            let trouble = NoMemory::unless(content.len()).err();
            let rest = match postcard::take_from_bytes::<Head>(content) {
                Ok((_, rest)) if trouble.is_none() => rest,
                _ => &[],
            };
            // Each has been read before.
            Entries(rest).map_while(Result::ok).map(Ok).chain(trouble.map(Err))
        });
        entries.filter(|entry| !matches!(entry, Ok(Entry::Began(_))))
    }

    /// What the effects came to, again and again.
    pub(super) fn checks(&self) -> impl Iterator<Item = Head> {
        self.contents().map_while(|content| postcard::from_bytes(content).ok())
    }

    fn contents(&self) -> impl Iterator<Item = &[u8]> {
        Frames::of(&self.bytes, self.run).map(|content| &self.bytes[content])
    }
}

/// What a frame holds after its head, one after the other.
pub(super) struct Entries<'a>(pub &'a [u8]);

impl Iterator for Entries<'_> {
    type Item = postcard::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() {
            return None;
        }
        let read = postcard::take_from_bytes(rest);
        Some(read.map(|(entry, more)| {
            self.0 = more;
            entry
        }))
    }
}

/// How far a run has come.
#[derive(Default)]
struct Seen {
    now: Time,
    starts: Vec<Started>,
    suspended: Option<Suspended>,
    over: Option<Over>,
    reported: bool,
    /// How many effects the drivers of the starts before this one were asked for.
    begun: Vec<u64>,
    /// The same of this one, if it was suspended.
    effects: Option<u64>,
}

impl Seen {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Told { later, .. } => {
                self.now = self.now + Duration::from_nanos(later);
                // What was to take the shell's place couldn't be started.
                self.over = None;
            }
            Entry::Started(started) => {
                self.starts.push(*started);
                self.suspended = None;
                self.begun.push(self.effects.take().unwrap_or(u64::MAX));
            }
            Entry::Suspended { later, effects, signal } => {
                let at = self.now + Duration::from_nanos(later);
                self.suspended = Some(Suspended { at, signal });
                self.effects = Some(effects);
            }
            Entry::Over(over) => self.over = Some(over),
            Entry::Reported => self.reported = true,
            Entry::Began(_)
            | Entry::Noted { .. }
            | Entry::Written { .. }
            | Entry::Position { .. }
            | Entry::Outlived { .. } => {}
        }
    }
}
