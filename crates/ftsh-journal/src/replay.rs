//! Repeating a run: a new machine is told the same.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;
use thiserror::Error;

use super::digest::Digest;
use super::entry::{Answer, Entry, Head, Told};
use super::fd_graph::Input;
use super::live_state::Alive;
use super::read::{Journal, NoMemory};
use ftsh_machine::effect::{BufferId, Effect, IoId, ScopeId};
use ftsh_machine::record::{Level, LogEvent, Record};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Event, Machine, Outcome, Output, Time};

/// How far a run was repeated.
pub struct Replayed {
    /// The machine as it was when the last thing was recorded.
    pub machine: Machine,
    /// The run's end, if it came to that.
    pub outcome: Option<Outcome>,
    /// When the last thing was recorded.
    pub now: Time,
    /// What it takes to go on.
    pub(super) left: Left,
}

/// What a run leaves to the process that goes on with it.
pub(super) struct Left {
    /// The effects so far.
    pub digest: Digest,
    /// When the machine was last told something.
    pub told: Time,
    /// How many effects there had been by then.
    pub effects: u64,
    /// What there was in its world.
    pub alive: Alive,
    /// What was asked for and never begun.
    pub later: Vec<Effect>,
    pub file: Arc<str>,
}

/// The world of a run that is to go on: what it was, and is to be again.
pub struct World {
    pub(super) alive: Alive,
    pub(super) later: Vec<Effect>,
    /// What the script is called.
    pub(super) file: Arc<str>,
    /// When the last thing was recorded.
    latest: Time,
    /// Whether nobody knows for certain how long ago that was.
    is_unsure: bool,
}

impl World {
    /// The same where the clock of the run may be wrong by now, as that of another boot.
    #[must_use]
    pub fn at_an_unsure_time(self) -> Self {
        Self { is_unsure: true, ..self }
    }

    /// Where branches that earlier processes have sent may go on, and until when.
    pub(super) fn orphans(&self, now: Time) -> Vec<(ScopeId, Time)> {
        // What may be left of their time since the last thing that was recorded.
        let later = |until: Time| if self.is_unsure { now + (until - self.latest) } else { until };
        let orphans = self.alive.orphans(now);
        let orphans = orphans
            .map(|(scope, until, is_new)| (scope, if is_new { until } else { later(until) }));
        orphans.filter(|(_, until)| *until > now).collect()
    }
}

impl Replayed {
    /// The machine, and the world that has to be made again before it can go on.
    pub fn go_on(self) -> (Machine, World) {
        let Left { alive, later, file, .. } = self.left;
        let (latest, is_unsure) = (self.now, false);
        (self.machine, World { alive, later, file, latest, is_unsure })
    }
}

/// Why a run can't be repeated.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unrepeatable {
    /// Another machine would do something else.
    #[error(
        "it was written by ftsh {version} (behavior {theirs}), and this is ftsh {} (behavior {}), which does \
         things another way: use that one for it",
        env!("CARGO_PKG_VERSION"),
        super::BEHAVIOR
    )]
    OtherBehavior {
        /// The version that wrote it.
        version: String,
        /// The behavior of that one.
        theirs: u32,
    },
    /// What it began with isn't valid here.
    #[error("the script in it isn't one to this version of ftsh, {0} wrote it")]
    Beginning(String),
    /// The machine did something else.
    #[error(
        "internal error: told the same, ftsh does something else than it did: it differs after record \
         {record}, by effect {effect}. This is a bug in ftsh, please report it"
    )]
    Different {
        /// After how many entries.
        record: usize,
        /// How many effects there had been.
        effect: u64,
    },
    /// It can't be repeated here.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

/// Who sees a run that is repeated.
pub trait Watch {
    /// This is logged.
    fn logged(&mut self, record: &Record);

    /// This is asked of the driver.
    fn asked(&mut self, _effect: &Effect) {}

    /// The machine gets this event.
    fn told(&mut self, _event: &Event) {}
}

impl<F: FnMut(&Record)> Watch for F {
    fn logged(&mut self, record: &Record) {
        self(record);
    }
}

/// What effects came to, in order.
type Checks<'a> = Box<dyn Iterator<Item = Head> + 'a>;

