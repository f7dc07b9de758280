//! Writing a journal: what is pending, and when it has to be on the disk.

use std::io::{self, ErrorKind};
use std::mem;
use std::time::Duration;

use postcard::ser_flavors::Flavor;
use postcard::serialize_with_flavor;
use serde::Serialize;

use super::beginning::Beginning;
use super::digest::Digest;
use super::entry::{Answer, Entry, Head, Noted, Told};
use super::fd_graph::Reading;
use super::frame;
use super::known::{Due, Known};
use super::last::Last;
use super::read::{Journal, NoMemory};
use super::replay::Replayed;
use super::started::Started;
use super::store::Store;
use ftsh_machine::driver::Written;
use ftsh_machine::effect::{Access, BufferId, Effect, FdSource};
use ftsh_machine::event::Suspension;
use ftsh_machine::record::Record;
use ftsh_machine::{Event, Outcome, Time};

/// Room is made for so much at once: then writing needn't change what is known of the file.
const ROOM: usize = 64 * 1024;
/// More than this doesn't wait for a reason to be written.
const MOST: usize = 64 * 1024;
/// More than this isn't written at once.
const LARGE: usize = 1024 * 1024;
/// Things that happen one right after the other are written together.
const BRIEF: Duration = Duration::from_millis(2);
/// What needn't be written soon is written when nothing has happened for so long: who looks from outside
/// wants to see it.
const LONG: Duration = Duration::from_secs(1);

/// A journal that is written.
pub struct Writer<S> {
    store: S,
    run: u64,
    /// How many frames are written.
    frames: u64,
    end: u64,
    /// How far there is room.
    room: u64,
    /// Entries that aren't written yet.
    pending: Vec<u8>,
    /// Whether the machine was told any of them.
    is_told: bool,
    /// Since when any of them is to be on the disk before a wait.
    urgent: Option<Time>,
    digest: Digest,
    /// The program that is to take the shell's place.
    rest: Option<u64>,
    /// What is to be recorded besides what the machine is told.
    known: Known,
    /// When the machine was last told something.
    told: Time,
    /// How many effects there had been by then.
    effects: u64,
    /// Whether it has asked for all that it will before it is told more.
    is_waiting: bool,
    /// How long branches elsewhere may go on after this process, as it says.
    outlived: Duration,
    is_broken: bool,
}

impl<S: Store> Writer<S> {
    /// The journal of a run that begins, in a store that holds nothing. What it begins with is written
    /// with what comes first.
    pub fn begin(mut store: S, run: u64, beginning: Beginning) -> io::Result<Self> {
        // Alone: whatever comes of it, it says whose file this is.
        store.write(0, &frame::header(run))?;
        store.sync()?;
        let mut writer = Self {
            store,
            run,
            frames: 0,
            end: frame::HEADER as u64,
            room: frame::HEADER as u64,
            pending: Vec::new(),
            is_told: false,
            urgent: None,
            digest: Digest::default(),
            rest: None,
            known: Known::default(),
            told: Time::START,
            effects: 0,
            is_waiting: false,
            outlived: Duration::ZERO,
            is_broken: false,
        };
        writer.push(&Entry::Began(Box::new(beginning)));
        Ok(writer)
    }

