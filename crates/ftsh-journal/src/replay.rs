//! Replay of a run: a new machine receives the recorded events.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;
use thiserror::Error;

use super::digest::Digest;
use super::entry::{Delivered, FrameHead, JournalEntry};
use super::fd_graph::SharedInput;
use super::live_state::LiveState;
use super::read::{Journal, NoMemory};
use ftsh_machine::effect::{BufferId, Effect, IoId, ScopeId, ViewId};
use ftsh_machine::event::Reply;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::secrets::Secrets;
use ftsh_machine::{Event, Machine, Outcome, Output, Time};

/// Result of a replay.
pub struct ReplayResult {
    /// Machine in the state of the last record.
    pub machine: Machine,
    /// Outcome of the run, if the run has ended.
    pub outcome: Option<Outcome>,
    /// Moment of the last record.
    pub now: Time,
    /// State needed to continue the run.
    pub(super) left: ReplayState,
}

/// State that a run leaves to the process that continues the run.
pub(super) struct ReplayState {
    /// Checksum of the effects so far.
    pub digest: Digest,
    /// Moment of the last delivery.
    pub delivered_at: Time,
    /// Number of effects before the last delivery.
    pub effects: u64,
    /// State of the world.
    pub alive: LiveState,
    /// Effects that were requested and never begun.
    pub later: Vec<Effect>,
    pub file: Arc<str>,
}

/// World of a run to restore before the run continues.
pub struct ReplayedWorld {
    pub(super) alive: LiveState,
    pub(super) later: Vec<Effect>,
    /// Name of the script.
    pub(super) file: Arc<str>,
    /// Moment of the last record.
    latest: Time,
    /// Set when the time since the last record is uncertain.
    is_uncertain: bool,
}

impl ReplayedWorld {
    /// Marks the clock of the run as uncertain, as after a reboot.
    #[must_use]
    pub fn with_uncertain_clock(self) -> Self {
        Self { is_uncertain: true, ..self }
    }

    /// Returns the scopes in which remote branches of earlier processes may still run, and until
    /// when.
    pub(super) fn orphans(&self, now: Time) -> Vec<(ScopeId, Time)> {
        // With an uncertain clock, the whole lease after the last record may remain.
        let later =
            |until: Time| if self.is_uncertain { now + (until - self.latest) } else { until };
        let orphans = self.alive.orphans(now);
        let orphans = orphans
            .map(|(scope, until, is_new)| (scope, if is_new { until } else { later(until) }));
        orphans.filter(|(_, until)| *until > now).collect()
    }
}

impl ReplayResult {
    /// Returns the views whose commits may have left records, with their directories.
    pub fn views(&self) -> impl Iterator<Item = (ViewId, &[BString])> {
        self.left.alive.views()
    }

    /// Returns the machine, and the world to restore before the machine continues.
    pub fn go_on(self) -> (Machine, ReplayedWorld) {
        let ReplayState { alive, later, file, .. } = self.left;
        let (latest, is_uncertain) = (self.now, false);
        (self.machine, ReplayedWorld { alive, later, file, latest, is_uncertain })
    }
}

/// Reason to refuse a replay.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unrepeatable {
    /// Journal of a machine with another behavior.
    #[error(
        "it was written by ftsh {version} (behavior {theirs}), and this is ftsh {} (behavior {}), which does \
         things another way: use that one for it",
        env!("CARGO_PKG_VERSION"),
        super::BEHAVIOR
    )]
    OtherBehavior {
        /// Version that wrote the journal.
        version: String,
        /// Behavior of that version.
        theirs: u32,
    },
    /// Beginning that is not valid in this version.
    #[error("the recorded script is not valid in this version of ftsh; {0} wrote the journal")]
    Beginning(String),
    /// Replayed effects that differ from the recorded ones.
    #[error(
        "internal error: the replay differs from the recorded run after record {record}, by effect \
         {effect}. This is a bug in ftsh, please report it"
    )]
    Different {
        /// Number of entries before the difference.
        record: usize,
        /// Number of effects before the difference.
        effect: u64,
    },
    /// Journal too large for the available memory.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

/// Observer of a replay.
pub trait ReplayObserver {
    /// Receives a log record.
    fn logged(&mut self, record: &LogRecord);

    /// Receives an effect of the machine.
    fn on_effect(&mut self, _effect: &Effect) {}

