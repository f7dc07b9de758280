//! Writing of a journal: pending entries, and the moments at which they must reach the disk.

use std::io::{self, ErrorKind};
use std::mem;
use std::time::Duration;

use postcard::ser_flavors::Flavor;
use postcard::serialize_with_flavor;
use serde::Serialize;

use super::beginning::Beginning;
use super::digest::Digest;
use super::entry::{Delivered, FrameHead, JournalEntry, Noted};
use super::fd_graph::Reading;
use super::frame;
use super::known::{DueQueries, RecordedState};
use super::last::LastFrame;
use super::read::{Journal, NoMemory};
use super::replay::ReplayResult;
use super::started::Started;
use super::store::Store;
use ftsh_machine::driver::BufferPart;
use ftsh_machine::effect::{Access, BufferId, Effect, FdSource, Query};
use ftsh_machine::event::Suspension;
use ftsh_machine::record::LogRecord;
use ftsh_machine::{Event, Outcome, Time};

/// Number of bytes preallocated at once, to write frames without a change of the file's metadata.
const ROOM: usize = 64 * 1024;
/// Number of pending bytes that triggers a commit.
const MAX_PENDING: usize = 64 * 1024;
/// Largest content of one entry, in bytes.
const MAX_ENTRY: usize = 1024 * 1024;
/// Delay of a commit, to batch events that follow one another.
const BATCH_DELAY: Duration = Duration::from_millis(2);
/// Delay of a commit of entries that are not urgent, for readers of the journal.
const IDLE_DELAY: Duration = Duration::from_secs(1);

/// Writer of a journal.
pub struct Writer<S> {
    store: S,
    run: u64,
    /// Number of written frames.
    frames: u64,
    end: u64,
    /// End of the preallocated room.
    room: u64,
    /// Encoded entries that are not written yet.
    pending: Vec<u8>,
    /// Set when pending entries must reach the disk before an external effect.
    must_commit: bool,
    /// Moment of the first pending entry that must reach the disk before a wait.
    urgent: Option<Time>,
    digest: Digest,
    /// Process id of the program that replaces the shell.
    rest: Option<u64>,
    /// Recorded state, from which further data to record follows.
    known: RecordedState,
    /// Moment of the last delivery.
    delivered_at: Time,
    /// Number of effects before the last delivery.
    effects: u64,
    /// Set when the machine waits for the next delivery.
    is_waiting: bool,
    /// Recorded lease of remote branches after the end of this process.
    outlived: Duration,
    is_broken: bool,
}

impl<S: Store> Writer<S> {
    /// Begins the journal of a new run in an empty store. The beginning is written with the first
    /// commit.
    pub fn begin(mut store: S, run: u64, beginning: Beginning) -> io::Result<Self> {
        // The header is written alone, to identify the file after any failure.
        store.write(0, &frame::header(run))?;
        store.sync()?;
        let mut writer = Self {
            store,
            run,
            frames: 0,
            end: frame::HEADER as u64,
            room: frame::HEADER as u64,
            pending: Vec::new(),
            must_commit: false,
            urgent: None,
            digest: Digest::default(),
            rest: None,
            known: RecordedState::default(),
            delivered_at: Time::START,
            effects: 0,
            is_waiting: false,
            outlived: Duration::ZERO,
            is_broken: false,
        };
        writer.push(&JournalEntry::Began(Box::new(beginning)));
        Ok(writer)
    }

    /// Resumes the journal of a run in its store. Truncates an incomplete last frame, because no
    /// frame may follow a torn one.
    pub fn resume(mut store: S, journal: &Journal, replayed: &ReplayResult) -> io::Result<Self> {
        let end = journal.end as u64;
        store.cut(end)?;
        let left = &replayed.left;
        Ok(Self {
            store,
            run: journal.run,
            frames: journal.frames,
            end,
            room: end,
            pending: Vec::new(),
            must_commit: false,
            urgent: None,
            digest: left.digest.clone(),
            rest: None,
            known: RecordedState::new(&left.alive),
            delivered_at: left.delivered_at,
            effects: left.effects,
            is_waiting: true,
            outlived: Duration::ZERO,
            is_broken: false,
        })
    }

    /// Records the start of this process.
    pub fn start(&mut self, started: Started) {
        self.push(&JournalEntry::Started(Box::new(started)));
        // The next process has to find the children of this process.
        self.must_commit = true;
    }

    /// Returns the data to query from the driver before an event is delivered.
    pub fn due(&self, event: &Event) -> DueQueries {
        self.known.due(event)
    }

    /// Returns true while staged files are being committed.
    pub fn is_committing_files(&self) -> bool {
        self.known.is_committing_files()
    }

