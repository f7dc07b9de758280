//! The log: records as lines of text or JSON, in a file that several shells may share or on
//! standard error.

mod base64;
mod groups;
mod json;
mod machines;
mod repeats;
mod results;
mod summary;
mod text;
mod zone;

#[cfg(test)]
mod tests;

pub use self::results::Results;
pub use self::summary::Summary;
pub use self::text::{Told, one_line, signal_name};
pub use self::zone::local_zone;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::groups::Groups;
use self::repeats::{Line, Repeats};
use ftsh_machine::Failure;
use ftsh_machine::record::{Level, LogEvent, Record};
use ftsh_machine::time::Time;
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};

/// How records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One line for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What every line of a log tells about its run.
#[derive(Clone, Debug)]
pub struct Style {
    /// Text or JSON.
    pub format: Format,
    /// Whether times are seconds since 1970 instead of local time.
    pub decimal: bool,
    /// The shell's process id.
    pub pid: u32,
    /// Tells this run from others of the same script; only in JSON.
    pub run: String,
}

/// Makes lines of records.
pub struct Lines {
    style: Style,
    /// Looked up when it is first needed.
    zone: Option<TimeZone>,
    line: String,
}

impl Lines {
    /// Lines of this style.
    pub fn new(style: Style) -> Self {
        Self { style, zone: None, line: String::new() }
    }

    /// What is written of a record at this moment, with a newline.
    pub fn render(&mut self, now: Timestamp, record: &Record) -> &str {
        self.line.clear();
        let zone = self.zone.get_or_insert_with(local_zone);
        match self.style.format {
            Format::Text => text::line(&mut self.line, now, zone, &self.style, record),
            Format::Json => json::line(&mut self.line, now, zone, &self.style, record),
        }
        self.line.push('\n');
        &self.line
    }
}

/// So many stages of a pipeline may fail and still all be told.
const MOST_WITHHELD: usize = 100;

/// A log that is open.
pub struct Log {
    writer: NonBlockingWriter,
    /// Whether that is standard error.
    is_error: bool,
    /// Whether people may see in another way what a `try` waits for.
    has_line: bool,
    /// Long delays that are told only if the line turns out not to show them, since when.
    held_back: Vec<(Timestamp, Record)>,
    level: Level,
    lines: Lines,
    broken: bool,
    /// The failures that may be left to the report at the end: of each task its last.
    withheld: Vec<Record>,
    /// How many lines are missing, for nobody read those before; and the script of the last.
    missing: Option<(u64, Arc<str>)>,
    /// Lines of branches whose output is written as a group.
    groups: Groups,
    /// Failures that happen again and again.
    repeats: Repeats,
}

impl Log {
    /// A log at the end of the file `path`, which is made if needed, or on standard error.
    pub fn open(path: Option<&Path>, level: Level, style: Style) -> io::Result<Self> {
        let writer = match path {
            // Lines of several shells don't mix: each is one write to a file opened for appending.
            Some(path) => {
                NonBlockingWriter::new(OpenOptions::new().append(true).create(true).open(path)?)
            }
            None => non_blocking_writer::standard_error().clone(),
        };
        Ok(Self {
            writer,
            is_error: path.is_none(),
            has_line: false,
            held_back: Vec::new(),
            level,
            lines: Lines::new(style),
            broken: false,
            withheld: Vec::new(),
            missing: None,
            groups: Groups::default(),
            repeats: Repeats::default(),
        })
    }

    /// There is a line beside the log, if that is on standard error, which may show what a `try`
    /// waits for. Whether it does is told by [`line_shows`](Self::line_shows) a moment later.
    pub fn stands_beside_line(&mut self) {
        self.has_line = self.is_error;
    }

    /// Tells of the long delays that have begun, unless the line shows them: others may have the
    /// terminal, and a shell in the background has no line.
    pub fn line_shows(&mut self, shown: bool) {
        for (begun, record) in std::mem::take(&mut self.held_back) {
            if !shown {
                self.put(begun, &record);
            }
        }
    }

    /// Writes a record, if the level asks for it. A log that can't be written is told once, on
    /// standard error; the run goes on.
    pub fn write(&mut self, record: &Record) {
        if let LogEvent::GroupEnded(branch) = record.event {
            let waiting = self.repeats.take(|repeated| repeated.group == Some(branch));
            self.put_all(waiting);
            if let Some(lines) = self.groups.take(branch) {
                self.put_text(&lines, &record.file);
            }
            return;
        }
        if record.level > self.level {
            return;
        }
        let now = Timestamp::now();
        // Higher levels tell of each attempt.
        if self.is_read_by_people() && self.level <= Level::FAILURES {
            if Repeats::counts(record) {
                let due = self.repeats.add(now, record);
                return self.put_all(due);
            }
            // The task has come to something else.
            let waiting = self.repeats.take(|repeated| repeated.task == record.task);
            self.put_all(waiting);
        }
        if self.withhold(record) {
            return;
        }
        if self.has_line && record.event.delay().is_some() && record.event.level() > self.level {
            self.held_back.push((now, record.clone()));
        } else {
            self.put(now, record);
        }
    }

