//! Repeating a run: a new machine is told the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::digest::Digest;
use super::entry::{Entry, Head};
use super::read::Journal;
use crate::machine::effect::Effect;
use crate::machine::record::{Level, LogEvent, Record};
use crate::machine::{Machine, Outcome, Output, Time};
use crate::secrets::Secrets;

/// How far a run was repeated.
pub struct Replayed {
    /// The machine as it was when the last thing was recorded.
    pub machine: Machine,
    /// The run's end, if it came to that.
    pub outcome: Option<Outcome>,
    /// When the last thing was recorded.
    pub now: Time,
}

/// Why a run can't be repeated.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Unrepeatable {
    /// Another machine would do something else.
    #[error(
        "it was written by ftsh {version}, which does things another way (behavior {theirs}) than this \
         one (behavior {}): use that version to look at it",
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
}

/// Who sees a run that is repeated.
pub trait Watch {
    /// This is logged.
    fn logged(&mut self, record: &Record);

    /// This is asked of the driver.
    fn asked(&mut self, _effect: &Effect) {}
}

impl<F: FnMut(&Record)> Watch for F {
    fn logged(&mut self, record: &Record) {
        self(record);
    }
}

/// A run that is repeated.
struct Replay<'a, W> {
    machine: Machine,
    journal: &'a Journal,
    checks: VecDeque<&'a Head>,
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
        checks: journal.checks.iter().collect(),
        digest: Digest::default(),
        file: beginning.name.as_str().into(),
        secrets,
        watch,
        now: Time::START,
        then: 0,
        notes: VecDeque::new(),
        records: 0,
        outcome: None,
    };
    replay.repeat(level)?;
    let Replay { machine, outcome, now, .. } = replay;
    Ok(Replayed { machine, outcome, now })
}

impl<W: Watch> Replay<'_, W> {
    fn repeat(&mut self, level: Level) -> Result<(), Unrepeatable> {
        let mut latest = Time::START;
        // It is told the time before it is asked for anything.
        let mut is_begun = false;
        for entry in &self.journal.entries {
            match entry {
                Entry::Noted { later, effects, line, noted } => {
                    let at = self.now + Duration::from_nanos(*later);
                    latest = latest.max(at);
                    let event = LogEvent::from(noted.clone());
                    if event.level() <= level {
                        let record = self.noted(at, *line, event);
                        self.notes.push_back((*effects, record));
                    }
                }
                Entry::Told { later, told } => {
                    if is_begun {
                        self.go_on()?;
                    }
                    is_begun = true;
                    self.tell_notes(u64::MAX);
                    if self.outcome.is_some() {
                        return Err(self.different());
                    }
                    self.now = self.now + Duration::from_nanos(*later);
                    latest = latest.max(self.now);
                    self.then = self.digest.count();
                    match told.clone().into_event() {
                        Some(event) => self.machine.handle_event(self.now, event),
                        None => self.machine.handle_timeout(self.now),
                    }
                }
                Entry::Began(_) | Entry::Over(_) => {}
            }
            self.records += 1;
        }
        if is_begun { self.go_on() } else { self.check() }?;
        self.tell_notes(u64::MAX);
        self.now = latest;
        if self.checks.is_empty() { Ok(()) } else { Err(self.different()) }
    }

    /// Has the machine do all that it does before it has to be told more.
    fn go_on(&mut self) -> Result<(), Unrepeatable> {
        loop {
            self.check()?;
            self.tell_notes(self.digest.count() - self.then);
            match self.machine.poll_output() {
                Output::Effect(Effect::Log(record)) => {
                    self.watch.logged(&record.hide(&self.secrets));
                }
                Output::Effect(effect) => {
                    self.digest.add(&effect);
                    self.watch.asked(&effect);
                }
                Output::Timeout(_) => break,
                Output::Finished(outcome) => {
                    self.outcome = Some(outcome);
                    break;
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
        while let Some(check) = self.checks.front() {
            if check.effects > count {
                break;
            }
            if (check.effects, check.digest) != (count, self.digest.value()) {
                return Err(self.different());
            }
            self.checks.pop_front();
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