    /// Returns true if the event is the exit of a command in an atomic attempt.
    pub fn is_in_attempt(&self, event: &Event) -> bool {
        self.known.is_in_attempt(event)
    }

    /// Returns the input that an effect makes permanently read.
    pub fn kept(&self, effect: &Effect) -> Option<Reading> {
        self.known.kept(effect)
    }

    /// Records content of a buffer, valid from the next delivery on.
    pub fn written(&mut self, buffer: BufferId, written: &BufferPart) -> io::Result<()> {
        self.known.written(buffer, written);
        let mut from = written.from;
        let mut rest = &written.bytes[..];
        loop {
            let (bytes, more) = rest.split_at(rest.len().min(MAX_ENTRY));
            // Encoding makes several copies of the content.
            NoMemory::unless(4 * bytes.len()).map_err(|_| ErrorKind::OutOfMemory)?;
            self.push(&JournalEntry::Written { buffer: buffer.0, from, bytes: bytes.into() });
            if more.is_empty() {
                return Ok(());
            }
            self.commit()?;
            from += bytes.len() as u64;
            rest = more;
        }
    }

    /// Records the position of an input, unless already recorded.
    pub fn position(&mut self, reading: &Reading, at: u64) {
        if self.known.position(reading.input, at) {
            let (io, change) = (reading.input.io.0, reading.input.change);
            self.push(&JournalEntry::Position { io, change, at });
        }
    }

    /// Records the delivery of an event, or of the time alone.
    pub fn record_delivery(&mut self, now: Time, event: Option<&Event>) -> io::Result<()> {
        let later = nanoseconds(now, self.delivered_at);
        let delivered = match event {
            None => Delivered::Time,
            Some(event) => match (event, self.known.buffer_in(event)) {
                (Event::Done { operation, .. }, Some(buffer)) => {
                    Delivered::Content { operation: *operation, buffer }
                }
                _ => Delivered::Event(event.clone()),
            },
        };
        // A start needs no record: the end of the program implies its start, and a crash loses
        // both. The program that replaces the shell is an exception.
        let is_urgent = match event {
            None => false,
            Some(Event::Spawned { process, .. }) => self.rest == Some(process.0),
            Some(_) => true,
        };
        if is_urgent {
            self.urgent.get_or_insert(now);
        }
        self.push(&JournalEntry::Delivered { later, delivered });
        if let Some(event) = event {
            self.known.on_event(event);
        }
        (self.delivered_at, self.effects) = (self.delivered_at.max(now), self.digest.count());
        (self.must_commit, self.is_waiting) = (true, false);
        // A resumption is reported at once, so its record must be on the disk.
        let is_urgent = matches!(event, Some(Event::Resumed { .. }));
        if is_urgent || self.pending.len() > MAX_PENDING { self.commit() } else { Ok(()) }
    }

    /// Prepares for an effect: commits the cause of an effect that changes the world.
    pub fn perform(&mut self, effect: &Effect) -> io::Result<()> {
        // Records of the driver cause no effects, so they need no commit. With a view, the record of
        // its commit is dropped.
        let is_final = changes_the_world(effect) || matches!(effect, Effect::DropView(_));
        if self.must_commit && is_final {
            self.commit()?;
        }
        self.digest.add(effect);
        self.known.on_effect(effect);
        if let Effect::Exec(run) = effect {
            self.rest = Some(run.process.0);
        }
        Ok(())
    }

    /// Returns the number of the run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Records the lease of a branch before its dispatch.
    pub fn outlived_by(&mut self, by: Duration) {
        if by > self.outlived {
            self.outlived = by;
            self.push(&JournalEntry::Outlived { by: by.as_nanos().try_into().unwrap_or(u64::MAX) });
            self.must_commit = true;
        }
    }

    /// Records that no remote branch of this process remains.
    pub fn nothing_is_left(&mut self) -> io::Result<()> {
        if self.outlived.is_zero() {
            return Ok(());
        }
        self.push(&JournalEntry::Outlived { by: 0 });
        self.commit()
    }

    /// Ends the deliveries: the machine does not receive the events recorded from now on.
    pub fn stop_deliveries(&mut self) {
        self.known.forget_queries();
    }

    /// Notes an effect that an earlier process requested.
    pub fn perform_late(&mut self, effect: &Effect) {
        self.known.on_effect(effect);
    }

    /// Records the suspension of the run; the last `late` requested effects were never begun.
    pub fn suspend(&mut self, now: Time, late: usize, reason: Suspension) -> io::Result<()> {
        let later = nanoseconds(now, self.delivered_at);
        let effects = self.digest.count().saturating_sub(late as u64);
        let signal = match reason {
            Suspension::Signal(signal) => Some(signal),
            Suspension::Deadline => None,
        };
        self.push(&JournalEntry::Suspended { later, effects, signal });
        self.commit()
    }

