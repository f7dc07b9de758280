//! Results of the branches of a `forall` for programs: a line for each branch.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use bstr::ByteSlice;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{LogStyle, json, local_zone, open_to_append};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::{FailureKind, escape_field};
use ftsh_process::non_blocking_writer::{self, NonBlockingWriter};
use ftsh_sys::os_error::plain;
use ftsh_sys::{FileLock, LockKind};

/// The first line of GNU parallel's job log.
const COLUMNS: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// Host of local branches in GNU parallel's job log.
const HERE: &str = ":";

/// Outcome of a word without a branch, and its host in GNU parallel's job log.
const SKIPPED: &str = "skipped";

/// File with a line for each finished branch.
pub struct Results {
    writer: NonBlockingWriter,
    /// True if lines have the columns of GNU parallel's job log; otherwise lines are JSON objects.
    columns: bool,
    style: LogStyle,
    zone: Option<TimeZone>,
    line: String,
    broken: bool,
}

impl Results {
    /// Level of the needed records.
    pub const LEVEL: Level = Level::STRUCTURES;

    /// Opens the file `path` for appending. Creates the file if needed. Writes columns if the name
    /// ends in `.tsv`.
    pub fn open(path: &Path, style: LogStyle) -> io::Result<Self> {
        let file = open_to_append(path)?;
        let columns = path.extension().is_some_and(|extension| extension == "tsv");
        if columns {
            begin(&file)?;
        }
        // Each line is a single write to a file opened for appending, because lines of several
        // shells must not mix.
        let writer = NonBlockingWriter::new(file);
        Ok(Self { writer, columns, style, zone: None, line: String::new(), broken: false })
    }

    /// Sets the id of the run for later lines.
    pub fn name_run(&mut self, run: &str) {
        self.style.run = run.into();
    }

    /// Writes the line of a branch finished just now. Reports the first write error on standard
    /// error; the run continues.
    pub fn add(&mut self, record: &LogRecord) {
        if let LogEvent::BranchEnded { .. } | LogEvent::BranchSkipped { .. } = &record.event {
            self.line.clear();
            self.render(record, Timestamp::now());
            self.line.push('\n');
            self.put();
        }
    }

    fn put(&mut self) {
        let why = match self.writer.offer(&self.line) {
            Ok(true) => return,
            Ok(false) => "nobody reads them".into(),
            Err(error) => plain(&error),
        };
        if !std::mem::replace(&mut self.broken, true) {
            non_blocking_writer::standard_error()
                .print(&format!("ftsh: can't write the results: {why}\n"));
        }
    }

    fn render(&mut self, record: &LogRecord, now: Timestamp) {
        let (name, word, place, node, failure, attempts, elapsed) = match &record.event {
            LogEvent::BranchEnded { name, word, place, node, failure, attempts, elapsed } => {
                (name, word, place, node.as_deref(), *failure, *attempts, *elapsed)
            }
            LogEvent::BranchSkipped { name, word, place } => {
                (name, word, place, None, None, 0, Duration::ZERO)
            }
            _ => return,
        };
        let is_skipped = matches!(record.event, LogEvent::BranchSkipped { .. });
        let length = SignedDuration::try_from(elapsed).unwrap_or_default();
        let started = now.checked_sub(length).unwrap_or(now);
        if self.columns {
            let (status, signal) = match failure {
                None => (0, 0),
                Some((FailureKind::Signal, signal)) => (0, signal),
                Some((kind, code)) => (kind.exit_code(code), 0),
            };
            // Writing to a string can't fail.
            let _ = write!(
                self.line,
                "{}\t{}\t{:.3}\t{:.3}\t0\t0\t{status}\t{signal}\t{}",
                place + 1,
                match node {
                    Some(node) => escape_field(node.as_bytes()),
                    None if is_skipped => SKIPPED.into(),
                    None => HERE.into(),
                },
                started.as_microsecond() as f64 / 1e6,
                elapsed.as_secs_f64(),
                escape_field(word),
            );
            return;
        }
        let zone = self.zone.get_or_insert_with(local_zone);
        let status = failure.map_or(0, |(kind, code)| kind.exit_code(code));
        let mut fields = vec![
            ("start", json::moment(started, zone, &self.style)),
            ("duration", json::seconds(elapsed)),
            ("status", json!(status)),
            ("outcome", json!(if is_skipped { SKIPPED } else { json::outcome(failure) })),
            ("attempts", json!(attempts)),
            ("name", json!(name)),
            ("word", json!(word.to_str_lossy())),
            ("script", json!(*record.file)),
            ("line", json!(record.line)),
            ("run", json!(self.style.run)),
        ];
        fields.extend(json::word_bytes(word));
        fields.extend(node.map(|node| ("node", json!(node))));
        json::object(&mut self.line, &fields);
    }
}

/// Writes the header line to an empty file. A lock keeps several shells from writing the header at
/// the same time.
fn begin(file: &File) -> io::Result<()> {
    // On file systems without locks, two header lines are better than none.
    let _lock = FileLock::lock(file.try_clone()?, LockKind::Exclusive);
    let data = file.metadata()?;
    if data.is_file() && data.len() == 0 {
        // An error is reported with the first branch.
        let _ = (&*file).write_all(COLUMNS.as_bytes());
    }
    Ok(())
}
