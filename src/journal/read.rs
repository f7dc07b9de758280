//! Reading a journal: what of it holds, and what doesn't.

use std::collections::VecDeque;
use std::time::Duration;

use thiserror::Error;

use super::beginning::Beginning;
use super::behind;
use super::entry::{Entry, Head, Over};
use super::frame::{self, Frames, Start};
use super::started::Started;
use crate::machine::Time;

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
    /// What happened.
    pub(super) entries: Vec<Entry>,
    /// What the effects came to, again and again.
    pub(super) checks: VecDeque<Head>,
    /// The head of the last whole frame, and where that ends.
    pub(super) last: Head,
    pub(super) end: usize,
    /// How many there are.
    pub(super) frames: u64,
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
}

/// Reads the bytes of a file. A last part that wasn't written to its end counts for nothing: nothing was
/// done because of it.
pub fn read(bytes: &[u8]) -> Result<Journal, Unreadable> {
    let run = match frame::start(bytes) {
        Start::Run(run) => run,
        Start::Empty => return Err(Unreadable::Empty),
        Start::OtherFormat => return Err(Unreadable::OtherFormat),
        Start::Other => return Err(Unreadable::NoJournal),
    };
    let mut frames = Frames::of(bytes, run);
    let (mut entries, mut checks) = (Vec::new(), VecDeque::new());
    for content in &mut frames {
        let damaged = |_| Unreadable::Damaged(content.start);
        let (head, mut rest) =
            postcard::take_from_bytes::<Head>(&bytes[content.clone()]).map_err(damaged)?;
        if head.number != checks.len() as u64 {
            return Err(Unreadable::Damaged(content.start));
        }
        while !rest.is_empty() {
            let (entry, more) = postcard::take_from_bytes(rest).map_err(damaged)?;
            entries.push(entry);
            rest = more;
        }
        checks.push_back(head);
    }
    let (end, count) = (frames.end(), checks.len() as u64);
    if behind::later(bytes, run, end, checks.back().copied()).is_some() {
        return Err(Unreadable::Damaged(end));
    }
    let Some(last) = checks.back().copied().filter(|_| !entries.is_empty()) else {
        return Err(Unreadable::Empty);
    };
    let Entry::Began(beginning) = entries.remove(0) else {
        return Err(Unreadable::Damaged(frame::HEADER));
    };
    let mut journal = Journal {
        run,
        beginning: *beginning,
        starts: Vec::new(),
        suspended: None,
        over: None,
        reported: false,
        entries,
        checks,
        last,
        end,
        frames: count,
    };
    journal.look();
    Ok(journal)
}

impl Journal {
    /// Finds out how far the run has come.
    fn look(&mut self) {
        let mut now = Time::START;
        for entry in &self.entries {
            match entry {
                Entry::Told { later, .. } => {
                    now = now + Duration::from_nanos(*later);
                    // What was to take the shell's place couldn't be started.
                    self.over = None;
                }
                Entry::Started(started) => {
                    self.starts.push((**started).clone());
                    self.suspended = None;
                }
                Entry::Suspended { later, signal, .. } => {
                    let at = now + Duration::from_nanos(*later);
                    self.suspended = Some(Suspended { at, signal: *signal });
                }
                Entry::Over(over) => self.over = Some(*over),
                Entry::Reported => self.reported = true,
                Entry::Began(_)
                | Entry::Noted { .. }
                | Entry::Written { .. }
                | Entry::Position { .. }
                | Entry::Outlived { .. } => {}
            }
        }
    }
}