    /// Records a log record of the driver.
    pub fn note(&mut self, record: &LogRecord) {
        if let Some(noted) = Noted::new(&record.event) {
            let later = nanoseconds(record.at, self.delivered_at);
            let effects = (self.digest.count() - self.effects) as u32;
            let effects = if self.is_waiting { u32::MAX } else { effects };
            self.push(&JournalEntry::Noted { later, effects, line: record.line, noted });
        }
    }

    /// Begins a wait, and returns the time by which pending entries must be committed.
    pub fn wait(&mut self, now: Time) -> Option<Time> {
        self.is_waiting = true;
        let until = self.urgent.map_or(now + IDLE_DELAY, |since| since + BATCH_DELAY);
        (!self.pending.is_empty()).then_some(until)
    }

    /// Writes all pending entries to the disk.
    ///
    /// A failure is permanent, because the content of the disk is then unknown.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier part of it couldn't be written"));
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let result = self.write_frame();
        self.is_broken = result.is_err();
        result
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let (number, effects, digest) = (self.frames, self.digest.count(), self.digest.value());
        let mut content = encoded(&FrameHead { number, effects, digest }, Vec::new())?;
        content.append(&mut self.pending);
        let mut bytes = Vec::with_capacity(content.len() + 8);
        frame::append(&mut bytes, self.run, &content);
        let (length, end) = (bytes.len(), self.end + bytes.len() as u64);
        let mut room = self.room;
        if end > room {
            bytes.resize(length + ROOM, 0);
            room = end + ROOM as u64;
        }
        let mut written = self.store.write(self.end, &bytes);
        if written.is_err() && bytes.len() > length {
            // The disk may have space for the frame without extra room.
            room = end;
            written = self.store.write(self.end, &bytes[..length]);
        }
        if let Err(error) = written.and_then(|()| self.store.sync()) {
            // The kernel may have dropped unwritten pages and still show them until it reclaims the
            // memory. A frame appended there would leave a hole. The failed frame is cut off;
            // nothing was performed because of its entries.
            let _ = self.store.cut(self.end);
            return Err(error);
        }
        self.room = room;
        self.end = end;
        self.frames += 1;
        (self.must_commit, self.urgent) = (false, None);
        Ok(())
    }

    /// Records the end of the run and truncates the room after the last frame.
    pub fn end(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.push(&JournalEntry::Over(outcome.into()));
        self.commit()?;
        // Remaining room is harmless.
        let _ = self.store.cut(self.end);
        self.room = self.end;
        Ok(())
    }

    fn push(&mut self, entry: &JournalEntry) {
        match encoded(entry, mem::take(&mut self.pending)) {
            Ok(pending) => self.pending = pending,
            Err(_) => self.is_broken = true,
        }
    }
}

/// Appends the report of the end of the run.
pub fn report<S: Store>(mut store: S, last: &LastFrame) -> io::Result<()> {
    let head = FrameHead { number: last.head.number + 1, ..last.head };
    let content = encoded(&JournalEntry::Reported, encoded(&head, Vec::new())?)?;
    let mut bytes = Vec::new();
    frame::append(&mut bytes, last.run, &content);
    store.cut(last.end)?;
    // The mark is not synced. A kill during a sync would leave a marked run that was never
    // reported. If the mark is lost with the power, the end is reported twice.
    store.write(last.end, &bytes)
}

fn encoded(value: &impl Serialize, to: Vec<u8>) -> io::Result<Vec<u8>> {
    serialize_with_flavor(value, Bytes(to)).map_err(io::Error::other)
}

/// Output that appends contents of buffers as a whole; the one of postcard appends single bytes.
struct Bytes(Vec<u8>);

impl Flavor for Bytes {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

fn nanoseconds(now: Time, then: Time) -> u64 {
    (now - then).as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Returns true if an effect has results that remain after the shell.
pub(crate) fn changes_the_world(effect: &Effect) -> bool {
    match effect {
        Effect::Run(_)
        | Effect::Exec(_)
        | Effect::Dispatch(_)
        | Effect::Commit { .. }
        | Effect::CommitView { .. }
        | Effect::Enter(_)
        | Effect::Leave(..)
        | Effect::RecordDurations(..)
        | Effect::Query { query: Query::RecordedWords(_) | Query::TakeBack(_), .. } => true,
        Effect::Open { redirects, .. } => redirects.iter().any(|it| match &it.source {
            FdSource::File { access, .. } => *access != Access::Read,
            FdSource::StagedFile { .. } => true,
            _ => false,
        }),
        _ => false,
    }
}
