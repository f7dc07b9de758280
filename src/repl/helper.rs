//! What the line editor asks while someone types.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::SearchDirection;
use rustyline::validate::Validator;
use rustyline::{Context, Helper as Helps, Result};

use super::complete::complete;
use super::highlight::highlight;
use super::known::Known;
use crate::driver::process::Edited;

/// Of a longer line, colours are shown so fast: each change shows all of it anew, and what is typed by
/// a program comes without a pause.
const SHORT: usize = 512;
const PER_BYTE: Duration = Duration::from_micros(5);

/// Answers for the line that is being typed.
#[derive(Default)]
pub struct Helper {
    /// The session.
    known: Known,
    /// The lines of the same input before this one.
    before: String,
    /// Whether a hint can be told from what was typed.
    colours: bool,
    /// The line as it is, up to the cursor and from there on.
    typed: RefCell<(String, usize)>,
    /// Told how the editor has set the terminal, for each line once.
    edited: Cell<Option<Edited>>,
    /// When the line was last shown as a whole.
    shown: Cell<Option<Instant>>,
}

impl Helper {
    /// For a terminal with or without colours.
    pub fn new(colours: bool) -> Self {
        Self { colours, ..Self::default() }
    }

    /// A line is to be typed, after these lines of the same input.
    pub fn begin(&mut self, before: &str, known: Known, edited: Edited) {
        before.clone_into(&mut self.before);
        self.known = known;
        self.edited.set(Some(edited));
    }

    /// What has been typed, before the cursor and after it: an interrupted editor forgets it.
    pub fn typed(&self) -> (String, String) {
        let typed = self.typed.borrow();
        let (before, after) = typed.0.split_at_checked(typed.1).unwrap_or((&typed.0, ""));
        (before.to_owned(), after.to_owned())
    }

    fn note(&self, line: &str, at: usize) {
        if let Some(edited) = self.edited.take() {
            edited.note();
        }
        let mut typed = self.typed.borrow_mut();
        line.clone_into(&mut typed.0);
        typed.1 = at;
    }
}

impl Helps for Helper {}

// A line is always whole: what an input still lacks gets a prompt of its own.
impl Validator for Helper {}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let (start, found) = complete(&format!("{}{}", self.before, &line[..at]), &self.known);
        let pair = |it: super::complete::Candidate| Pair {
            display: it.display,
            replacement: it.replacement,
        };
        let Some(start) = start.checked_sub(self.before.len()) else {
            return Ok((at, Vec::new())); // it begins on a line before
        };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

/// The rest of an earlier input that began like this one.
pub struct Earlier {
    rest: String,
    /// How much of it is shown: its first line.
    shown: usize,
}

impl Hint for Earlier {
    fn display(&self) -> &str {
        &self.rest[..self.shown]
    }

    fn completion(&self) -> Option<&str> {
        Some(&self.rest)
    }
}

impl Hinter for Helper {
    type Hint = Earlier;

    fn hint(&self, line: &str, at: usize, context: &Context<'_>) -> Option<Earlier> {
        self.note(line, at);
        if !self.colours || line.trim().is_empty() || at < line.len() || !self.before.is_empty() {
            return None;
        }
        let newest = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(line, newest, SearchDirection::Reverse);
        let rest = found.ok()??.entry.get(line.len()..)?.to_owned();
        let shown = rest.find(|c: char| c.is_control()).unwrap_or(rest.len());
        (shown > 0).then_some(Earlier { rest, shown })
    }
}

impl Highlighter for Helper {
    fn highlight<'l>(&self, line: &'l str, _at: usize) -> Cow<'l, str> {
        self.shown.set(Some(Instant::now()));
        Cow::Owned(highlight(&self.before, line, &self.known))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }

    fn highlight_char(&self, line: &str, at: usize, kind: CmdKind) -> bool {
        self.note(line, at);
        let pause = PER_BYTE * u32::try_from(line.len()).unwrap_or(u32::MAX);
        let soon = line.len() > SHORT && self.shown.get().is_some_and(|it| it.elapsed() < pause);
        match kind {
            CmdKind::MoveCursor => false,
            CmdKind::ForcedRefresh => true,
            CmdKind::Other => !soon,
        }
    }
}
