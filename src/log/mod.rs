//! Log of records as lines of text or JSON, in a file or on standard error. Several shells may
//! share the file.

mod groups;
mod json;
mod machines;
mod repeats;
mod results;
mod summary;
mod text;

#[cfg(test)]
mod tests;

pub use self::results::Results;
pub use self::summary::Summary;
pub use self::text::{EventText, one_line, signal_name};
pub use ftsh_process::local_zone;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use self::groups::GroupedLines;
use self::repeats::{DueLine, Repeats};
use ftsh_machine::Failure;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::time::Time;
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};
use ftsh_sys::os_error::plain;

/// Format of log records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line of text for each record.
    #[default]
    Text,
    /// A line with a JSON object for each record.
    Json,
}

/// Properties shared by all lines of a log.
#[derive(Clone, Debug)]
pub struct LogStyle {
    /// Text or JSON.
    pub format: Format,
    /// True if times are seconds since 1970 instead of local time.
    pub decimal: bool,
    /// The shell's process id.
    pub pid: u32,
    /// Id of the run among runs of the same script; only in JSON.
    pub run: String,
}

/// Makes lines of records.
pub struct LineRenderer {
    style: LogStyle,
    /// Local time zone, loaded on first use.
    zone: Option<TimeZone>,
    line: String,
}

impl LineRenderer {
    /// Creates a renderer of lines in the given style.
    pub fn new(style: LogStyle) -> Self {
        Self { style, zone: None, line: String::new() }
    }

    /// Renders a record with the given time as a line with a newline.
    pub fn render(&mut self, now: Timestamp, record: &LogRecord) -> &str {
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

/// Returns the priority of records with a level, as systemd's journal reads it.
fn priority(level: Level) -> u8 {
    let levels = [Level::ENDING, Level::FAILURES, Level::COMMANDS];
    let lower = levels.iter().filter(|it| level > **it).count();
    non_blocking_writer::ERROR_PRIORITY + lower as u8
}

/// Limit on failures left to the report. A pipeline has a failure for each failed stage.
const MAX_WITHHELD: usize = 100;

/// An open log.
pub struct LogWriter {
    writer: NonBlockingWriter,
    /// True if the log goes to standard error.
    is_error: bool,
    /// True if a status line may show the reason of a wait.
    has_status_line: bool,
    /// Long delays with their start. The log gets the delays unless the status line shows them.
    held_back: Vec<(Timestamp, LogRecord)>,
    level: Level,
    lines: LineRenderer,
    broken: bool,
    /// Failures left to the report at the end: the latest failure of each task.
    withheld: Vec<LogRecord>,
    /// Number of lines lost because no reader took earlier lines, and the script of the latest lost
    /// line.
    missing: Option<(u64, Arc<str>)>,
    /// Held back lines of branches with grouped output.
    groups: GroupedLines,
    /// Repeated failures.
    repeats: Repeats,
}

/// Opens a file for appending, and creates it if needed. Fails at once for a named pipe that no
/// process reads.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::other("no process reads the named pipe"),
        _ => error,
    })?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    Ok(file)
}

impl LogWriter {
    /// Opens a log at the end of the file `path`, or on standard error. Creates the file if needed.
    pub fn open(path: Option<&Path>, level: Level, style: LogStyle) -> io::Result<Self> {
        let writer = match path {
            // Each line is a single write to a file opened for appending, because lines of several
            // shells must not mix.
            Some(path) => NonBlockingWriter::new(open_to_append(path)?),
            None => non_blocking_writer::standard_error().clone(),
        };
        Ok(Self {
            writer,
            is_error: path.is_none(),
            has_status_line: false,
            held_back: Vec::new(),
            level,
            lines: LineRenderer::new(style),
            broken: false,
            withheld: Vec::new(),
            missing: None,
            groups: GroupedLines::default(),
            repeats: Repeats::default(),
        })
    }

    /// Enables the status line beside a log on standard error. A later call of
    /// [`line_shows`](Self::line_shows) reports if the line shows the reason of a wait.
    pub fn enable_status_line(&mut self) {
        self.has_status_line = self.is_error;
    }

    /// Logs the long delays in progress unless the status line shows them. The line is hidden while
    /// another program uses the terminal or the shell runs in the background.
    pub fn line_shows(&mut self, shown: bool) {
        for (begun, record) in std::mem::take(&mut self.held_back) {
            if !shown {
                self.put(begun, &record);
            }
        }
    }

