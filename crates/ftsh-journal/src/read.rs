//! Reading of a journal: the valid part, and the reason to refuse the rest.

use std::time::Duration;

use thiserror::Error;

use super::beginning::Beginning;
use super::entry::{FrameHead, JournalEntry, Over};
use super::frame::{self, FileStart, FrameIter};
use super::started::Started;
use super::tail;
use ftsh_machine::Time;

/// Journal read from a file.
#[derive(Debug)]
pub struct Journal {
    /// Id of the run.
    pub run: u64,
    /// Inputs of the run.
    pub beginning: Beginning,
    /// Starts of the run, the first one first.
    pub starts: Vec<Started>,
    /// Suspension by the last start, if the run is suspended.
    pub suspended: Option<Suspended>,
    /// End of the run, if known.
    pub over: Option<Over>,
    /// Set when the end of the run was reported to the user.
    pub reported: bool,
    /// Number of effects that each start began, the first start first.
    pub(super) begun: Vec<u64>,
    /// Number of whole frames, and the end of the last one.
    pub(super) frames: u64,
    pub(super) end: usize,
    /// Bytes of the file. Millions of decoded entries take several times as much memory, so each
    /// pass decodes them again.
    bytes: Vec<u8>,
}

/// Suspension of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspended {
    /// Moment of the suspension.
    pub at: Time,
    /// Signal that suspended the run, or `None` for a deadline.
    pub signal: Option<i32>,
}

/// Reason to refuse a file.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// File without a run.
    #[error("it holds no run yet")]
    Empty,
    /// File of another kind.
    #[error("it is not a journal of ftsh")]
    NoJournal,
    /// Journal in another format.
    #[error("it was written by another version of ftsh, whose journals this one can't read")]
    OtherFormat,
    /// Journal with a changed part.
    #[error(
        "it is damaged at byte {0}: what was written there is lost, and what follows means nothing"
    )]
    Damaged(usize),
    /// Journal with a missing part. The bytes before the gap are a valid journal.
    #[error(
        "it has a gap at byte {0}, as copies have that are made while something is recorded: what is \
         behind it isn't all there"
    )]
    Gap(usize),
    /// Journal too large for the available memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

/// Error for a journal too large for the available memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is too little memory for what it holds (see `ulimit -v`)")]
pub struct NoMemory;

impl NoMemory {
    /// Returns an error unless `bytes` more bytes of memory are available.
    pub(super) fn unless(bytes: usize) -> Result<(), Self> {
        // Small allocations either succeed or the shell cannot continue anyway.
        let is_large = bytes > 64 * 1024;
        if is_large { Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Self) } else { Ok(()) }
    }
}

/// Reads a copy of the bytes of a file, as [`Journal::of`] does.
pub fn read(bytes: &[u8]) -> Result<Journal, Unreadable> {
    Journal::of(bytes.to_vec())
}

impl Journal {
    /// Reads the bytes of a file.
    ///
    /// An incomplete last frame is ignored: nothing was performed because of its entries.
    pub fn of(mut bytes: Vec<u8>) -> Result<Self, Unreadable> {
        let run = match frame::start(&bytes) {
            FileStart::Run(run) => run,
            FileStart::Empty => return Err(Unreadable::Empty),
            FileStart::OtherFormat => return Err(Unreadable::OtherFormat),
            FileStart::Other => return Err(Unreadable::NoJournal),
        };
        let mut frames = FrameIter::of(&bytes, run);
        let (mut beginning, mut seen, mut last) =
            (None, EntrySummary::default(), None::<FrameHead>);
        let mut version = None;
        for content in &mut frames {
            let damaged = |_| Unreadable::Damaged(content.start);
            NoMemory::unless(content.len())?;
            let (head, rest) =
                postcard::take_from_bytes::<FrameHead>(&bytes[content.clone()]).map_err(damaged)?;
            if head.number != last.map_or(0, |last| last.number + 1) {
                return Err(Unreadable::Damaged(content.start));
            }
            last = Some(head);
            let behavior = *version.get_or_insert_with(|| behavior(rest));
            // The types of entries change with the behavior.
            let unknown = |error| match behavior {
                Some(super::BEHAVIOR) | None => damaged(error),
                Some(_) => Unreadable::OtherFormat,
            };
            for entry in Entries(rest) {
                match (entry.map_err(unknown)?, &beginning) {
                    (JournalEntry::Began(began), None) => beginning = Some(*began),
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
        let EntrySummary { starts, suspended, over, reported, mut begun, effects, .. } = seen;
        begun.push(effects.unwrap_or(u64::MAX));
        let frames = last.number + 1;
        Ok(Self { run, beginning, starts, suspended, over, reported, begun, frames, end, bytes })
    }

    /// Returns the entries after the beginning.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<JournalEntry, NoMemory>> {
        let entries = self.contents().flat_map(|content| {
            let trouble = NoMemory::unless(content.len()).err();
            let rest = match postcard::take_from_bytes::<FrameHead>(content) {
                Ok((_, rest)) if trouble.is_none() => rest,
                _ => &[],
            };
            // Decoding cannot fail, because [`Journal::of`] has decoded each entry before.
            Entries(rest).map_while(Result::ok).map(Ok).chain(trouble.map(Err))
        });
        entries.filter(|entry| !matches!(entry, Ok(JournalEntry::Began(_))))
    }

    /// Returns the heads of all frames, each with a checksum of the effects.
    pub(super) fn checks(&self) -> impl Iterator<Item = FrameHead> {
        self.contents().map_while(|content| postcard::from_bytes(content).ok())
    }

    fn contents(&self) -> impl Iterator<Item = &[u8]> {
        FrameIter::of(&self.bytes, self.run).map(|content| &self.bytes[content])
    }
}

/// Returns the behavior of the machine, the first field of the first entry in a journal.
fn behavior(entries: &[u8]) -> Option<u32> {
    let ((variant, behavior), _) = postcard::take_from_bytes::<(u32, u32)>(entries).ok()?;
    (variant == 0).then_some(behavior)
}

/// Iterator over the entries of a frame.
pub(super) struct Entries<'a>(pub &'a [u8]);

impl Iterator for Entries<'_> {
    type Item = postcard::Result<JournalEntry>;

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

/// Summary of the entries read so far.
#[derive(Default)]
struct EntrySummary {
    now: Time,
    starts: Vec<Started>,
    suspended: Option<Suspended>,
    over: Option<Over>,
    reported: bool,
    /// Number of effects that each earlier start began.
    begun: Vec<u64>,
    /// Number of effects that the present start began, if suspended.
    effects: Option<u64>,
}

impl EntrySummary {
    fn add(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Delivered { later, .. } => {
                self.now = self.now + Duration::from_nanos(later);
                // A later delivery means: the program that was to replace the shell failed to
                // start.
                self.over = None;
            }
            JournalEntry::Started(started) => {
                self.starts.push(*started);
                self.suspended = None;
                self.begun.push(self.effects.take().unwrap_or(u64::MAX));
            }
            JournalEntry::Suspended { later, effects, signal } => {
                let at = self.now + Duration::from_nanos(later);
                self.suspended = Some(Suspended { at, signal });
                self.effects = Some(effects);
            }
            JournalEntry::Over(over) => self.over = Some(over),
            JournalEntry::Reported => self.reported = true,
            JournalEntry::Began(_)
            | JournalEntry::Noted { .. }
            | JournalEntry::Written { .. }
            | JournalEntry::Position { .. }
            | JournalEntry::Outlived { .. } => {}
        }
    }
}
