//! Writing a journal: what is pending, and when it has to be on the disk.

use std::io;
use std::mem;
use std::time::Duration;

use serde::Serialize;

use super::beginning::Beginning;
use super::digest::Digest;
use super::entry::{Entry, Head, Noted, Over, Told};
use super::frame;
use super::store::Store;
use crate::machine::effect::{Access, Effect, FdSource};
use crate::machine::record::Record;
use crate::machine::{Event, Outcome, Time};

/// Room is made for so much at once: then writing needn't change what is known of the file.
const ROOM: usize = 64 * 1024;
/// More than this doesn't wait for a reason to be written.
const MOST: usize = 64 * 1024;
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
    /// When the machine was last told something.
    told: Time,
    /// How many effects there had been by then.
    effects: u64,
    /// Whether it has asked for all that it will before it is told more.
    is_waiting: bool,
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
            told: Time::START,
            effects: 0,
            is_waiting: false,
            is_broken: false,
        };
        writer.push(&Entry::Began(Box::new(beginning)));
        Ok(writer)
    }

    /// The machine is going to be told this.
    pub fn tell(&mut self, now: Time, event: Option<&Event>) -> io::Result<()> {
        let later = nanoseconds(now, self.told);
        let told = event.map_or(Told::Time, Told::from);
        // That a program runs is known by its end, and otherwise lost with it.
        if !matches!(told, Told::Time | Told::Spawned { .. }) {
            self.urgent.get_or_insert(now);
        }
        self.push(&Entry::Told { later, told });
        (self.told, self.effects) = (self.told.max(now), self.digest.count());
        (self.is_told, self.is_waiting) = (true, false);
        if self.pending.len() > MOST { self.commit() } else { Ok(()) }
    }

    /// An effect is going to be carried out: what led to it has to be known for ever, if it is seen
    /// outside.
    pub fn perform(&mut self, effect: &Effect) -> io::Result<()> {
        if matches!(effect, Effect::Exec(_)) {
            self.push(&Entry::Over(Over::Replaced));
            self.is_told = true;
        }
        // What a driver noted leads to nothing.
        if self.is_told && changes_the_world(effect) {
            self.commit()?;
        }
        self.digest.add(effect);
        Ok(())
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
        let end = self.end + bytes.len() as u64;
        if end > self.room {
            bytes.resize(bytes.len() + ROOM, 0);
            self.room = end + ROOM as u64;
        }
        self.store.write(self.end, &bytes)?;
        self.store.sync()?;
        self.end = end;
        self.frames += 1;
        (self.is_told, self.urgent) = (false, None);
        Ok(())
    }

    /// The run is over; nothing more is to be said of it.
    pub fn end(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.push(&Entry::Over(outcome.into()));
        self.commit()?;
        self.store.cut(self.end)
    }

    fn push(&mut self, entry: &Entry) {
        match encoded(entry, mem::take(&mut self.pending)) {
            Ok(pending) => self.pending = pending,
            Err(_) => self.is_broken = true,
        }
    }
}

fn encoded(value: &impl Serialize, to: Vec<u8>) -> io::Result<Vec<u8>> {
    postcard::to_extend(value, to).map_err(io::Error::other)
}

fn nanoseconds(now: Time, then: Time) -> u64 {
    (now - then).as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Whether an effect leaves something that is there after the shell.
pub fn changes_the_world(effect: &Effect) -> bool {
    match effect {
        Effect::Run(_)
        | Effect::Exec(_)
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
