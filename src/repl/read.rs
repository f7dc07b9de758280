//! Input of lines, with a line editor if the terminal supports it.

use std::io::{self, BufRead};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::termios::tcgetattr;
use rustyline::config::{BellStyle, Configurer};
use rustyline::error::ReadlineError;
use rustyline::history::{History as _, MemHistory};
use rustyline::{
    Cmd, ColorMode, CompletionType, Config, Editor as LineEditor, EventHandler, KeyEvent, Modifiers,
};

use super::at_blank::AtBlank;
use super::end_keys::{self, IsInterrupt};
use super::helper::Helper;
use super::history::{self, History, MAX_ENTRIES};
use super::prompt::Shown;
use super::retry_key::{self, Failed, RetryKey};
use super::why;
use ftsh_ide::abbreviations::Abbreviations;
use ftsh_ide::highlight::plain;
use ftsh_ide::known::SessionSnapshot;
use ftsh_machine::driver::{Interactive, JobEvent};
use ftsh_machine::event::Event;
use ftsh_machine::time::Time;
use ftsh_machine::{Failure, Machine};
use ftsh_process::Edited;
use ftsh_process::non_blocking_writer;
use ftsh_syntax::Script;
use ftsh_sys::os_error;

type Editor = LineEditor<Helper, MemHistory>;

/// Result of reading a line.
pub(super) enum ReadLine {
    /// A line, or several lines that were pasted or taken from the history.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    /// The input is unusable for this reason.
    Unreadable(String),
    /// A signal ends the shell.
    Signal(i32),
    /// The deadline has passed.
    Timeout,
}

/// Result of the reading thread.
type Answer = (Option<Box<Editor>>, ReadLine);

/// Text that the reading thread prints between keys.
type Notice = Arc<Mutex<Option<String>>>;

/// Interval between interrupts of the reading thread, which misses an interrupt before its wait.
const INTERRUPT_RETRY: Duration = Duration::from_millis(20);

fn slot(notice: &Notice) -> std::sync::MutexGuard<'_, Option<String>> {
    notice.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reader of lines.
pub(super) struct LineReader<D: Interactive<Edited = Edited>> {
    /// Line editor; none on a terminal that can only print.
    editor: Option<Box<Editor>>,
    /// A read in progress that began for an earlier prompt.
    pending: Option<D::Job<Answer>>,
    history: Option<History>,
    is_history_reported: bool,
    notice: Notice,
    /// Input that failed last.
    failed: String,
    /// The same input, shared with a key of the editor.
    at_key: Failed,
    is_interrupt: IsInterrupt,
    abbreviations: Arc<Abbreviations>,
    /// True if the user has typed `try` or seen the hint for it; likewise for `why`.
    knows_try: bool,
    knows_why: bool,
}

/// Sequence that turns off bracketed paste after the shell was killed while reading.
pub(super) const SEQUENCE: &str = "\x1b[?2004l";

/// True if the terminal can do more than print.
pub(super) fn is_capable() -> bool {
    let term = std::env::var_os("TERM").unwrap_or_default();
    !["", "dumb", "emacs", "cons25"].iter().any(|dumb| term.eq_ignore_ascii_case(dumb))
}

impl<D: Interactive<Edited = Edited>> LineReader<D> {
    /// Creates a reader for standard input and output.
    pub(super) fn new(capable: bool, colors: bool) -> Self {
        let variable = |name: &str| std::env::var_os(name).map(Into::into);
        let history = if capable { History::of_user(variable) } else { None };
        let (abbreviations, errors) =
            if capable { Abbreviations::of_user(variable) } else { Default::default() };
        super::write_error(&errors);
        let abbreviations = Arc::new(abbreviations);
        let at_key = Failed::default();
        let is_interrupt = IsInterrupt::default();
        let blank = AtBlank(Arc::clone(&abbreviations));
        let editor = || editor(colors, &at_key, &is_interrupt, blank).ok();
        let editor = capable.then(editor).flatten().map(Box::new);
        let mut reader = Self {
            editor,
            pending: None,
            history,
            is_history_reported: false,
            notice: Notice::default(),
            failed: String::new(),
            at_key,
            is_interrupt,
            abbreviations,
            knows_try: false,
            knows_why: false,
        };
        reader.load();
        reader
    }

