//! Reading a journal: what of it holds, and what doesn't.

use std::collections::VecDeque;

use thiserror::Error;

use super::beginning::Beginning;
use super::entry::{Entry, Head, Over};
use super::frame::{self, Start};

/// A journal that was read.
#[derive(Debug)]
pub struct Journal {
    /// Tells the run from others.
    pub run: u64,
    /// What it began with.
    pub beginning: Beginning,
    /// How it ended, if that is known.
    pub over: Option<Over>,
    /// What happened.
    pub(super) entries: Vec<Entry>,
    /// What the effects came to, again and again.
    pub(super) checks: VecDeque<Head>,
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
    let frames = frame::frames(bytes, run).map_err(Unreadable::Damaged)?;
    let (mut entries, mut checks) = (Vec::new(), VecDeque::new());
    for (number, content) in frames.into_iter().enumerate() {
        let damaged = |_| Unreadable::Damaged(content.start);
        let (head, mut rest) =
            postcard::take_from_bytes::<Head>(&bytes[content.clone()]).map_err(damaged)?;
        if head.number != number as u64 {
            return Err(Unreadable::Damaged(content.start));
        }
        while !rest.is_empty() {
            let (entry, more) = postcard::take_from_bytes(rest).map_err(damaged)?;
            entries.push(entry);
            rest = more;
        }
        checks.push_back(head);
    }
    let over = match entries.last() {
        Some(Entry::Over(over)) => Some(*over),
        _ => None,
    };
    if entries.is_empty() {
        return Err(Unreadable::Empty);
    }
    let Entry::Began(beginning) = entries.remove(0) else {
        return Err(Unreadable::Damaged(frame::HEADER));
    };
    Ok(Journal { run, beginning: *beginning, over, entries, checks })
}
