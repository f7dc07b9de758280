//! Messages for people: log records of the driver itself, and the status line.

use super::config::Attachments;
use crate::clock::RunClock;
use crate::jobs::UserNote;
use crate::non_blocking_writer::standard_error;
use crate::tty::StatusLine;
use ftsh_machine::record::{Level, LogEvent, LogRecord};

/// Log and status line, which must not mix on the terminal.
pub(super) struct Console {
    clock: RunClock,
    attachments: Attachments,
    status_line: StatusLine,
}

impl Console {
    /// Creates a console with a hidden line.
    pub(super) fn new(clock: RunClock, attachments: Attachments) -> Self {
        let status_line = StatusLine::new(attachments.status_line);
        Self { clock, attachments, status_line }
    }

    pub(super) fn line(&mut self) -> &mut StatusLine {
        &mut self.status_line
    }

    /// True if a terminal may show a status line.
    pub(super) fn shows_line(&self) -> bool {
        self.status_line.is_on()
    }

    /// Returns the name of the script.
    pub(super) fn file(&self) -> &str {
        &self.attachments.file
    }

    /// True if the script has lines that its user knows.
    pub(super) fn has_lines(&self) -> bool {
        self.attachments.has_lines
    }

    /// Reports whether the line shows the delays that have begun, once that is decided. `looked` is
    /// true if the line was just updated.
    pub(super) fn decide_delay(&mut self, looked: bool) {
        if self.status_line.take_delay_decision(looked) {
            (self.attachments.line_shows)(self.status_line.is_shown());
        }
    }

    /// True if the log contains processes and signals.
    pub(super) fn logs_processes(&self) -> bool {
        self.attachments.log_level >= Level::PROCESSES
    }

    /// Writes a record of the machine to the log, if its level is enabled.
    pub(super) fn log_record(&mut self, record: &LogRecord) {
        if record.level <= self.attachments.log_level {
            self.status_line.hide(); // the log may be on the terminal
            (self.attachments.log)(record);
            if record.event.delay().is_some() {
                self.status_line.expect_delay();
            }
        }
    }

    /// Writes an event to the log, if its level is enabled.
    pub(super) fn log(&mut self, line: u32, event: LogEvent) {
        self.log_at(event.level(), line, event);
    }

    /// Writes an event to the log at a given level.
    pub(super) fn log_at(&mut self, level: Level, line: u32, event: LogEvent) {
        if level <= self.attachments.log_level {
            self.status_line.hide();
            let file = self.attachments.file.clone();
            let record = LogRecord::of_shell(self.clock.now(), file, line, event);
            (self.attachments.log)(&LogRecord { level, ..record });
        }
    }

    /// Writes notes to the log, each at its level.
    pub(super) fn log_notes(&mut self, notes: impl IntoIterator<Item = (Level, String)>) {
        for (level, note) in notes {
            self.log_at(level, 0, LogEvent::Note(note));
        }
    }

    /// Shows a message to the user.
    pub(super) fn show_note(&mut self, note: UserNote) {
        if let Some(note) = note {
            self.status_line.hide();
            standard_error().print(&format!("ftsh: {note}\n"));
            self.log(0, LogEvent::Note(note));
        }
    }

    /// Reports a violated invariant that does not prevent the run from continuing.
    pub(super) fn report_bug(&mut self, what: &str) {
        debug_assert!(false, "{what}");
        self.log(0, LogEvent::Note(format!("{what}: an internal error of ftsh")));
    }
}
