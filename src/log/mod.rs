//! The log: records as lines of text or JSON, in a file that several shells may share or on
//! standard error.

mod json;
mod summary;
mod text;
mod zone;

#[cfg(test)]
mod tests;

pub use self::summary::Summary;
pub use self::text::one_line;
pub use self::zone::local_zone;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::machine::Failure;
use crate::machine::record::{Level, Record};

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
    broken: bool,
    /// The failure that is left to the report at the end.
    withheld: Option<Box<Failure>>,
}

impl Log {
    /// A log at the end of the file `path`, which is made if needed, or on standard error.
    pub fn open(path: Option<&Path>, level: Level, style: Style) -> io::Result<Self> {
        let sink = match path {
            // Lines of several shells don't mix: each is one write to a file opened for appending.
            Some(path) => Sink::File(OpenOptions::new().append(true).create(true).open(path)?),
            None => Sink::StandardError,
        };
        Ok(Self {
            sink,
            level,
            style,
            zone: None,
            line: String::new(),
            broken: false,
            withheld: None,
        })
    }

    /// Writes a record, if the level asks for it. A log that can't be written is told once, on
    /// standard error; the run goes on.
    pub fn write(&mut self, record: &Record) {
        if record.level > self.level {
            return;
        }
        if self.is_read_by_people()
            && let Some(failure) = record.uncaught.then(|| record.event.failure()).flatten()
        {
            self.withheld = Some(Box::new(failure.clone()));
            return;
        }
        self.line.clear();
        let now = Timestamp::now();
        let zone = self.zone.get_or_insert_with(local_zone);
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

    /// Whether its lines are text on standard error. Then the failure that ends the run is left to
    /// the report that comes last.
    fn is_read_by_people(&self) -> bool {
        matches!(self.sink, Sink::StandardError) && self.style.format == Format::Text
    }

    /// The failure that was about to end the run when it was logged. Something else may have ended
    /// it while what it had started was being ended.
    pub fn withheld(&self) -> Option<&Failure> {
        self.withheld.as_deref()
    }

    /// Whether its lines are JSON on standard error, for a program: then a report in words would
    /// be in the way.
    pub fn is_read_by_programs(&self) -> bool {
        matches!(self.sink, Sink::StandardError) && self.style.format == Format::Json
    }
}
