//! From what a log tells to the rows of a picture.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Bar, End, Kind, Row};
use crate::machine::Outcome;
use crate::machine::effect::{Effect, Run, TaskId};
use crate::machine::outcome::{Failure, Human};
use crate::machine::record::{LogEvent, Record};

/// More rows than this are no picture.
const MOST_ROWS: usize = 2_000;

/// What happened in a run, in rows.
#[derive(Debug, Default)]
pub struct Timeline {
    tasks: BTreeMap<TaskId, Task>,
    rows: usize,
    /// How many rows there would be more.
    pub left_out: usize,
}

/// A task: the script, a branch or a stage.
#[derive(Debug)]
struct Task {
    /// Its own row, then those of its tries, by how deep they are and where.
    rows: Vec<Row>,
    places: BTreeMap<(usize, u32), usize>,
    from: Duration,
    end: Option<(Duration, End)>,
    /// When it was last heard of, and what had come of its last command: no log tells the end of a stage.
    last: (Duration, End),
    /// Those it is in, outermost first.
    tries: Vec<Try>,
    command: Option<(Duration, String)>,
    failure: String,
}

/// A `try` that goes on.
#[derive(Debug)]
struct Try {
    line: u32,
    row: usize,
    /// The attempt that goes on: since when, and its number.
    attempt: Option<(Duration, u64)>,
    /// The delay that goes on: since when, and how long at most.
    delay: Option<(Duration, Duration)>,
}

impl Timeline {
    /// Takes note of what a log tells, at the level of structures at least.
    pub fn logged(&mut self, record: &Record) {
        let at = record.at.elapsed();
        let Some(task) = record.task else { return };
        let label = match &record.event {
            LogEvent::Iteration { kind: "forall" | "forany", name, value } if task.0 > 0 => {
                Some(format!("{name}={value}"))
            }
            _ => None,
        };
        if let Some(task) = self.task(task, at, || match label {
            Some(label) => label,
            None if task.0 == 0 => record.file.to_string(),
            None => format!("stage, line {}", record.line),
        }) {
            let more = task.tell(record, at);
            self.rows += more;
        }
    }

    /// Takes note of what is asked of a driver.
    pub fn asked(&mut self, effect: &Effect) {
        if let Effect::Run(run) = effect {
            let Run { task, deadline: Some(deadline), .. } = &**run else { return };
            if let Some(task) = self.tasks.get_mut(task) {
                let row = task.innermost();
                let deadlines = &mut task.rows[row].deadlines;
                if deadlines.last() != Some(&deadline.elapsed()) {
                    deadlines.push(deadline.elapsed());
                }
            }
        }
    }

    /// All rows, once nothing more is known after `now`.
    pub fn finish(mut self, now: Duration, outcome: Option<&Outcome>) -> (Vec<Row>, usize) {
        let main = match outcome {
            None => End::Unknown,
            Some(Outcome::Succeeded | Outcome::Exited(0)) => End::Succeeded,
            Some(Outcome::Interrupted(_)) => End::Cancelled,
            Some(_) => End::Failed,
        };
        let mut rows = Vec::new();
        for (id, mut task) in std::mem::take(&mut self.tasks) {
            let (to, end) = match (task.end, outcome) {
                (Some(end), _) => end,
                (None, _) if id.0 == 0 => (now, main),
                (None, Some(_)) => task.last,
                (None, None) => (now, End::Unknown),
            };
            task.close_tries(0, to, if outcome.is_some() { End::Cancelled } else { End::Unknown });
            let text = task.rows[0].label.clone();
            let from = task.from;
            task.rows[0].bars.insert(0, Bar { kind: Kind::Task, from, to, end, text });
            rows.append(&mut task.rows);
        }
        (rows, self.left_out)
    }

    fn task(
        &mut self,
        id: TaskId,
        at: Duration,
        label: impl FnOnce() -> String,
    ) -> Option<&mut Task> {
        if !self.tasks.contains_key(&id) {
            if self.rows >= MOST_ROWS {
                self.left_out += 1;
                return None;
            }
            self.rows += 1;
            let depth = usize::from(id.0 > 0);
            let row = Row { label: label(), depth, bars: Vec::new(), deadlines: Vec::new() };
            let task = Task {
                rows: vec![row],
                places: BTreeMap::new(),
                from: at,
                end: None,
                last: (at, End::Unknown),
                tries: Vec::new(),
                command: None,
                failure: String::new(),
            };
            self.tasks.insert(id, task);
        }
        self.tasks.get_mut(&id)
    }
}

