//! Status of a run for people: the status line and page, from a snapshot of the machine.

use std::time::{Duration, Instant};

use super::ProcessDriver;
use crate::non_blocking_writer::standard_error;
use crate::supervisor::Supervision;
use crate::tty::{columns, is_in_foreground};
use ftsh_machine::Machine;
use ftsh_machine::driver::Driver;
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
        if self.console.line().take_page_request() {
            self.console.line().hide();
            // Errors are ignored: no other descriptor is available for a message.
            let _ = standard_error().offer(&self.status_page(machine));
        }
        let due = self.console.line().take_update();
        if !self.console.shows_line() {
            return;
        }
        if machine.is_finished() {
            self.console.line().rest();
        } else if due {
            let due = self.show_line(machine, Instant::now());
            self.console.line().schedule(due);
        } else if self.processes.has_no_commands() {
            self.console.line().reconsider();
        }
        self.console.decide_delay(due);
    }

    pub(super) fn status_page(&self, machine: &Machine) -> String {
        let shell = self.supervision.as_ref().map(Supervision::shell_pid);
        let shell = shell.unwrap_or(self.processes.parent() as u32);
        let status = machine.status(status::TASKS_ON_PAGE, self.now());
        status::page(&status, self.console.file(), shell)
    }

    /// Updates the line, if no other process uses the terminal. Returns the time of the next
    /// update.
    fn show_line(&mut self, machine: &Machine, now: Instant) -> Option<Instant> {
        if !self.processes.are_quiet() {
            self.console.line().hide_for_output();
            return None; // the end of a command triggers the next update
        }
        let monitor = self.job_control.key_monitor();
        if self.processes.has_others(monitor) || self.tables.relays().use_the_terminal() {
            self.console.line().hide_for_output();
            return Some(now + SLOW);
        }
        let status = machine.status(status::TASKS_FOR_LINE, self.now());
        let columns = columns().unwrap_or(80);
        let layout = status::StatusLayout {
            columns: columns.saturating_sub(ECHO),
            has_places: self.console.has_lines(),
        };
        let line = status::line(&status, layout);
        match line.filter(|_| is_in_foreground()) {
            Some(text) => self.console.line().show(text, columns),
            None => self.console.line().hide(),
        }
        let interval = if status::is_fast(&status) { FAST } else { SLOW };
        let interval = if self.console.line().is_shown() { interval } else { SLOW };
        Some(now + interval.max(now.elapsed() * SHARE))
    }
}