    /// The journal of a run that goes on, in the store that it was read from. What wasn't written to its end
    /// is cut off: nothing is to come after it.
    pub fn resume(mut store: S, journal: &Journal, replayed: &Replayed) -> io::Result<Self> {
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
            is_told: false,
            urgent: None,
            digest: left.digest.clone(),
            rest: None,
            known: Known::new(&left.alive),
            told: left.told,
            effects: left.effects,
            is_waiting: true,
            outlived: Duration::ZERO,
            is_broken: false,
        })
    }

    /// It begins in this process, or goes on in it.
    pub fn start(&mut self, started: Started) {
        self.push(&Entry::Started(Box::new(started)));
        // What this process starts has to be found by the next one.
        self.is_told = true;
    }

    /// What the driver has to be asked for before the machine is told this.
    pub fn due(&self, event: &Event) -> Due {
        self.known.due(event)
    }

    /// Whether files are taking their places.
    pub fn is_settling(&self) -> bool {
        self.known.is_settling()
    }

    /// Whether this tells of a command in an atomic attempt.
    pub fn is_in_attempt(&self, event: &Event) -> bool {
        self.known.is_in_attempt(event)
    }

    /// An input that is read for good when this is carried out.
    pub fn kept(&self, effect: &Effect) -> Option<Reading> {
        self.known.kept(effect)
    }

    /// A buffer holds this. It counts once the machine is told something.
    pub fn written(&mut self, buffer: BufferId, written: &Written) -> io::Result<()> {
        self.known.written(buffer, written);
        let mut from = written.from;
        let mut rest = &written.bytes[..];
        loop {
            let (bytes, more) = rest.split_at(rest.len().min(LARGE));
            // Some copies of it.
            NoMemory::unless(4 * bytes.len()).map_err(|_| ErrorKind::OutOfMemory)?;
            self.push(&Entry::Written { buffer: buffer.0, from, bytes: bytes.into() });
            if more.is_empty() {
                return Ok(());
            }
            self.commit()?;
            from += bytes.len() as u64;
            rest = more;
        }
    }

    /// An input has been read up to here.
    pub fn position(&mut self, reading: &Reading, at: u64) {
        if self.known.position(reading.input, at) {
            let (io, change) = (reading.input.io.0, reading.input.change);
            self.push(&Entry::Position { io, change, at });
        }
    }

    /// The machine is going to be told this.
    pub fn tell(&mut self, now: Time, event: Option<&Event>) -> io::Result<()> {
        let later = nanoseconds(now, self.told);
        let mut told = event.map_or(Told::Time, Told::from);
        if let (Some(event), Told::Done { answer, .. }) = (event, &mut told)
            && let Some(buffer) = self.known.buffer_in(event)
        {
            *answer = Answer::Recorded { buffer: buffer.0 };
        }
        // That a program runs is known by its end, and otherwise lost with it, unless it is the rest of the run.
        let is_rest = matches!(told, Told::Spawned { process, .. } if self.rest == Some(process));
        if is_rest || !matches!(told, Told::Time | Told::Spawned { .. }) {
            self.urgent.get_or_insert(now);
        }
        self.push(&Entry::Told { later, told });
        if let Some(event) = event {
            self.known.told(event);
        }
        (self.told, self.effects) = (self.told.max(now), self.digest.count());
        (self.is_told, self.is_waiting) = (true, false);
        // People are told at once that a run goes on.
        let is_urgent = matches!(event, Some(Event::Resumed { .. }));
        if is_urgent || self.pending.len() > MOST { self.commit() } else { Ok(()) }
    }

    /// An effect is going to be carried out: what led to it has to be known for ever, if it is seen
    /// outside.
    pub fn perform(&mut self, effect: &Effect) -> io::Result<()> {
        // What a driver noted leads to nothing.
        if self.is_told && changes_the_world(effect) {
            self.commit()?;
        }
        self.digest.add(effect);
        self.known.asked(effect);
        if let Effect::Exec(run) = effect {
            self.rest = Some(run.process.0);
        }
        Ok(())
    }

    /// A branch is going to be sent elsewhere that may go on for so long after this process.
    pub fn outlived_by(&mut self, by: Duration) {
        if by > self.outlived {
            self.outlived = by;
            self.push(&Entry::Outlived { by: by.as_nanos().try_into().unwrap_or(u64::MAX) });
            self.is_told = true;
        }
    }

    /// Nothing that this process has begun is left anywhere.
    pub fn nothing_is_left(&mut self) -> io::Result<()> {
        if self.outlived.is_zero() {
            return Ok(());
        }
        self.push(&Entry::Outlived { by: 0 });
        self.commit()
    }

    /// From here on the machine isn't told what is recorded, so it asks for nothing because of it.
    pub fn stop_telling(&mut self) {
        self.known.forget_questions();
    }

    /// An effect is going to be carried out that was asked for in an earlier process.
    pub fn perform_late(&mut self, effect: &Effect) {
        self.known.asked(effect);
    }

    /// The shell is going to end, but not the run. Of the effects that were asked for, so many were never
    /// begun.
    pub fn suspend(&mut self, now: Time, late: usize, reason: Suspension) -> io::Result<()> {
        let later = nanoseconds(now, self.told);
        let effects = self.digest.count().saturating_sub(late as u64);
        let signal = match reason {
            Suspension::Signal(signal) => Some(signal),
            Suspension::Deadline => None,
        };
        self.push(&Entry::Suspended { later, effects, signal });
        self.commit()
    }

    /// A driver logs this.
    pub fn note(&mut self, record: &Record) {
        if let Some(noted) = Noted::new(&record.event) {
            let later = nanoseconds(record.at, self.told);
            let effects = (self.digest.count() - self.effects) as u32;
            let effects = if self.is_waiting { u32::MAX } else { effects };
            self.push(&Entry::Noted { later, effects, line: record.line, noted });
        }
    }

    /// The machine is going to wait: until when at most before what is pending has to be committed, if
    /// anything is.
    pub fn wait(&mut self, now: Time) -> Option<Time> {
        self.is_waiting = true;
        let until = self.urgent.map_or(now + LONG, |since| since + BRIEF);
        (!self.pending.is_empty()).then_some(until)
    }

    /// Has all that is pending on the disk. A failure is for good: what is there then nobody knows.
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
        let mut content = encoded(&Head { number, effects, digest }, Vec::new())?;
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
            // There may be enough for this alone.
            room = end;
            written = self.store.write(self.end, &bytes[..length]);
        }
        if let Err(error) = written.and_then(|()| self.store.sync()) {
            // The system may have dropped what it couldn't write, and show it all the same until it needs the
            // memory: to go on from what is there would leave a hole. And nothing is done because of it.
            let _ = self.store.cut(self.end);
            return Err(error);
        }
        self.room = room;
        self.end = end;
        self.frames += 1;
        (self.is_told, self.urgent) = (false, None);
        Ok(())
    }

    /// The run is over; nothing more is to be said of it.
    pub fn end(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.push(&Entry::Over(outcome.into()));
        self.commit()?;
        // Room that stays there does no harm.
        let _ = self.store.cut(self.end);
        self.room = self.end;
        Ok(())
    }

    fn push(&mut self, entry: &Entry) {
        match encoded(entry, mem::take(&mut self.pending)) {
            Ok(pending) => self.pending = pending,
            Err(_) => self.is_broken = true,
        }
    }
}

