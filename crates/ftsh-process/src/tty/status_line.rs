//! Status line at the terminal, and requests for a status page.
//!
//! Commands share the terminal, and their output must not mix with the line. The line is shown only
//! while no process of the shell has the terminal open, and is hidden before any output.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::non_blocking_writer::{NonBlockingWriter, standard_error};
use ftsh_sys as sys;

/// Time without output after which the line appears.
const QUIET_TIME: Duration = Duration::from_millis(200);
/// Time after which a delay that the line does not show is logged instead.
const DELAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Status line and its schedule.
pub(crate) struct StatusLine {
    /// Style of the line; none if no line is ever shown.
    style: Option<LineStyle>,
    /// Text on the terminal.
    shown: Option<String>,
    /// True if the cursor is known to be at the start of an empty line.
    fresh: bool,
    /// Time of the next update.
    due: Option<Instant>,
    /// Set when an update is due.
    is_due: bool,
    /// Time limit for showing a delay that has begun.
    delay_limit: Option<Instant>,
    /// Set when a status page was requested.
    is_page_requested: bool,
}

#[derive(Clone, Copy)]
struct LineStyle {
    /// True if the line may be dim.
    colour: bool,
}

impl StatusLine {
    /// Creates a line if the terminal can show one.
    pub(crate) fn new(wanted: bool) -> Self {
        let on = wanted && is_possible();
        let style = on.then(|| LineStyle { colour: variable("NO_COLOR").is_none() });
        let due = on.then(|| Instant::now() + QUIET_TIME);
        Self {
            style,
            shown: None,
            fresh: false,
            due,
            is_due: false,
            delay_limit: None,
            is_page_requested: false,
        }
    }

    /// True if a line may be shown, so that writers to the terminal matter.
    pub(crate) fn is_on(&self) -> bool {
        self.style.is_some()
    }

    /// Hides the line before other output.
    pub(crate) fn hide(&mut self) {
        if self.shown.take().is_some() {
            write(|terminal| terminal.print("\r\x1b[J"));
        }
        if self.is_on() {
            self.due = Some(Instant::now() + QUIET_TIME);
        }
    }

    /// Hides the line before other processes may write. The cursor's position is unknown then.
    pub(crate) fn hide_for_output(&mut self) {
        self.hide();
        self.fresh = false;
    }

    /// Hides the line while nothing runs.
    pub(crate) fn rest(&mut self) {
        self.hide();
        (self.due, self.delay_limit) = (None, None);
    }

    /// Schedules an update after a change that may have prevented one.
    pub(crate) fn reconsider(&mut self) {
        if self.is_on() && self.due.is_none() {
            self.due = Some(Instant::now() + QUIET_TIME);
        }
    }

    /// Records a delay that is logged only if the line does not show it.
    pub(crate) fn expect_delay(&mut self) {
        if self.is_on() {
            self.delay_limit.get_or_insert_with(|| Instant::now() + DELAY_TIMEOUT);
        }
    }

    /// Returns true once if the delays that have begun are decided: an update has just `looked`, or
    /// the time limit has passed because other output left no room for the line.
    pub(crate) fn take_delay_decision(&mut self, looked: bool) -> bool {
        (looked || self.is_late()) && self.delay_limit.take().is_some()
    }

    fn is_late(&self) -> bool {
        self.delay_limit.is_some_and(|delay_limit| delay_limit <= Instant::now())
    }

    /// Requests a status page.
    pub(crate) fn request_page(&mut self) {
        self.is_page_requested = true;
    }

    /// Returns and resets the request for a status page.
    pub(crate) fn take_page_request(&mut self) -> bool {
        std::mem::take(&mut self.is_page_requested)
    }

    /// Returns the time of the next update.
    pub(crate) fn due(&self) -> Option<Instant> {
        [self.due, self.delay_limit].into_iter().flatten().min()
    }

    /// Marks an update as due if its time has come.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.is_due |= self.due.take_if(|due| *due <= now).is_some();
    }

    /// True if an update is due or a status page is requested.
    pub(crate) fn needs_update(&self) -> bool {
        self.is_page_requested || self.is_due || self.is_late()
    }

    /// Returns and resets the due update.
    pub(crate) fn take_update(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// Sets the time of the next update.
    pub(crate) fn schedule(&mut self, due: Option<Instant>) {
        self.due = due;
    }

    /// True if the line is on the terminal.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// Shows a line on an empty line of the terminal. The cursor stays at the first character of
    /// the line, even if a change of width wraps the line: all text after the cursor is the line.
    pub(crate) fn show(&mut self, text: String, columns: usize) {
        if self.shown.as_ref() == Some(&text) {
            return;
        }
        let start = if self.fresh { String::new() } else { beginning(columns) };
        let line = match self.style {
            Some(LineStyle { colour: true }) => format!("{start}\r\x1b[2m{text}\x1b[0m\x1b[J\r"),
            _ => format!("{start}\r{text}\x1b[J\r"),
        };
        if write(|terminal| terminal.show(&line)) {
            self.shown = Some(text);
            self.fresh = true;
        }
    }
}

/// Returns text that moves to the start of an empty line. The number of blanks equals the width, so
/// they wrap exactly if the cursor was not at the start.
fn beginning(columns: usize) -> String {
    format!("{}\r", " ".repeat(columns))
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Returns a non-empty variable of the environment.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// True if standard error is a terminal that can show the line. If standard output is a pipe, its
/// reader may write to the terminal at any time, so no line is shown.
fn is_possible() -> bool {
    let is_shared = || {
        let kind = fstat(io::stdout())
            .map_or(SFlag::empty(), |stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT);
        kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
    };
    variable("TERM").is_some_and(|term| term != "dumb")
        && io::stderr().is_terminal()
        && !is_shared()
}

/// True if the terminal can show the status line and this process is in the foreground.
pub fn shows_status_line() -> bool {
    is_possible() && is_in_foreground()
}

/// True if the process group of this process is in the foreground of the terminal.
pub(crate) fn is_in_foreground() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group == getpgrp())
}

/// Returns the width of the terminal on standard error, if there is one.
pub fn columns() -> Option<usize> {
    sys::size(&io::stderr()).map(|(_, columns)| columns.into())
}

/// Writes to standard error, even from a background job, which shows no line but may have to hide
/// one.
fn write<T>(action: impl FnOnce(&NonBlockingWriter) -> T) -> T {
    sys::without_stopping(|| action(standard_error()))
}
