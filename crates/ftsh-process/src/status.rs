//! Status of a run for people: the status line and page, from a snapshot of the machine, and log
//! records of the driver itself.

use std::time::{Duration, Instant};

use super::ProcessDriver;
use super::jobs::UserNote;
use super::procs::list;
use super::supervisor::Supervision;
use super::tty::{columns, is_in_foreground};
use crate::non_blocking_writer::standard_error;
use ftsh_machine::Machine;
use ftsh_machine::driver::Driver;
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::status::text as status;

/// Update interval of a line with tenths of seconds.
const FAST: Duration = Duration::from_millis(100);
/// Update interval of other lines, and interval of checks if a line may be shown.
const SLOW: Duration = Duration::from_secs(1);
/// Columns left free for the `^C` that a terminal echoes.
const ECHO: usize = 3;
/// Updates use at most one part in this many of the time.
const SHARE: u32 = 50;

impl ProcessDriver {
    /// Shows the requested page and updates the line.
    pub(super) fn update_status(&mut self, machine: &Machine) {
        if self.tty.status_line.take_page_request() {
            self.tty.status_line.hide();
            // Errors are ignored: no other descriptor is available for a message.
            let _ = standard_error().offer(&self.status_page(machine));
        }
        let due = self.tty.status_line.take_update();
        if !self.tty.status_line.is_on() {
            return;
        }
        if machine.is_finished() {
            self.tty.status_line.rest();
        } else if due {
            let due = self.show_line(machine, Instant::now());
            self.tty.status_line.schedule(due);
        } else if self.commands.is_empty() {
            self.tty.status_line.reconsider();
        }
        if self.tty.status_line.take_delay_decision(due) {
            (self.attachments.line_shows)(self.tty.status_line.is_shown());
        }
    }

    /// Returns the status page.
    pub(super) fn status_page(&self, machine: &Machine) -> String {
        let shell = self.supervision.as_ref().map(Supervision::shell_pid);
        let status = machine.status(status::TASKS_ON_PAGE, self.now());
        status::page(&status, &self.attachments.file, shell.unwrap_or(self.children.parent as u32))
    }

    /// Updates the line, if no other process uses the terminal. Returns the time of the next
    /// update.
    fn show_line(&mut self, machine: &Machine, now: Instant) -> Option<Instant> {
        if self.commands.values().any(|command| !command.quiet) {
            self.tty.status_line.hide_for_output();
            return None; // the end of a command triggers the next update
        }
        if self.has_other_processes() || self.relays.use_the_terminal() {
            self.tty.status_line.hide_for_output();
            return Some(now + SLOW);
        }
        let status = machine.status(status::TASKS_FOR_LINE, self.now());
        let columns = columns().unwrap_or(80);
        let layout = status::StatusLayout {
            columns: columns.saturating_sub(ECHO),
            has_places: self.attachments.has_lines,
        };
        let line = status::line(&status, layout);
        match line.filter(|_| is_in_foreground()) {
            Some(text) => self.tty.status_line.show(text, columns),
            None => self.tty.status_line.hide(),
        }
        let interval = if status::is_fast(&status) { FAST } else { SLOW };
        let interval = if self.tty.status_line.is_shown() { interval } else { SLOW };
        Some(now + interval.max(now.elapsed() * SHARE))
    }

    /// True if processes other than commands exist. Processes left by commands may write at any
    /// time.
    fn has_other_processes(&self) -> bool {
        let ours = |pid: &i32| self.children.is_command(*pid) || self.key_monitor() == Some(*pid);
        let children = || list::children_of_thread(self.children.parent, self.children.parent);
        self.scopes.adopts() && !children().is_ok_and(|children| children.iter().all(ours))
    }
}

impl ProcessDriver {
    /// True if the log contains processes and signals.
    pub(super) fn logs_processes(&self) -> bool {
        self.attachments.log_level >= Level::PROCESSES
    }

    /// Writes an event to the log, if its level is enabled.
    pub(super) fn log(&mut self, line: u32, event: LogEvent) {
        self.log_at(event.level(), line, event);
    }

    /// Writes an event to the log at a given level.
    pub(super) fn log_at(&mut self, level: Level, line: u32, event: LogEvent) {
        if level <= self.attachments.log_level {
            self.tty.status_line.hide();
            let record =
                LogRecord::of_shell(self.now(), self.attachments.file.clone(), line, event);
            (self.attachments.log)(&LogRecord { level, ..record });
        }
    }

    /// Logs the messages about durations, and about commits of killed shells.
    pub(super) fn log_notes_of_workers(&mut self) {
        for (level, note) in self.durations.take_notes() {
            self.log_at(level, 0, LogEvent::Note(note));
        }
        for note in self.cleanup.registry.take_reports() {
            self.log_at(Level::ENDING, 0, LogEvent::Note(note));
        }
    }

    /// Shows a message to the user.
    pub(super) fn show_note(&mut self, note: UserNote) {
        if let Some(note) = note {
            self.tty.status_line.hide();
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