    fn load(&mut self) {
        let (Some(history), Some(editor)) = (&mut self.history, &mut self.editor) else { return };
        match history.load() {
            Ok(inputs) => {
                for input in inputs {
                    self.knows_try |= has_first_word(&input, "try");
                    self.knows_why |= has_first_word(&input, why::COMMAND);
                    // A history in memory cannot fail.
                    let _ = editor.history_mut().add_owned(input);
                }
            }
            Err(error) => self.no_history(&error),
        }
    }

    fn no_history(&mut self, error: &io::Error) {
        if let Some(history) = &self.history
            && !std::mem::replace(&mut self.is_history_reported, true)
        {
            let path = history.as_ref().display();
            let reason = os_error::plain(error);
            super::write_error(&format!("ftsh: the history is not saved: {path}: {reason}\n"));
        }
    }

    /// Adds an input to the history.
    pub(super) fn remember(&mut self, input: &str) {
        self.knows_try |= has_first_word(input, "try");
        self.knows_why |= has_first_word(input, why::COMMAND);
        let Some(editor) = &mut self.editor else { return };
        if history::is_kept(input) {
            let _ = editor.add_history_entry(input);
        }
        if let Some(history) = &mut self.history
            && let Err(error) = history.add(input)
        {
            self.no_history(&error);
        }
    }

    /// Keeps an input that failed.
    pub(super) fn failed(&mut self, input: &str) {
        input.clone_into(&mut self.failed);
    }

    /// Returns a hint that helps after this failure. Each hint appears once, and not for users who
    /// have used it.
    pub(super) fn hint(
        &mut self,
        script: &Script,
        failure: Option<&Failure>,
    ) -> Option<&'static str> {
        let (true, failure) = (self.is_editor(), failure?) else { return None };
        if failure.tries.iter().any(|it| it.attempts > 1) {
            return (!std::mem::replace(&mut self.knows_why, true)).then_some(why::HINT);
        }
        let is_apt = !self.knows_try && retry_key::may_help(script, failure);
        self.knows_try |= is_apt;
        is_apt.then_some(retry_key::HINT)
    }

    /// True if a line editor is used.
    pub(super) fn is_editor(&self) -> bool {
        self.editor.is_some()
    }

    /// Returns the number of columns of the terminal.
    pub(super) fn columns(&mut self) -> usize {
        let columns = match &mut self.editor {
            Some(editor) => editor.dimensions().map(|(columns, _)| columns.into()),
            None => std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()),
        };
        columns.filter(|columns| *columns > 0).unwrap_or(80)
    }

    /// Reads a line after earlier lines of the same input. Meanwhile the machine handles events.
    pub(super) fn line(
        &mut self,
        prompt: &Shown,
        before: &str,
        known: SessionSnapshot,
        driver: &mut D,
        until: Time,
        machine: &mut Machine,
    ) -> ReadLine {
        let edits = self.editor.is_some();
        let mut job = match self.ask(prompt, before, known, driver) {
            Ok(job) => job,
            Err(error) => return ReadLine::Unreadable(error.to_string()),
        };
        loop {
            // An interrupt in this moment may have been overtaken by a line.
            let has_notice = slot(&self.notice).is_some();
            let retry = Time::after(driver.now().elapsed() + INTERRUPT_RETRY);
            match driver.wait_for_job(&mut job, if has_notice { until.min(retry) } else { until }) {
                JobEvent::Answer((editor, line)) => {
                    self.editor = editor;
                    if let Some(notice) = slot(&self.notice).take() {
                        super::write_error(&notice);
                    }
                    return match line {
                        ReadLine::End if has_hung_up() => ReadLine::Signal(libc::SIGHUP),
                        ReadLine::Text(line) if edits => ReadLine::Text(self.expanded(line)),
                        line => line,
                    };
                }
                // The editor receives these signals as keys.
                JobEvent::Event(Event::Interrupted(libc::SIGINT | libc::SIGQUIT)) if edits => {}
                JobEvent::Event(Event::Interrupted(libc::SIGINT | libc::SIGQUIT)) => {
                    self.pending = Some(job);
                    super::write_output("\n");
                    return ReadLine::Interrupted;
                }
                JobEvent::Event(Event::Interrupted(signal)) => {
                    return Self::abandon(&job, edits, driver, ReadLine::Signal(signal));
                }
                JobEvent::Event(event) => machine.handle_event(driver.now(), event),
                JobEvent::StatusRequested if edits => {
                    let page = driver.page(machine);
                    let mut notice = slot(&self.notice);
                    *notice = Some(page);
                    driver.interrupt(&job);
                }
                JobEvent::StatusRequested => {
                    super::write_error(&format!("\n{}", driver.page(machine)));
                    super::write_output(&prompt.0);
                }
                JobEvent::Timeout if driver.now() < until => {
                    // Once the notice is printed, another interrupt would count as Ctrl-C.
                    let notice = slot(&self.notice);
                    if notice.is_some() {
                        driver.interrupt(&job);
                    }
                }
                JobEvent::Timeout => {
                    return Self::abandon(&job, edits, driver, ReadLine::Timeout);
                }
            }
        }
    }

    /// Expands and shows an abbreviation at the end of a line.
    fn expanded(&self, line: String) -> String {
        let Some(long) = self.abbreviations.expand(&line) else { return line };
        super::write_output(&format!("{}\n", plain(&long)));
        long
    }

    fn abandon(job: &D::Job<Answer>, edits: bool, driver: &mut D, line: ReadLine) -> ReadLine {
        driver.detach_job(job);
        if edits {
            driver.restore_terminal();
        }
        super::write_output("\n");
        line
    }

    fn ask(
        &mut self,
        (raw, styled): &Shown,
        before: &str,
        mut known: SessionSnapshot,
        driver: &mut D,
    ) -> io::Result<D::Job<Answer>> {
        let Some(mut editor) = self.editor.take() else {
            super::write_output(raw);
            return match self.pending.take() {
                Some(job) => Ok(job),
                None => driver.begin(|| (None, plain_line())),
            };
        };
        let begins = before.is_empty().then(|| self.failed.clone());
        *self.at_key.lock().unwrap_or_else(PoisonError::into_inner) = begins;
        self.abbreviations.begin(before);
        known.abbreviations = Arc::clone(&self.abbreviations);
        if let Some(helper) = editor.helper_mut() {
            helper.begin(raw, before, known, driver.edited());
        }
        let prompt = (raw.clone(), styled.clone());
        let notice = Arc::clone(&self.notice);
        let is_interrupt = Arc::clone(&self.is_interrupt);
        driver.begin(move || {
            let mut typed = (String::new(), String::new());
            let line = loop {
                non_blocking_writer::wait(None);
                if let Some(helper) = editor.helper() {
                    helper.start();
                }
                let read = editor.readline_with_initial(&prompt, (&typed.0, &typed.1));
                match read {
                    Ok(_) if is_interrupt.load(Ordering::Relaxed) => break ReadLine::Interrupted,
                    Ok(line) => break ReadLine::Text(line),
                    Err(ReadlineError::Interrupted) => match slot(&notice).take() {
                        Some(notice) => super::write_error(&notice),
                        None => break ReadLine::Interrupted,
                    },
                    Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                        break ReadLine::Unreadable("the input is not valid UTF-8".into());
                    }
                    // Ctrl-D, or the terminal is gone.
                    Err(_) => break ReadLine::End,
                }
                typed = editor.helper().map(Helper::typed).unwrap_or_default();
            };
            (Some(editor), line)
        })
    }
}

