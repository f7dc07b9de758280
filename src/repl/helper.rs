//! Completion, hints and highlighting for the line editor.

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
use rustyline::{Context, Helper as EditorHelper, Result};

use super::screen::{self, EditorText, Screen};
use ftsh_ide::candidate::CompletionCandidate;
use ftsh_ide::complete::complete;
use ftsh_ide::highlight::{highlight, plain};
use ftsh_ide::known::SessionSnapshot;
use ftsh_process::Edited;

/// Maximum length of a line that is highlighted after each key. Each change redraws the whole line,
/// and pasted text arrives without a pause.
const MAX_HIGHLIGHT: usize = 512;
const PAUSE_PER_BYTE: Duration = Duration::from_micros(5);

/// State of the line that is being edited.
#[derive(Default)]
pub(super) struct Helper {
    /// Session that the line belongs to.
    known: SessionSnapshot,
    /// Earlier lines of the same input.
    before: String,
    /// True if the terminal shows colors.
    colors: bool,
    /// Prompt without colors.
    prompt: String,
    /// Text on the screen.
    written: RefCell<EditorText>,
    /// Size of the terminal when the text was written; none before.
    screen: Cell<Option<Screen>>,
    /// Notifier of the terminal settings that the editor uses; taken once per line.
    edited: Cell<Option<Edited>>,
    /// Time of the last complete highlight.
    shown: Cell<Option<Instant>>,
}

impl Helper {
    /// Creates a helper for a terminal with or without colors.
    pub(super) fn new(colors: bool) -> Self {
        Self { colors, ..Self::default() }
    }

    /// Begins a line after earlier lines of the same input.
    pub(super) fn begin(
        &mut self,
        prompt: &str,
        before: &str,
        known: SessionSnapshot,
        edited: Edited,
    ) {
        prompt.clone_into(&mut self.prompt);
        before.clone_into(&mut self.before);
        self.known = known;
        self.edited.set(Some(edited));
    }

    /// Marks the start of the editor on an empty row.
    pub(super) fn start(&self) {
        self.screen.set(None);
    }

    /// Returns the text before and after the cursor, which an interrupted editor forgets.
    pub(super) fn typed(&self) -> (String, String) {
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

    /// Adapts the screen before a line is redrawn. The editor learns of a new terminal size only
    /// now, and may lag behind while keys arrive.
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
                    // No other way is left to report an error.
                    let _ = io::stdout()
                        .write_all(sequence.as_bytes())
                        .and_then(|()| io::stdout().flush());
                }
            }
        }
        self.screen.set(now);
    }

    fn earlier(&self, line: &str, at: usize, context: &Context<'_>) -> Option<HistoryHint> {
        if !self.colors || line.trim().is_empty() || at < line.len() || !self.before.is_empty() {
            return None;
        }
        let newest = context.history().len().checked_sub(1)?;
        let found = context.history().starts_with(line, newest, SearchDirection::Reverse);
        let rest = found.ok()??.entry.get(line.len()..)?.to_owned();
        let shown = rest.find(|c: char| c.is_control()).unwrap_or(rest.len());
        (shown > 0).then_some(HistoryHint { rest, shown })
    }
}

/// True if a long line has more input pending.
fn is_long_and_pending(line: &str) -> bool {
    let input = io::stdin();
    let mut input = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    line.len() > MAX_HIGHLIGHT && poll(&mut input, PollTimeout::ZERO) == Ok(1)
}

impl EditorHelper for Helper {}

// Each line is complete for the editor. An unfinished input gets a new prompt.
impl Validator for Helper {}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        // A blank was typed instead of Tab.
        if let Some(replacement) = self.known.abbreviations.take_wanted() {
            return Ok((0, vec![Pair { display: String::new(), replacement }]));
        }
        let (start, found) = complete(&format!("{}{}", self.before, &line[..at]), &self.known);
        let pair =
            |it: CompletionCandidate| Pair { display: it.display, replacement: it.replacement };
        let Some(start) = start.checked_sub(self.before.len()) else {
            return Ok((at, Vec::new())); // it begins on an earlier line
        };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

/// Rest of an earlier input with the same beginning.
pub(super) struct HistoryHint {
    rest: String,
    /// Length of the visible part: the first line.
    shown: usize,
}

impl Hint for HistoryHint {
    fn display(&self) -> &str {
        &self.rest[..self.shown]
    }

    fn completion(&self) -> Option<&str> {
        Some(&self.rest)
    }
}

impl Hinter for Helper {
    type Hint = HistoryHint;

    fn hint(&self, line: &str, at: usize, context: &Context<'_>) -> Option<HistoryHint> {
        self.adjust(line, at);
        self.note(line, at);
        let earlier = self.earlier(line, at, context);
        let hint = earlier.as_ref().map_or("", HistoryHint::display);
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
        let text = if self.colors && !is_long_and_pending(line) {
            highlight(&format!("{}{hidden}", self.before), seen, &self.known)
        } else {
            plain(seen)
        };
        // The text replaces the prompt, which has left the screen as well.
        Cow::Owned(if start > 0 { format!("\r\x1b[K{text}") } else { text })
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }

    fn highlight_char(&self, line: &str, at: usize, kind: CmdKind) -> bool {
        self.note(line, at);
        let pause = PAUSE_PER_BYTE * u32::try_from(line.len()).unwrap_or(u32::MAX);
        let soon = line.len() > MAX_HIGHLIGHT
            && self.shown.get().is_some_and(|it| it.elapsed() < pause)
            || is_long_and_pending(line);
        match kind {
            _ if !self.colors => false,
            CmdKind::MoveCursor => false,
            CmdKind::ForcedRefresh => true,
            CmdKind::Other => !soon,
        }
    }
}
