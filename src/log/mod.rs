//! The log: records as lines of text or JSON, in a file that several shells may share or on
//! standard error.

mod json;
mod text;

#[cfg(test)]
mod tests;

pub use self::text::one_line;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::machine::Failure;
use crate::machine::record::{Level, LogEvent, Record};

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

enum Sink {
    File(File),
    StandardError,
}

/// A log that is open.
pub struct Log {
    sink: Sink,
    level: Level,
    style: Style,
    zone: Option<TimeZone>,
    line: String,
    /// The last failure that standard error was told.
    told: Option<Failure>,
    broken: bool,
}

impl Log {
    /// A log at the end of the file `path`, which is made if needed, or on standard error.
    pub fn open(path: Option<&Path>, level: Level, style: Style) -> io::Result<Self> {
        let sink = match path {
            // Lines of several shells don't mix: each is one write to a file opened for appending.
            Some(path) => Sink::File(OpenOptions::new().append(true).create(true).open(path)?),
            None => Sink::StandardError,
        };
        Ok(Self { sink, level, style, zone: None, line: String::new(), told: None, broken: false })
    }

    /// Writes a record, if the level asks for it. A log that can't be written is told once, on
    /// standard error; the run goes on.
    pub fn write(&mut self, record: &Record) {
        if record.event.level() > self.level {
            return;
        }
        if matches!(self.sink, Sink::StandardError)
            && let Some(failure) = record.event.failure()
        {
            self.told = Some(failure.clone());
        }
        self.line.clear();
        let now = Timestamp::now();
        let zone = self.zone.get_or_insert_with(TimeZone::system);
        match self.style.format {
            Format::Text => text::line(&mut self.line, now, zone, &self.style, record),
            Format::Json => json::line(&mut self.line, now, zone, &self.style, record),
        }
        self.line.push('\n');
        let written = match &mut self.sink {
            Sink::File(file) => file.write_all(self.line.as_bytes()),
            Sink::StandardError => {
                // Nobody is left to be told.
                let _ = io::stderr().write_all(self.line.as_bytes());
                Ok(())
            }
        };
        if let Err(error) = written
            && !self.broken
        {
            self.broken = true;
            let _ = writeln!(io::stderr(), "ftsh: can't write the log: {error}");
        }
    }

    /// Whether standard error was told of this failure last, so that it needn't be told again.
    pub fn has_told(&self, failure: &Failure) -> bool {
        self.told.as_ref() == Some(failure)
    }
}

impl LogEvent {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::TryFailed { failure, .. } => Some(failure),
            _ => None,
        }
    }
}