fn editor(
    colors: bool,
    failed: &Failed,
    is_interrupt: &IsInterrupt,
    blank: AtBlank,
) -> rustyline::Result<Editor> {
    let mut config = Config::builder()
        .max_history_size(MAX_ENTRIES)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .color_mode(ColorMode::Forced); // otherwise the editor ignores the helper, which decides
    config.enable_synchronized_output(false);
    let config = config.build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(Helper::new(colors)));
    editor.set_auto_add_history(false);
    // A shell at its prompt has no job to suspend, and its parent may have no job control.
    editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Simple(Cmd::Undo(1)));
    for (key, handler) in end_keys::bindings(is_interrupt) {
        editor.bind_sequence(key, handler);
    }
    let retry = RetryKey(Arc::clone(failed));
    editor.bind_sequence(retry_key::KEY, EventHandler::Conditional(Box::new(retry)));
    let key = KeyEvent::new(' ', Modifiers::NONE);
    editor.bind_sequence(key, EventHandler::Conditional(Box::new(blank)));
    Ok(editor)
}

/// Reads a line from a terminal without a line editor.
fn plain_line() -> ReadLine {
    let mut bytes = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => return ReadLine::End,
        Ok(_) => {}
    }
    match String::from_utf8(bytes) {
        Ok(text) => ReadLine::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
        Err(_) => ReadLine::Unreadable("the input is not valid UTF-8".into()),
    }
}

fn has_first_word(input: &str, word: &str) -> bool {
    input.split_whitespace().next() == Some(word)
}

/// True if the terminal is gone.
fn has_hung_up() -> bool {
    tcgetattr(io::stdin()) == Err(Errno::EIO)
}
