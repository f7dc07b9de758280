//! The line at the terminal that says what the run waits for, and who asked for a page of that.
//!
//! Commands share the terminal, and nothing they write may mix with the line. So it is there only
//! while no process that belongs to the shell has the terminal open, and it is taken away before
//! anything else is written.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use nix::sys::stat::{SFlag, fstat};

use crate::non_blocking_writer::{NonBlockingWriter, standard_error};
use ftsh_sys as sys;

/// A line appears when nothing has been written for so long.
const CALM: Duration = Duration::from_millis(200);
/// A delay that the line doesn't show within this time has to be told otherwise.
const PATIENCE: Duration = Duration::from_secs(1);

/// What people are told while the run goes on.
pub struct StatusLine {
    /// How the line looks; none if there is never one.
    style: Option<Style>,
    /// What the terminal shows.
    shown: Option<String>,
    /// Whether the cursor is known to be at the beginning of a line without text.
    fresh: bool,
    /// When to look whether to show something else.
    due: Option<Instant>,
    /// Whether that moment has come.
    look: bool,
    /// Until when it may show a delay that has begun.
    owed: Option<Instant>,
    /// Whether a page was asked for.
    asked: bool,
}

#[derive(Clone, Copy)]
struct Style {
    /// Whether it may be dim.
    colour: bool,
}

impl StatusLine {
    /// With a line, if standard error is a terminal that can show one. If standard output is a
    /// pipe, whoever reads it may write to the terminal at any time.
    pub fn new(wanted: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let capable = set("TERM").is_some_and(|term| term != "dumb");
        let shared = || {
            let kind = fstat(io::stdout()).map_or(SFlag::empty(), |stat| {
                SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
            });
            kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
        };
        let on = wanted && capable && io::stderr().is_terminal() && !shared();
        let style = on.then(|| Style { colour: set("NO_COLOR").is_none() });
        let due = on.then(|| Instant::now() + CALM);
        Self { style, shown: None, fresh: false, due, look: false, owed: None, asked: false }
    }

    /// Whether there may be a line, so that it matters who writes to the terminal.
    pub fn is_on(&self) -> bool {
        self.style.is_some()
    }

    /// Takes the line away, before something else is written.
    pub fn hide(&mut self) {
        if self.shown.take().is_some() {
            write(|terminal| terminal.say("\r\x1b[J"));
        }
        if self.is_on() {
            self.due = Some(Instant::now() + CALM);
        }
    }

    /// Takes the line away, before somebody else may write: nobody knows where the cursor is then.
    pub fn give_way(&mut self) {
        self.hide();
        self.fresh = false;
    }

    /// Nothing runs that could be told of.
    pub fn rest(&mut self) {
        self.hide();
        (self.due, self.owed) = (None, None);
    }

    /// Something has changed that may have kept the line away.
    pub fn reconsider(&mut self) {
        if self.is_on() && self.due.is_none() {
            self.due = Some(Instant::now() + CALM);
        }
    }

    /// A delay has begun, which nothing else tells if the line comes to show it.
    pub fn owe_a_delay(&mut self) {
        if self.is_on() {
            self.owed.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
    }

    /// Whether it is known now if the line shows the delays that have begun, by what has just been
    /// `looked` at or because it took too long: who writes all the time leaves it no room.
    pub fn takes_stock(&mut self, looked: bool) -> bool {
        (looked || self.is_late()) && self.owed.take().is_some()
    }

    fn is_late(&self) -> bool {
        self.owed.is_some_and(|owed| owed <= Instant::now())
    }

    /// A page is to be told.
    pub fn ask(&mut self) {
        self.asked = true;
    }

    /// Whether a page is to be told; then it counts as told.
    pub fn take_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// When the machine is to be looked at, whatever happens.
    pub fn due(&self) -> Option<Instant> {
        [self.due, self.owed].into_iter().flatten().min()
    }

    /// Takes note that a moment has come.
    pub fn tick(&mut self, now: Instant) {
        self.look |= self.due.take_if(|due| *due <= now).is_some();
    }

    /// Whether the machine is to be looked at now.
    pub fn wants_a_look(&self) -> bool {
        self.asked || self.look || self.is_late()
    }

    /// Whether its moment has come; then that is over.
    pub fn take_look(&mut self) -> bool {
        std::mem::take(&mut self.look)
    }

    /// Says when to look again.
    pub fn look_again(&mut self, due: Option<Instant>) {
        self.due = due;
    }

    /// Whether the line is there.
    pub fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// Shows a line, from a beginning of its own. The cursor is left at that, so that it stays at
    /// the line's first character however a terminal wraps it anew as its width changes: what comes
    /// from there on is the line.
    pub fn show(&mut self, text: String, columns: usize) {
        if self.shown.as_ref() == Some(&text) {
            return;
        }
        let start = if self.fresh { String::new() } else { beginning(columns) };
        let line = match self.style {
            Some(Style { colour: true }) => format!("{start}\r\x1b[2m{text}\x1b[0m\x1b[J\r"),
            _ => format!("{start}\r{text}\x1b[J\r"),
        };
        if write(|terminal| terminal.show(&line)) {
            self.shown = Some(text);
            self.fresh = true;
        }
    }
}

/// Goes to a line without text, wherever the cursor is: as many blanks as a line has wrap if
/// something stands before them, and only then.
fn beginning(columns: usize) -> String {
    format!("{}\r", " ".repeat(columns))
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.hide();
    }
}

/// The columns of the terminal that standard error is, if it is one.
pub fn columns() -> Option<usize> {
    sys::size(&io::stderr()).map(|(_, columns)| columns.into())
}

/// Writes to standard error, also as a job in the background, which wouldn't show a line but may
/// have to take one away.
fn write<T>(action: impl FnOnce(&NonBlockingWriter) -> T) -> T {
    sys::without_stopping(|| action(standard_error()))
}