    /// Writes a record if its level is enabled. Reports the first write error on standard error;
    /// the run continues.
    pub fn write(&mut self, record: &LogRecord) {
        match record.event {
            LogEvent::GroupEnded(branch) => {
                self.put_repeats(|repeated| repeated.around.group == Some(branch));
                if let Some(lines) = self.groups.take(branch) {
                    self.put_text(&lines, &record.file);
                }
                return;
            }
            LogEvent::RetriesEnded(depth) => {
                return self.put_repeats(|it| it.task == record.task && it.around.depth >= depth);
            }
            _ if record.level > self.level => return,
            LogEvent::Interrupted(_) | LogEvent::Suspended(_) => self.put_repeats(|_| true),
            _ => {}
        }
        let now = Timestamp::now();
        // Higher levels log each attempt.
        if self.is_read_by_people() && self.level <= Level::FAILURES {
            if Repeats::counts(record) {
                let due = self.repeats.add(now, record);
                return self.put_all(due);
            }
            // Another event of the task ends the repetition.
            self.put_repeats(|repeated| repeated.task == record.task);
        }
        if self.withhold(record) {
            return;
        }
        if self.has_status_line
            && record.event.delay().is_some()
            && record.event.level() > self.level
        {
            self.held_back.push((now, record.clone()));
        } else {
            self.put(now, record);
        }
    }

    /// Keeps a record for the report at the end. True if the record was kept.
    fn withhold(&mut self, record: &LogRecord) -> bool {
        let is_left =
            self.is_read_by_people() && record.uncaught && record.event.failure().is_some();
        if is_left {
            self.withheld.retain(|withheld| withheld.task != record.task);
            if self.withheld.len() == MAX_WITHHELD {
                self.withheld.remove(0); // reported by the prompt long ago
            }
            self.withheld.push(record.clone());
        }
        is_left
    }

    /// Takes in a record written, or left to the report, by an earlier start of the run.
    pub fn recall(&mut self, record: &LogRecord) {
        if record.level <= self.level {
            self.withhold(record);
        }
    }

    /// Sets the id of the run for later lines.
    pub fn name_run(&mut self, run: &str) {
        self.lines.style.run = run.into();
    }

    fn put(&mut self, at: Timestamp, record: &LogRecord) {
        self.put_with(at, record, "");
    }

    /// Writes the postponed lines of the selected failures, which have happened for the last time.
    fn put_repeats(&mut self, which: impl Fn(&LogRecord) -> bool) {
        let waiting = self.repeats.take(Timestamp::now(), which);
        self.put_all(waiting);
    }

    fn put_all(&mut self, lines: Vec<DueLine>) {
        for DueLine { at, record, words } in lines {
            self.put_with(at, &record, &words);
        }
    }

    /// Writes a line with the given words at its end, or keeps the line until its group has ended.
    fn put_with(&mut self, at: Timestamp, record: &LogRecord, words: &str) {
        let mut line = self.lines.render(at, record).to_owned();
        line.insert_str(line.len() - 1, words);
        let line = self.writer.prioritized(priority(record.level), line.into()).into_owned();
        let group = record.around.group.filter(|_| self.is_read_by_people());
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
            self.write_missing();
        }
        match self.writer.offer(text) {
            Ok(true) => {}
            Ok(false) => self.missing = Some((count, Arc::clone(file))),
            // An error on standard error cannot be reported.
            Err(_) if self.is_error || self.broken => {}
            Err(error) => {
                self.broken = true;
                non_blocking_writer::standard_error()
                    .print(&format!("ftsh: can't write the log: {}\n", plain(&error)));
            }
        }
    }

    /// Writes the lines held back and the number of lost lines. Called at the end of the run.
    pub fn finish(&mut self) {
        self.put_repeats(|_| true);
        let lines = self.groups.take_all();
        if !lines.is_empty() {
            self.put_text(&lines, &"".into());
        }
        self.write_missing();
    }

    fn write_missing(&mut self) {
        let Some((count, file)) = self.missing.take() else { return };
        let lines = if count == 1 { "line is" } else { "lines are" };
        let event = LogEvent::Note(format!("{count} {lines} missing here: nobody read the log"));
        self.writer.print(
            self.lines.render(Timestamp::now(), &LogRecord::of_shell(Time::START, file, 0, event)),
        );
    }

    /// True if the log has no file of its own.
    pub fn is_on_standard_error(&self) -> bool {
        self.is_error
    }

    /// True if the log is text on standard error. The report then prints the failure at the end of
    /// the run, and the log omits the failure.
    fn is_read_by_people(&self) -> bool {
        self.is_error && self.lines.style.format == Format::Text
    }

    /// Returns the latest failure left to the report. The run may have ended for another reason
    /// while its processes were being ended.
    pub fn withheld(&self) -> Option<&Failure> {
        self.withheld.last()?.event.failure()
    }

    /// Writes the failures left to the report, except the reported failure.
    pub fn write_rest(&mut self, reported: &Failure) {
        for record in std::mem::take(&mut self.withheld) {
            let is_reported = |failure: &Failure| {
                (failure.line, &failure.message, &failure.command)
                    == (reported.line, &reported.message, &reported.command)
            };
            if !record.event.failure().is_some_and(is_reported) {
                self.put(Timestamp::now(), &record);
            }
        }
    }

    /// True if the log is JSON on standard error. A report in words would disturb the reading
    /// program.
    pub fn is_read_by_programs(&self) -> bool {
        self.is_error && self.lines.style.format == Format::Json
    }
}
