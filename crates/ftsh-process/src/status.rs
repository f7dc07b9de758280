//! What people are told of a run that goes on: the line and the page, from a look at the machine, and the log lines of
//! the driver itself.

use std::io;
use std::time::{Duration, Instant};

use nix::unistd::{getpgrp, tcgetpgrp};

use super::ProcessDriver;
use super::procs::list;
use super::supervisor::Supervision;
use super::tty::columns;
use crate::non_blocking_writer::standard_error;
use ftsh_machine::Machine;
use ftsh_machine::driver::Driver;
use ftsh_machine::record::{Level, LogEvent, Record};
use ftsh_machine::status::text as status;

/// How often a line that counts tenths of seconds changes.
const FAST: Duration = Duration::from_millis(100);
/// How often another line changes, and how often is looked whether there should be one.
const SLOW: Duration = Duration::from_secs(1);
/// Columns left free, so that the `^C` that a terminal shows begins no new line.
const ECHO: usize = 3;
/// Of the time, looking may take the share of 1 / this.
const SHARE: u32 = 50;

impl ProcessDriver {
    /// Shows what there is to show.
    pub(super) fn look_at(&mut self, machine: &Machine) {
        if self.tty.status_line.take_asked() {
            self.tty.status_line.hide();
            // Nobody is left to be told of an error.
            let _ = standard_error().offer(&self.words_for(machine));
        }
        let due = self.tty.status_line.take_look();
        if !self.tty.status_line.is_on() {
            return;
        }
        if machine.is_finished() {
            self.tty.status_line.rest();
        } else if due {
            let due = self.show_line(machine, Instant::now());
            self.tty.status_line.look_again(due);
        } else if self.commands.is_empty() {
            self.tty.status_line.reconsider();
        }
        if self.tty.status_line.takes_stock(due) {
            (self.attachments.line_shows)(self.tty.status_line.is_shown());
        }
    }

    /// What the machine is doing, in words.
    pub(super) fn words_for(&self, machine: &Machine) -> String {
        let shell = self.supervision.as_ref().map(Supervision::shell_pid);
        let status = machine.status(status::TASKS_ON_PAGE, self.now());
        status::page(&status, &self.attachments.file, shell.unwrap_or(self.children.parent as u32))
    }

    /// Shows or updates the line, if nothing else has the terminal; says when to look again.
    fn show_line(&mut self, machine: &Machine, now: Instant) -> Option<Instant> {
        if self.commands.values().any(|command| !command.quiet) {
            self.tty.status_line.give_way();
            return None; // the end of a command is when to look again
        }
        if self.has_strangers() || self.relays.use_the_terminal() {
            self.tty.status_line.give_way();
            return Some(now + SLOW);
        }
        let status = machine.status(status::TASKS_FOR_LINE, self.now());
        let columns = columns().unwrap_or(80);
        let own = tcgetpgrp(io::stderr()).is_ok_and(|group| group == getpgrp());
        match status::line(&status, columns.saturating_sub(ECHO)).filter(|_| own) {
            Some(text) => self.tty.status_line.show(text, columns),
            None => self.tty.status_line.hide(),
        }
        let interval = if status::is_fast(&status) { FAST } else { SLOW };
        let interval = if self.tty.status_line.is_shown() { interval } else { SLOW };
        Some(now + interval.max(now.elapsed() * SHARE))
    }

    /// Whether there are processes besides commands: left running by some, they may write
    /// whenever they like.
    fn has_strangers(&self) -> bool {
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

    /// Writes to the log what the level asks for.
    pub(super) fn log(&mut self, line: u32, event: LogEvent) {
        self.log_at(event.level(), line, event);
    }

    /// Writes to a log of this level or a higher one.
    pub(super) fn log_at(&mut self, level: Level, line: u32, event: LogEvent) {
        if level <= self.attachments.log_level {
            self.tty.status_line.hide();
            let record = Record::of_shell(self.now(), self.attachments.file.clone(), line, event);
            (self.attachments.log)(&Record { level, ..record });
        }
    }

    /// Reports a state that cannot be, where nothing stops at it.
    pub(super) fn broken(&mut self, what: &str) {
        debug_assert!(false, "{what}");
        self.log(0, LogEvent::Note(format!("{what}: an internal error of ftsh")));
    }
}