    /// Whether a record is left to the report.
    fn withhold(&mut self, record: &Record) -> bool {
        let is_left =
            self.is_read_by_people() && record.uncaught && record.event.failure().is_some();
        if is_left {
            self.withheld.retain(|withheld| withheld.task != record.task);
            if self.withheld.len() == MOST_WITHHELD {
                self.withheld.remove(0); // a prompt's, told long ago
            }
            self.withheld.push(record.clone());
        }
        is_left
    }

    /// An earlier start of the run has written this record, or left it to the report.
    pub fn recall(&mut self, record: &Record) {
        if record.level <= self.level {
            self.withhold(record);
        }
    }

    /// The run is called so from now on.
    pub fn name_run(&mut self, run: &str) {
        self.lines.style.run = run.into();
    }

    fn put(&mut self, at: Timestamp, record: &Record) {
        self.put_with(at, record, "");
    }

    fn put_all(&mut self, lines: Vec<Line>) {
        for Line { at, record, words } in lines {
            self.put_with(at, &record, &words);
        }
    }

    /// Writes a line with these words at its end, or keeps it for after the group that it belongs to.
    fn put_with(&mut self, at: Timestamp, record: &Record, words: &str) {
        let mut line = self.lines.render(at, record).to_owned();
        line.insert_str(line.len() - 1, words);
        let group = record.group.filter(|_| self.is_read_by_people());
        let text = match group {
            Some(group) => self.groups.add(group, &line),
            None => Some(line),
        };
        if let Some(text) = text {
            self.put_text(&text, &record.file);
        }
    }

    fn put_text(&mut self, text: &str, file: &Arc<str>) {
        let count = text.lines().count() as u64;
        if let Some((missing, last)) = &mut self.missing {
            if !self.writer.is_idle() {
                *missing += count;
                *last = Arc::clone(file);
                return;
            }
            self.tell_missing();
        }
        match self.writer.offer(text) {
            Ok(true) => {}
            Ok(false) => self.missing = Some((count, Arc::clone(file))),
            // Nobody would be left to be told.
            Err(_) if self.is_error || self.broken => {}
            Err(error) => {
                self.broken = true;
                non_blocking_writer::standard_error()
                    .say(&format!("ftsh: can't write the log: {error}\n"));
            }
        }
    }

    /// Writes what waits, and how many lines are missing, if any are. To be called at the end.
    pub fn finish(&mut self) {
        let waiting = self.repeats.take(|_| true);
        self.put_all(waiting);
        let lines = self.groups.take_all();
        if !lines.is_empty() {
            self.put_text(&lines, &"".into());
        }
        self.tell_missing();
    }

    fn tell_missing(&mut self) {
        let Some((count, file)) = self.missing.take() else { return };
        let lines = if count == 1 { "line is" } else { "lines are" };
        let event = LogEvent::Note(format!("{count} {lines} missing here: nobody read the log"));
        self.writer.say(
            self.lines.render(Timestamp::now(), &Record::of_shell(Time::START, file, 0, event)),
        );
    }

    /// Whether its lines are text on standard error. Then the failure that ends the run is left to
    /// the report that comes last.
    fn is_read_by_people(&self) -> bool {
        self.is_error && self.lines.style.format == Format::Text
    }

    /// The failure that was about to end the run when it was logged. Something else may have ended
    /// it while what it had started was being ended.
    pub fn withheld(&self) -> Option<&Failure> {
        self.withheld.last()?.event.failure()
    }

    /// Writes what was left to the report, but for the failure that this tells.
    pub fn write_rest(&mut self, told: &Failure) {
        for record in std::mem::take(&mut self.withheld) {
            let is_told = |failure: &Failure| {
                (failure.line, &failure.message, &failure.command)
                    == (told.line, &told.message, &told.command)
            };
            if !record.event.failure().is_some_and(is_told) {
                self.put(Timestamp::now(), &record);
            }
        }
    }

    /// Whether its lines are JSON on standard error, for a program: then a report in words would
    /// be in the way.
    pub fn is_read_by_programs(&self) -> bool {
        self.is_error && self.lines.style.format == Format::Json
    }
}