    /// Receives an event before its delivery to the machine.
    fn on_event(&mut self, _event: &Event) {}
}

impl<F: FnMut(&LogRecord)> ReplayObserver for F {
    fn logged(&mut self, record: &LogRecord) {
        self(record);
    }
}

/// Checksums of the effects, in order.
type Checks<'a> = Box<dyn Iterator<Item = FrameHead> + 'a>;

/// Replay in progress.
struct Replayer<'a, W> {
    machine: Machine,
    journal: &'a Journal,
    checks: Peekable<Checks<'a>>,
    digest: Digest,
    file: Arc<str>,
    secrets: Secrets,
    watch: W,
    /// Moment of the last delivery.
    now: Time,
    /// Number of effects before the last delivery.
    then: u64,
    /// Records of the driver since the last delivery.
    notes: VecDeque<(u32, LogRecord)>,
    records: usize,
    /// Outcome of the run; afterwards only log records are replayed.
    outcome: Option<Outcome>,
    /// Set when the machine may have output.
    has_output: bool,
    alive: LiveState,
    /// Content of buffers, valid from the next delivery on.
    written: Vec<(BufferId, u64, BString)>,
    /// Positions of inputs, valid from the next delivery on.
    positions: VecDeque<(SharedInput, u64)>,
    /// Effects that an earlier start never began and the present start requested first.
    late: Vec<Effect>,
    /// Effects that the present start never began: all beyond the first `begun`.
    later: Vec<Effect>,
    begun: u64,
    /// Number of effects that each later start began.
    starts: VecDeque<u64>,
}

/// Replays a run as far as recorded, and passes log records up to `level` to `watch`, redacted and
/// in order.
pub fn replay(
    journal: &Journal,
    level: Level,
    watch: impl ReplayObserver,
) -> Result<ReplayResult, Unrepeatable> {
    let beginning = &journal.beginning;
    let version = || beginning.version.clone();
    if beginning.behavior != super::BEHAVIOR {
        let theirs = beginning.behavior;
        return Err(Unrepeatable::OtherBehavior { version: version(), theirs });
    }
    let secrets = beginning.secrets();
    let machine = beginning.machine(level, secrets.clone());
    let machine = machine.ok_or_else(|| Unrepeatable::Beginning(version()))?;
    let mut replay = Replayer {
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
        has_output: false,
        alive: LiveState::default(),
        written: Vec::new(),
        positions: VecDeque::new(),
        late: Vec::new(),
        later: Vec::new(),
        begun: 0,
        starts: journal.begun.iter().copied().collect(),
    };
    let now = replay.repeat(level)?;
    replay.alive.restart();
    let Replayer {
        machine,
        outcome,
        digest,
        now: delivered_at,
        then: effects,
        alive,
        later,
        file,
        ..
    } = replay;
    let left = ReplayState { digest, delivered_at, effects, alive, later, file };
    Ok(ReplayResult { machine, outcome, now, left })
}

