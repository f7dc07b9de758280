//! What came of a script's tries, and what one client's log says.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh::log::{EventText, one_line};
use ftsh_machine::Time;
use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{LogEvent, LogRecord};

/// Counts what becomes of tries, by their lines.
#[derive(Clone, Debug, Default)]
pub struct Tries {
    /// By script and line.
    pub by_line: BTreeMap<u32, Tried>,
    /// The client whose log is kept, and the log.
    pub kept: Option<(usize, Log)>,
    /// Since when attempts are being made: by which client, in which task and line.
    since: BTreeMap<(usize, Option<TaskId>, u32), Time>,
}

/// What became of a `try`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tried {
    /// How often it was begun.
    pub begun: u64,
    /// How many attempts it made.
    pub attempts: u64,
    /// The most that it made at once.
    pub most: u64,
    /// How often it succeeded.
    pub succeeded: u64,
    /// How often it gave up.
    pub gave_up: u64,
    /// How long the longest attempt took that succeeded.
    pub longest: Option<Duration>,
}

/// What a client has logged: all of it, or what it began and ended with.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The lines that are kept.
    pub lines: Vec<Line>,
    /// How many are missing after the first [`MOST_LINES`].
    pub missing: usize,
}

/// So many lines of a log are kept from its beginning, and at least as many from its end.
pub const MOST_LINES: usize = 50_000;

/// A line of a log.
#[derive(Clone, Debug)]
pub struct Line {
    /// When.
    pub at: Time,
    /// The line of the script; 0 if there is none.
    pub line: u32,
    /// What happened.
    pub what: String,
}

impl Log {
    fn add(&mut self, record: &LogRecord) {
        let what = one_line(&EventText(&record.event).to_string());
        let line = Line { at: record.at, line: record.line, what };
        // That it starts says nothing new if it ends at once.
        let is_end =
            matches!(record.event, LogEvent::CommandSucceeded { .. } | LogEvent::CommandFailed(_));
        self.lines.pop_if(|last| {
            is_end
                && last.what.starts_with("start: ")
                && (last.at, last.line) == (line.at, line.line)
        });
        self.lines.push(line);
        if self.lines.len() > 3 * MOST_LINES {
            self.missing += self.lines.drain(MOST_LINES..2 * MOST_LINES).count();
        }
    }
}

impl Tries {
    /// Takes a record into account.
    pub fn add(&mut self, client: usize, record: &LogRecord) {
        if let Some((kept, log)) = &mut self.kept
            && *kept == client
        {
            log.add(record);
        }
        let place = (client, record.task, record.line);
        match &record.event {
            LogEvent::Attempt { number, .. } => {
                self.since.insert(place, record.at);
                let tried = self.of(record.line);
                tried.begun += u64::from(*number == 1);
                tried.attempts += 1;
                tried.most = tried.most.max(*number);
            }
            LogEvent::TrySucceeded(_) => {
                let took = self.since.remove(&place).map(|since| record.at - since);
                let tried = self.of(record.line);
                tried.succeeded += 1;
                tried.longest = tried.longest.max(took);
            }
            // Without an attempt it hasn't begun: the limits around it had passed.
            LogEvent::TryFailed { attempts: 1.., .. } => self.of(record.line).gave_up += 1,
            _ => {}
        }
    }

    /// Adds what came of the same tries in another trial.
    pub fn merge(&mut self, other: &Self) {
        for (line, tried) in &other.by_line {
            self.of(*line).add(tried);
        }
    }

    fn of(&mut self, line: u32) -> &mut Tried {
        self.by_line.entry(line).or_default()
    }
}

impl Tried {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.attempts += other.attempts;
        self.most = self.most.max(other.most);
        self.succeeded += other.succeeded;
        self.gave_up += other.gave_up;
        self.longest = self.longest.max(other.longest);
    }
}