impl Task {
    /// Takes note of a record of this task; how many rows it needed more.
    fn tell(&mut self, record: &Record, at: Duration) -> usize {
        let before = self.rows.len();
        self.last.0 = at;
        match &record.event {
            LogEvent::Attempt { number, .. } => self.attempt(record.line, *number, at),
            LogEvent::Delay { delay, .. } | LogEvent::Deferred { delay, .. } => {
                self.end_command(at, End::Cancelled);
                self.end_attempt(at, End::Failed);
                if let Some(last) = self.tries.last_mut() {
                    last.delay = Some((at, *delay));
                }
            }
            LogEvent::TrySucceeded(_) => self.end_try(record.line, at, End::Succeeded),
            LogEvent::TryFailed { failure, .. } => {
                self.failed(failure);
                self.end_try(record.line, at, End::Failed);
            }
            LogEvent::Cancelled => self.close_tries(0, at, End::Cancelled),
            LogEvent::CommandStarted(text) => {
                self.end_command(at, End::Unknown);
                self.command = Some((at, format!("line {}: {text}", record.line)));
            }
            LogEvent::CommandSucceeded { .. } => self.end_command(at, End::Succeeded),
            LogEvent::CommandFailed(failure) => {
                self.failed(failure);
                self.end_command(at, End::Failed);
            }
            LogEvent::Failed(failure) => self.failed(failure),
            LogEvent::BranchEnded { failure, .. } => {
                let end = if failure.is_some() { End::Failed } else { End::Succeeded };
                self.close_tries(0, at, End::Cancelled);
                self.end = Some((at, end));
            }
            _ => {}
        }
        self.rows.len() - before
    }

    fn failed(&mut self, failure: &Failure) {
        self.failure = format!("line {}: {}", failure.line, failure.message);
    }

    /// The row of the innermost `try`, or its own.
    fn innermost(&self) -> usize {
        self.tries.last().map_or(0, |last| last.row)
    }

    fn attempt(&mut self, line: u32, number: u64, at: Duration) {
        let place = self.tries.iter().rposition(|it| it.line == line);
        if let Some(place) = place.filter(|_| number > 1) {
            self.close_tries(place + 1, at, End::Cancelled);
            self.end_attempt(at, End::Failed);
        } else {
            // A `try` that was left without a word, as by `break`.
            if let Some(place) = place {
                self.close_tries(place, at, End::Cancelled);
            }
            let depth = self.tries.len() + 1;
            let next = self.rows.len();
            let row = *self.places.entry((depth, line)).or_insert(next);
            if row == next {
                let depth = self.rows[0].depth + depth;
                let label = format!("try, line {line}");
                self.rows.push(Row { label, depth, bars: Vec::new(), deadlines: Vec::new() });
            }
            self.tries.push(Try { line, row, attempt: None, delay: None });
        }
        self.end_delay(at);
        if let Some(last) = self.tries.last_mut() {
            last.attempt = Some((at, number));
        }
    }

    fn end_try(&mut self, line: u32, at: Duration, end: End) {
        if let Some(place) = self.tries.iter().rposition(|it| it.line == line) {
            self.close_tries(place + 1, at, End::Cancelled);
            self.end_command(at, End::Cancelled);
            self.end_attempt(at, end);
            self.end_delay(at);
            self.tries.pop();
        }
    }

    /// Ends those from a place on.
    fn close_tries(&mut self, place: usize, at: Duration, end: End) {
        self.end_command(at, end);
        while self.tries.len() > place {
            self.end_attempt(at, end);
            self.end_delay(at);
            self.tries.pop();
        }
    }

    fn end_attempt(&mut self, to: Duration, end: End) {
        let Some(last) = self.tries.last_mut() else { return };
        let Some((from, number)) = last.attempt.take() else { return };
        let mut text = format!("attempt {number}, {}", Human(to.saturating_sub(from)));
        if end == End::Failed && !self.failure.is_empty() {
            text += &format!("\n{}", self.failure);
        }
        self.rows[last.row].bars.push(Bar { kind: Kind::Attempt, from, to, end, text });
    }

    fn end_delay(&mut self, now: Duration) {
        let Some(last) = self.tries.last_mut() else { return };
        let Some((from, delay)) = last.delay.take() else { return };
        let to = (from + delay).min(now);
        let text = format!("delay of {}", Human(delay));
        let bar = Bar { kind: Kind::Delay, from, to, end: End::Unknown, text };
        self.rows[last.row].bars.push(bar);
    }

    fn end_command(&mut self, to: Duration, end: End) {
        let Some((from, command)) = self.command.take() else { return };
        let mut text = format!("{command}\n{}", Human(to.saturating_sub(from)));
        if end == End::Failed {
            text += &format!("\n{}", self.failure);
        }
        self.last.1 = end;
        let row = self.innermost();
        self.rows[row].bars.push(Bar { kind: Kind::Command, from, to, end, text });
    }
}