impl<W: ReplayObserver> Replayer<'_, W> {
    fn repeat(&mut self, level: Level) -> Result<Time, Unrepeatable> {
        let mut latest = Time::START;
        self.next_start();
        let journal = self.journal;
        for entry in journal.entries() {
            match entry? {
                JournalEntry::Noted { later, effects, line, noted } => {
                    let at = self.now + Duration::from_nanos(later);
                    latest = latest.max(at);
                    let event = LogEvent::from(noted);
                    if event.level() <= level {
                        let record = self.noted(at, line, event);
                        self.notes.push_back((effects, record));
                    }
                }
                JournalEntry::Delivered { later, delivered } => {
                    self.go_on()?;
                    self.log_notes(u64::MAX);
                    self.now = self.now + Duration::from_nanos(later);
                    latest = latest.max(self.now);
                    self.then = self.digest.count();
                    // Deliveries recorded during a suspension may follow the end of the run.
                    let is_ending = self.digest.count() >= self.begun;
                    match self.outcome {
                        None => self.deliver(delivered)?,
                        Some(_) if is_ending => {}
                        Some(_) => return Err(self.different()),
                    }
                }
                JournalEntry::Started(started) => {
                    self.go_on()?;
                    self.log_notes(u64::MAX);
                    self.alive.orphan_remote_branches(Time::after(started.elapsed));
                    self.next_start();
                }
                JournalEntry::Written { buffer, from, bytes } => {
                    self.written.push((BufferId(buffer), from, bytes));
                }
                JournalEntry::Position { io, change, at } => {
                    let input = SharedInput { io: IoId(io), change };
                    self.positions.push_back((input, at));
                }
                JournalEntry::Suspended { later, signal, .. } => {
                    self.go_on()?;
                    self.log_notes(u64::MAX);
                    let at = self.now + Duration::from_nanos(later);
                    latest = latest.max(at);
                    let event = LogEvent::Suspended(signal);
                    if event.level() <= level {
                        self.watch.logged(&self.noted(at, 0, event).hide(&self.secrets));
                    }
                }
                JournalEntry::Outlived { by } => {
                    self.alive.outlived_by(Duration::from_nanos(by));
                }
                JournalEntry::Began(_) | JournalEntry::Over(_) | JournalEntry::Reported => {}
            }
            self.records += 1;
        }
        self.go_on()?;
        self.check()?;
        self.log_notes(u64::MAX);
        if self.checks.peek().is_none() { Ok(latest) } else { Err(self.different()) }
    }

    /// Begins the next start, which first begins the effects that were never begun.
    fn next_start(&mut self) {
        self.begun = self.starts.pop_front().unwrap_or(u64::MAX);
        self.written.clear();
        self.positions.clear();
        self.alive.restart();
        self.late.append(&mut self.later);
    }

    /// Applies an effect to the state of the world.
    fn ask(&mut self, effect: Effect) {
        let kept = match &effect {
            Effect::KeepInput(replay) => self.alive.fd_graph.kept(*replay),
            _ => None,
        };
        self.alive.on_effect(effect);
        // The position was recorded before the next effect.
        if let Some(kept) = kept
            && let Some((input, at)) = self.positions.front().copied()
            && input == kept.input
        {
            self.positions.pop_front();
            self.alive.position(input, at);
        }
    }

    /// Delivers a recorded event or time to the machine.
    fn deliver(&mut self, delivered: Delivered) -> Result<(), Unrepeatable> {
        for (buffer, from, bytes) in self.written.drain(..) {
            self.alive.written(buffer, from, &bytes)?;
        }
        for (input, at) in self.positions.drain(..) {
            self.alive.position(input, at);
        }
        let event = match delivered {
            Delivered::Time => None,
            Delivered::Event(event) => Some(event),
            Delivered::Content { operation, buffer } => {
                let content = self.alive.content(buffer).ok_or_else(|| self.different())?;
                NoMemory::unless(content.len())?;
                Some(Event::Done { operation, result: Ok(Reply::Text(content.clone())) })
            }
        };
        self.has_output = true;
        match event {
            Some(event) => {
                self.alive.on_event(&event);
                self.watch.on_event(&event);
                self.machine.handle_event(self.now, event);
            }
            None => self.machine.handle_timeout(self.now),
        }
        Ok(())
    }

    /// Polls the output of the machine until the machine waits.
    fn go_on(&mut self) -> Result<(), Unrepeatable> {
        for effect in std::mem::take(&mut self.late) {
            self.ask(effect);
        }
        while self.has_output {
            self.check()?;
            self.log_notes(self.digest.count() - self.then);
            match self.machine.poll_output() {
                Output::Effect(Effect::Log(record)) => {
                    self.watch.logged(&record.hide(&self.secrets));
                }
                Output::Effect(effect) => {
                    self.digest.add(&effect);
                    self.watch.on_effect(&effect);
                    if self.digest.count() > self.begun {
                        self.later.push(effect);
                    } else {
                        self.ask(effect);
                    }
                }
                Output::Timeout(_) => self.has_output = false,
                Output::Finished(outcome) => {
                    self.outcome = Some(outcome);
                    self.has_output = false;
                }
            }
        }
        Ok(())
    }

    /// Logs the driver's records that follow the first `effects` effects.
    fn log_notes(&mut self, effects: u64) {
        while let Some((_, record)) =
            self.notes.front().filter(|(after, _)| u64::from(*after) <= effects)
        {
            self.watch.logged(&record.hide(&self.secrets));
            self.notes.pop_front();
        }
    }

    /// Compares the effects with the recorded checksums.
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

    fn noted(&self, at: Time, line: u32, event: LogEvent) -> LogRecord {
        LogRecord::of_shell(at, Arc::clone(&self.file), line, event)
    }
}