/// Writes behind the end of a run that its end was told to whoever started it.
pub fn report<S: Store>(mut store: S, last: &Last) -> io::Result<()> {
    let head = Head { number: last.head.number + 1, ..last.head };
    let content = encoded(&Entry::Reported, encoded(&head, Vec::new())?)?;
    let mut bytes = Vec::new();
    frame::append(&mut bytes, last.run, &content);
    store.cut(last.end)?;
    // The last thing before the exit status: were it waited for, a kill meanwhile would leave a run that is
    // marked and that nobody was told of. If it is lost with the power, its end is told twice.
    store.write(last.end, &bytes)
}

fn encoded(value: &impl Serialize, to: Vec<u8>) -> io::Result<Vec<u8>> {
    serialize_with_flavor(value, Bytes(to)).map_err(io::Error::other)
}

/// Takes contents of buffers whole: what postcard has for this takes them byte by byte.
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

/// Whether an effect leaves something that is there after the shell.
pub fn changes_the_world(effect: &Effect) -> bool {
    match effect {
        Effect::Run(_)
        | Effect::Exec(_)
        | Effect::Dispatch(_)
        | Effect::Settle { .. }
        | Effect::Enter(_)
        | Effect::Leave(..) => true,
        Effect::Open { redirects, .. } => redirects.iter().any(|it| match &it.source {
            FdSource::File { access, .. } => *access != Access::Read,
            FdSource::Draft { .. } => true,
            _ => false,
        }),
        _ => false,
    }
}
