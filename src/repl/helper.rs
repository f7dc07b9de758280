//! What the line editor asks while someone types.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::history::SearchDirection;
use rustyline::validate::Validator;
use rustyline::{Context, Helper as Helps, Result};

use super::screen::{self, Screen, Written};
use ftsh_ide::candidate::Candidate;
use ftsh_ide::complete::complete;
use ftsh_ide::highlight::{highlight, plain};
use ftsh_ide::known::Known;
use ftsh_process::Edited;

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
    /// The prompt, without colours.
    prompt: String,
    /// What is shown.
    written: RefCell<Written>,
    /// How large the terminal was when that was written; none before.
    screen: Cell<Option<Screen>>,
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
    pub fn begin(&mut self, prompt: &str, before: &str, known: Known, edited: Edited) {
        prompt.clone_into(&mut self.prompt);
        before.clone_into(&mut self.before);
        self.known = known;
        self.edited.set(Some(edited));
    }

    /// The editor starts on an empty row.
    pub fn start(&self) {
        self.screen.set(None);
    }

    /// What has been typed, before the cursor and after it: an interrupted editor forgets it.
    pub fn typed(&self) -> (String, String) {
        let it = self.written.borrow();
        let (before, after) = it.line.split_at_checked(it.at).unwrap_or((&it.line, ""));
        (before.to_owned(), after.to_owned())
    }

    fn note(&self, line: &str, at: usize) {
        if let Some(edited) = self.edited.take() {
            edited.note();
        }
        let mut written = self.written.borrow_mut();
        line.clone_into(&mut written.line);
        written.at = at;
    }

    /// Before a line is shown anew: if that is because the terminal has another size now, the editor
    /// is told of it only now, too. While keys come it may lag behind.
    fn adjust(&self, line: &str, at: usize) {
        let now = Screen::now();
        if let (Some(now), Some(before)) = (now, self.screen.get()) {
            let written = self.written.borrow();
            let sequence = now.rewind(before, &written);
            if !sequence.is_empty() {
                if (written.line.as_str(), written.at) != (line, at) {
                    return;
                }
                if screen::reflows() {
                    // Nobody is left to be told of an error.
                    let _ = io::stdout()
                        .write_all(sequence.as_bytes())
                        .and_then(|()| io::stdout().flush());
                }
            }
        }
        self.screen.set(now);
    }

    fn earlier(&self, line: &str, at: usize, context: &Context<'_>) -> Option<Earlier> {
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

/// Whether there is more to come of a line for which each colour takes its time.
fn is_long_and_unread(line: &str) -> bool {
    let input = io::stdin();
    let mut input = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    line.len() > SHORT && poll(&mut input, PollTimeout::ZERO) == Ok(1)
}

impl Helps for Helper {}

// A line is always whole: what an input still lacks gets a prompt of its own.
impl Validator for Helper {}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        // A blank was typed, and not Tab.
        if let Some(replacement) = self.known.abbreviations.take_wanted() {
            return Ok((0, vec![Pair { display: String::new(), replacement }]));
        }
        let (start, found) = complete(&format!("{}{}", self.before, &line[..at]), &self.known);
        let pair = |it: Candidate| Pair { display: it.display, replacement: it.replacement };
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
        self.adjust(line, at);
        self.note(line, at);
        let earlier = self.earlier(line, at, context);
        let hint = earlier.as_ref().map_or("", Earlier::display);
        hint.clone_into(&mut self.written.borrow_mut().hint);
        earlier
    }
}

impl Highlighter for Helper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, own: bool) -> Cow<'b, str> {
        let plain = if own { &self.prompt } else { prompt };
        plain.clone_into(&mut self.written.borrow_mut().prompt);
        Cow::Borrowed(prompt)
    }

    fn highlight<'l>(&self, line: &'l str, _at: usize) -> Cow<'l, str> {
        self.shown.set(Some(Instant::now()));
        let mut written = self.written.borrow_mut();
        let mut start = 0;
        if let Some(screen) = self.screen.get() {
            written.broken = screen.full_at(&written.prompt, line, &written.hint);
            start = screen.visible(&written.prompt, line);
        }
        let (hidden, seen) = line.split_at(start);
        let text = if self.colours && !is_long_and_unread(line) {
            highlight(&format!("{}{hidden}", self.before), seen, &self.known)
        } else {
            plain(seen)
        };
        // In the place of the prompt, which isn't to be seen either.
        Cow::Owned(if start > 0 { format!("\r\x1b[K{text}") } else { text })
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }

    fn highlight_char(&self, line: &str, at: usize, kind: CmdKind) -> bool {
        self.note(line, at);
        let pause = PER_BYTE * u32::try_from(line.len()).unwrap_or(u32::MAX);
        let soon = line.len() > SHORT && self.shown.get().is_some_and(|it| it.elapsed() < pause)
            || is_long_and_unread(line);
        match kind {
            _ if !self.colours => false,
            CmdKind::MoveCursor => false,
            CmdKind::ForcedRefresh => true,
            CmdKind::Other => !soon,
        }
    }
}