/// A run that is repeated.
struct Replay<'a, W> {
    machine: Machine,
    journal: &'a Journal,
    checks: Peekable<Checks<'a>>,
    digest: Digest,
    file: Arc<str>,
    secrets: Secrets,
    watch: W,
    /// When the machine was last told something.
    now: Time,
    /// How many effects there had been.
    then: u64,
    /// What a driver logged since then.
    notes: VecDeque<(u32, Record)>,
    records: usize,
    /// Only what is logged is told now.
    outcome: Option<Outcome>,
    /// Whether the machine was told something and hasn't said yet what is to be done.
    is_told: bool,
    alive: Alive,
    /// What has been written to buffers before the machine is told something.
    written: Vec<(BufferId, u64, BString)>,
    /// How far inputs have been read by then.
    positions: VecDeque<(Input, u64)>,
    /// What an earlier driver had never begun, and that of the present start was asked for first.
    late: Vec<Effect>,
    /// What the driver of the present start had never begun, beyond so many effects.
    later: Vec<Effect>,
    begun: u64,
    /// The same of those that follow.
    starts: VecDeque<u64>,
}

/// Repeats a run as far as it is recorded, and tells all that a log of this level tells, in order and
/// without what is secret.
pub fn replay(
    journal: &Journal,
    level: Level,
    watch: impl Watch,
) -> Result<Replayed, Unrepeatable> {
    let beginning = &journal.beginning;
    let version = || beginning.version.clone();
    if beginning.behavior != super::BEHAVIOR {
        let theirs = beginning.behavior;
        return Err(Unrepeatable::OtherBehavior { version: version(), theirs });
    }
    let secrets = beginning.secrets();
    let machine = beginning.machine(level, secrets.clone());
    let machine = machine.ok_or_else(|| Unrepeatable::Beginning(version()))?;
    let mut replay = Replay {
        machine,
        journal,
        checks: (Box::new(journal.checks()) as Checks<'_>).peekable(),
        digest: Digest::default(),
        file: beginning.name.as_str().into(),
        secrets,
        watch,
        now: Time::START,
        then: 0,
        notes: VecDeque::new(),
        records: 0,
        outcome: None,
        is_told: false,
        alive: Alive::default(),
        written: Vec::new(),
        positions: VecDeque::new(),
        late: Vec::new(),
        later: Vec::new(),
        begun: 0,
        starts: journal.begun.iter().copied().collect(),
    };
    let now = replay.repeat(level)?;
    replay.alive.restart();
    let Replay { machine, outcome, digest, now: told, then: effects, alive, later, file, .. } =
        replay;
    let left = Left { digest, told, effects, alive, later, file };
    Ok(Replayed { machine, outcome, now, left })
}

impl<W: Watch> Replay<'_, W> {
    fn repeat(&mut self, level: Level) -> Result<Time, Unrepeatable> {
        let mut latest = Time::START;
        self.next_start();
        let journal = self.journal;
        for entry in journal.entries() {
            match entry? {
                Entry::Noted { later, effects, line, noted } => {
                    let at = self.now + Duration::from_nanos(later);
                    latest = latest.max(at);
                    let event = LogEvent::from(noted);
                    if event.level() <= level {
                        let record = self.noted(at, line, event);
                        self.notes.push_back((effects, record));
                    }
                }
                Entry::Told { later, told } => {
                    self.go_on()?;
                    self.tell_notes(u64::MAX);
                    self.now = self.now + Duration::from_nanos(later);
                    latest = latest.max(self.now);
                    self.then = self.digest.count();
                    // What was recorded while the shell was ending may go on after the end of the run.
                    let is_ending = self.digest.count() >= self.begun;
                    match self.outcome {
                        None => self.tell(told)?,
                        Some(_) if is_ending => {}
                        Some(_) => return Err(self.different()),
                    }
                }
                Entry::Started(started) => {
                    self.go_on()?;
                    self.tell_notes(u64::MAX);
                    self.alive.leave_behind(Time::after(started.elapsed));
                    self.next_start();
                }
                Entry::Written { buffer, from, bytes } => {
                    self.written.push((BufferId(buffer), from, bytes));
                }
                Entry::Position { io, change, at } => {
                    let input = Input { io: IoId(io), change };
                    self.positions.push_back((input, at));
                }
                Entry::Suspended { later, signal, .. } => {
                    self.go_on()?;
                    self.tell_notes(u64::MAX);
                    let at = self.now + Duration::from_nanos(later);
                    latest = latest.max(at);
                    let event = LogEvent::Suspended(signal);
                    if event.level() <= level {
                        self.watch.logged(&self.noted(at, 0, event).hide(&self.secrets));
                    }
                }
                Entry::Outlived { by } => {
                    self.alive.outlived_by(Duration::from_nanos(by));
                }
                Entry::Began(_) | Entry::Over(_) | Entry::Reported => {}
            }
            self.records += 1;
        }
        self.go_on()?;
        self.check()?;
        self.tell_notes(u64::MAX);
        if self.checks.peek().is_none() { Ok(latest) } else { Err(self.different()) }
    }

    /// The run goes on in another process: what wasn't begun is begun.
    fn next_start(&mut self) {
        self.begun = self.starts.pop_front().unwrap_or(u64::MAX);
        self.written.clear();
        self.positions.clear();
        self.alive.restart();
        self.late.append(&mut self.later);
    }

    /// The driver is asked for something.
    fn ask(&mut self, effect: Effect) {
        let kept = match &effect {
            Effect::KeepInput(replay) => self.alive.plumbing.kept(*replay),
            _ => None,
        };
        self.alive.asked(effect);
        // This was known before anything else was asked for.
        if let Some(kept) = kept
            && let Some((input, at)) = self.positions.front().copied()
            && input == kept.input
        {
            self.positions.pop_front();
            self.alive.position(input, at);
        }
    }

    /// Tells the machine what it was told.
    fn tell(&mut self, mut told: Told) -> Result<(), Unrepeatable> {
        for (buffer, from, bytes) in self.written.drain(..) {
            self.alive.written(buffer, from, &bytes)?;
        }
        for (input, at) in self.positions.drain(..) {
            self.alive.position(input, at);
        }
        if let Told::Done { answer, .. } = &mut told
            && let Answer::Recorded { buffer } = answer
        {
            let content = self.alive.content(BufferId(*buffer));
            let content = content.ok_or_else(|| self.different())?;
            NoMemory::unless(content.len())?;
            *answer = Answer::Text(content.clone());
        }
        self.is_told = true;
        match told.into_event() {
            Some(event) => {
                self.alive.told(&event);
                self.watch.told(&event);
                self.machine.handle_event(self.now, event);
            }
            None => self.machine.handle_timeout(self.now),
        }
        Ok(())
    }

    /// Has the machine do all that it does before it has to be told more.
    fn go_on(&mut self) -> Result<(), Unrepeatable> {
        for effect in std::mem::take(&mut self.late) {
            self.ask(effect);
        }
        while self.is_told {
            self.check()?;
            self.tell_notes(self.digest.count() - self.then);
            match self.machine.poll_output() {
                Output::Effect(Effect::Log(record)) => {
                    self.watch.logged(&record.hide(&self.secrets));
                }
                Output::Effect(effect) => {
                    self.digest.add(&effect);
                    self.watch.asked(&effect);
                    if self.digest.count() > self.begun {
                        self.later.push(effect);
                    } else {
                        self.ask(effect);
                    }
                }
                Output::Timeout(_) => self.is_told = false,
                Output::Finished(outcome) => {
                    self.outcome = Some(outcome);
                    self.is_told = false;
                }
            }
        }
        Ok(())
    }

    /// What was noted after so many effects.
    fn tell_notes(&mut self, effects: u64) {
        while let Some((_, record)) =
            self.notes.front().filter(|(after, _)| u64::from(*after) <= effects)
        {
            self.watch.logged(&record.hide(&self.secrets));
            self.notes.pop_front();
        }
    }

    /// Compares the effects with those of the run, where they are known.
    fn check(&mut self) -> Result<(), Unrepeatable> {
        let count = self.digest.count();
        while let Some(check) = self.checks.next_if(|check| check.effects <= count) {
            if (check.effects, check.digest) != (count, self.digest.value()) {
                return Err(self.different());
            }
        }
        Ok(())
    }

    fn different(&self) -> Unrepeatable {
        Unrepeatable::Different { record: self.records, effect: self.digest.count() }
    }

    fn noted(&self, at: Time, line: u32, event: LogEvent) -> Record {
        Record::of_shell(at, Arc::clone(&self.file), line, event)
    }
}
