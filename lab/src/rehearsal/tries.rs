//! Counts of a script's tries, and the log of one client.

use std::collections::BTreeMap;
use std::time::Duration;

use ftsh::log::{EventText, one_line};
use ftsh_machine::Time;
use ftsh_machine::effect::TaskId;
use ftsh_machine::record::{LogEvent, LogRecord};

/// Counts of tries by their lines.
#[derive(Clone, Debug, Default)]
pub struct TryStatistics {
    /// Counts by line of the script.
    pub by_line: BTreeMap<u32, TryCounts>,
    /// Client with a log, and the log.
    pub kept: Option<(usize, ClientLog)>,
    /// Start of each attempt in progress, by client, task and line.
    since: BTreeMap<(usize, Option<TaskId>, u32), Time>,
}

/// Counts of a `try`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TryCounts {
    /// Number of executions.
    pub begun: u64,
    /// Number of attempts.
    pub attempts: u64,
    /// Maximum number of attempts in one execution.
    pub most: u64,
    /// Number of successes.
    pub succeeded: u64,
    /// Number of failures.
    pub gave_up: u64,
    /// Duration of the longest successful attempt.
    pub longest: Option<Duration>,
}

/// Log of a client, complete or without its middle.
#[derive(Clone, Debug, Default)]
pub struct ClientLog {
    /// The lines.
    pub lines: Vec<LogLine>,
    /// Number of missing lines after the first [`MAX_LINES`].
    pub missing: usize,
}

/// Number of lines kept from the beginning of a log, and minimum number kept from its end.
pub const MAX_LINES: usize = 50_000;

/// A line of a log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Time.
    pub at: Time,
    /// Line of the script; 0 if unknown.
    pub line: u32,
    /// Text of the record.
    pub what: String,
}

impl ClientLog {
    fn add(&mut self, record: &LogRecord) {
        let what = one_line(&EventText(&record.event).to_string());
        let line = LogLine { at: record.at, line: record.line, what };
        // The start is redundant if the command ends at once.
        let is_end =
            matches!(record.event, LogEvent::CommandSucceeded { .. } | LogEvent::CommandFailed(_));
        self.lines.pop_if(|last| {
            is_end
                && last.what.starts_with("start: ")
                && (last.at, last.line) == (line.at, line.line)
        });
        self.lines.push(line);
        if self.lines.len() > 3 * MAX_LINES {
            self.missing += self.lines.drain(MAX_LINES..2 * MAX_LINES).count();
        }
    }
}

impl TryStatistics {
    /// Adds a record.
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
            LogEvent::Limit(_) => {
                let tried = self.of(record.line);
                tried.begun += 1;
                tried.attempts += 1;
                tried.most = 1;
            }
            LogEvent::TrySucceeded(_) => {
                let took = self.since.remove(&place).map(|since| record.at - since);
                let tried = self.of(record.line);
                tried.succeeded += 1;
                tried.longest = tried.longest.max(took);
            }
            // A `try` without an attempt has not begun, because limits around it had passed.
            LogEvent::TryFailed { attempts: 1.., .. } => self.of(record.line).gave_up += 1,
            _ => {}
        }
    }

    /// Adds the counts of another trial.
    pub fn merge(&mut self, other: &Self) {
        for (line, tried) in &other.by_line {
            self.of(*line).add(tried);
        }
    }

    fn of(&mut self, line: u32) -> &mut TryCounts {
        self.by_line.entry(line).or_default()
    }
}

impl TryCounts {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.attempts += other.attempts;
        self.most = self.most.max(other.most);
        self.succeeded += other.succeeded;
        self.gave_up += other.gave_up;
        self.longest = self.longest.max(other.longest);
    }
}
