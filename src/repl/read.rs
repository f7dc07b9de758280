//! Reading lines: with a line editor where the terminal can do it, else as they come.

use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::termios::tcgetattr;
use rustyline::config::{BellStyle, Configurer};
use rustyline::error::ReadlineError;
use rustyline::history::{History as _, MemHistory};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Editor as LineEditor,
    EventContext, EventHandler, KeyEvent, Modifiers, RepeatCount,
};

use super::again::{self, Again, Failed};
use super::at_blank::AtBlank;
use super::helper::Helper;
use super::history::{self, History, KEPT};
use super::prompt::Shown;
use super::why;
use ftsh_ide::abbreviations::Abbreviations;
use ftsh_ide::highlight::plain;
use ftsh_ide::known::Known;
use ftsh_machine::driver::{Attended, Interactive};
use ftsh_machine::event::Event;
use ftsh_machine::time::Time;
use ftsh_machine::{Failure, Machine};
use ftsh_process::Edited;
use ftsh_process::non_blocking_writer;
use ftsh_syntax::Script;
use ftsh_sys::os_error;

type Editor = LineEditor<Helper, MemHistory>;

/// What came of asking for a line.
pub enum Line {
    /// A line, or several that were pasted or fetched from the history.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or there is no more.
    End,
    /// It can't be used, for this reason.
    Unreadable(String),
    /// The shell was told to end by this signal.
    Signal(i32),
    /// The time is over.
    Timeout,
}

/// What another thread has read.
type Answer = (Option<Box<Editor>>, Line);

/// What the thread that reads is to say in between.
type Remark = Arc<Mutex<Option<String>>>;

/// A thread may miss an interrupt that comes before it waits, so that it is repeated.
const AGAIN: Duration = Duration::from_millis(20);

fn slot(remark: &Remark) -> std::sync::MutexGuard<'_, Option<String>> {
    remark.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads lines.
pub struct Reader<D: Interactive<Edited = Edited>> {
    /// None where the terminal can't do more than print.
    editor: Option<Box<Editor>>,
    /// A line that is being read, though not for the prompt it was asked for.
    pending: Option<D::Job<Answer>>,
    history: Option<History>,
    told: bool,
    remark: Remark,
    /// What failed last.
    failed: String,
    /// That, for a key of the editor.
    at_key: Failed,
    abbreviations: Arc<Abbreviations>,
    /// Whether a `try` was typed or hinted at, and `why`.
    knows_try: bool,
    knows_why: bool,
}

/// What is undone if the shell dies while it reads: pasted text is marked no more.
pub const SEQUENCE: &str = "\x1b[?2004l";

/// Whether the terminal can do more than print.
pub fn is_capable() -> bool {
    let term = std::env::var_os("TERM").unwrap_or_default();
    !["", "dumb", "emacs", "cons25"].iter().any(|dumb| term.eq_ignore_ascii_case(dumb))
}

impl<D: Interactive<Edited = Edited>> Reader<D> {
    /// For the terminal at standard input and output.
    pub fn new(capable: bool, colours: bool) -> Self {
        let variable = |name: &str| std::env::var_os(name).map(Into::into);
        let history = if capable { History::of_user(variable) } else { None };
        let (abbreviations, told) =
            if capable { Abbreviations::of_user(variable) } else { Default::default() };
        super::say(&told);
        let abbreviations = Arc::new(abbreviations);
        let at_key = Failed::default();
        let blank = AtBlank(Arc::clone(&abbreviations));
        let editor = capable.then(|| editor(colours, &at_key, blank).ok()).flatten().map(Box::new);
        let mut reader = Self {
            editor,
            pending: None,
            history,
            told: false,
            remark: Remark::default(),
            failed: String::new(),
            at_key,
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
                    self.knows_try |= begins_with(&input, "try");
                    self.knows_why |= begins_with(&input, why::COMMAND);
                    // It is in memory, and so can't fail.
                    let _ = editor.history_mut().add_owned(input);
                }
            }
            Err(error) => self.no_history(&error),
        }
    }

    fn no_history(&mut self, error: &io::Error) {
        if let Some(history) = &self.history
            && !std::mem::replace(&mut self.told, true)
        {
            let path = history.as_ref().display();
            let reason = os_error::plain(error);
            super::say(&format!("ftsh: the history isn't kept: {path}: {reason}\n"));
        }
    }

    /// Remembers an input.
    pub fn remember(&mut self, input: &str) {
        self.knows_try |= begins_with(input, "try");
        self.knows_why |= begins_with(input, why::COMMAND);
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

    /// A statement has failed.
    pub fn failed(&mut self, input: &str) {
        input.clone_into(&mut self.failed);
    }

    /// What its user may not know that would help now. Each is said once, and not to those who have used it.
    pub fn hint(&mut self, script: &Script, failure: Option<&Failure>) -> Option<&'static str> {
        let (true, failure) = (self.is_editor(), failure?) else { return None };
        if failure.tries.iter().any(|it| it.attempts > 1) {
            return (!std::mem::replace(&mut self.knows_why, true)).then_some(why::HINT);
        }
        let is_apt = !self.knows_try && again::may_help(script, failure);
        self.knows_try |= is_apt;
        is_apt.then_some(again::HINT)
    }

    /// Whether there is a line editor.
    pub fn is_editor(&self) -> bool {
        self.editor.is_some()
    }

    /// The terminal's columns.
    pub fn columns(&mut self) -> usize {
        let columns = match &mut self.editor {
            Some(editor) => editor.dimensions().map(|(columns, _)| columns.into()),
            None => std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()),
        };
        columns.filter(|columns| *columns > 0).unwrap_or(80)
    }

    /// Asks for a line, after those that are in `before`. The machine hears of events meanwhile.
    pub fn line(
        &mut self,
        prompt: &Shown,
        before: &str,
        known: Known,
        driver: &mut D,
        until: Time,
        machine: &mut Machine,
    ) -> Line {
        let edits = self.editor.is_some();
        let mut job = match self.ask(prompt, before, known, driver) {
            Ok(job) => job,
            Err(error) => return Line::Unreadable(error.to_string()),
        };
        loop {
            // A line that was read at that moment ends that, too.
            let unsaid = slot(&self.remark).is_some();
            let again = Time::after(driver.now().elapsed() + AGAIN);
            match driver.attend(&mut job, if unsaid { until.min(again) } else { until }) {
                Attended::Answer((editor, line)) => {
                    self.editor = editor;
                    if let Some(unsaid) = slot(&self.remark).take() {
                        super::say(&unsaid);
                    }
                    return match line {
                        Line::End if has_hung_up() => Line::Signal(libc::SIGHUP),
                        Line::Text(line) if edits => Line::Text(self.written_out(line)),
                        line => line,
                    };
                }
                // The editor hears of them itself.
                Attended::Event(Event::Interrupted(libc::SIGINT | libc::SIGQUIT)) if edits => {}
                Attended::Event(Event::Interrupted(libc::SIGINT | libc::SIGQUIT)) => {
                    self.pending = Some(job);
                    super::show("\n");
                    return Line::Interrupted;
                }
                Attended::Event(Event::Interrupted(signal)) => {
                    return Self::abandon(&job, edits, driver, Line::Signal(signal));
                }
                Attended::Event(event) => machine.handle_event(driver.now(), event),
                Attended::Asked if edits => {
                    let page = driver.page(machine);
                    let mut remark = slot(&self.remark);
                    *remark = Some(page);
                    driver.interrupt(&job);
                }
                Attended::Asked => {
                    super::say(&format!("\n{}", driver.page(machine)));
                    super::show(&prompt.0);
                }
                Attended::Timeout if driver.now() < until => {
                    // Not once it is said: that would count as Ctrl-C.
                    let remark = slot(&self.remark);
                    if remark.is_some() {
                        driver.interrupt(&job);
                    }
                }
                Attended::Timeout => {
                    return Self::abandon(&job, edits, driver, Line::Timeout);
                }
            }
        }
    }

    /// A line that ends with an abbreviation, with what that stands for, which is shown then.
    fn written_out(&self, line: String) -> String {
        let Some(long) = self.abbreviations.expand(&line) else { return line };
        super::show(&format!("{}\n", plain(&long)));
        long
    }

    fn abandon(job: &D::Job<Answer>, edits: bool, driver: &mut D, line: Line) -> Line {
        driver.leave_alone(job);
        if edits {
            driver.restore_terminal();
        }
        super::show("\n");
        line
    }

    fn ask(
        &mut self,
        (raw, styled): &Shown,
        before: &str,
        mut known: Known,
        driver: &mut D,
    ) -> io::Result<D::Job<Answer>> {
        let Some(mut editor) = self.editor.take() else {
            super::show(raw);
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
        let remark = Arc::clone(&self.remark);
        driver.begin(move || {
            let mut typed = (String::new(), String::new());
            let line = loop {
                non_blocking_writer::wait(None);
                if let Some(helper) = editor.helper() {
                    helper.start();
                }
                let read = editor.readline_with_initial(&prompt, (&typed.0, &typed.1));
                match read {
                    Ok(line) => break Line::Text(line),
                    Err(ReadlineError::Interrupted) => match slot(&remark).take() {
                        Some(remark) => super::say(&remark),
                        None => break Line::Interrupted,
                    },
                    Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                        break Line::Unreadable("what was typed isn't UTF-8".into());
                    }
                    // Ctrl-D, or the terminal is gone.
                    Err(_) => break Line::End,
                }
                typed = editor.helper().map(Helper::typed).unwrap_or_default();
            };
            (Some(editor), line)
        })
    }
}

fn editor(colours: bool, failed: &Failed, blank: AtBlank) -> rustyline::Result<Editor> {
    let mut config = Config::builder()
        .max_history_size(KEPT)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .color_mode(ColorMode::Forced); // or the helper isn't asked, which knows whether to
    config.enable_synchronized_output(false);
    let config = config.build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(Helper::new(colours)));
    editor.set_auto_add_history(false);
    // A shell at its prompt has nothing to suspend; and its parent may have no job control.
    editor.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Simple(Cmd::Undo(1)));
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(Unhinted)));
    let again = Again(Arc::clone(failed));
    editor.bind_sequence(again::KEY, EventHandler::Conditional(Box::new(again)));
    let key = KeyEvent::new(' ', Modifiers::NONE);
    editor.bind_sequence(key, EventHandler::Conditional(Box::new(blank)));
    Ok(editor)
}

/// Wipes a hint away, which the editor would leave behind a line that is dropped.
struct Unhinted;

impl ConditionalEventHandler for Unhinted {
    fn handle(
        &self,
        _: &rustyline::Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext,
    ) -> Option<Cmd> {
        if context.has_hint() {
            // The cursor is where it begins. Nobody is left to be told of an error.
            let _ = io::stdout().write_all(b"\x1b[J").and_then(|()| io::stdout().flush());
        }
        None
    }
}

/// A line as the terminal hands it over.
fn plain_line() -> Line {
    let mut bytes = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => return Line::End,
        Ok(_) => {}
    }
    match String::from_utf8(bytes) {
        Ok(text) => Line::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
        Err(_) => Line::Unreadable("what was typed isn't UTF-8".into()),
    }
}

fn begins_with(input: &str, word: &str) -> bool {
    input.split_whitespace().next() == Some(word)
}

/// Whether the terminal is gone.
fn has_hung_up() -> bool {
    tcgetattr(io::stdin()) == Err(Errno::EIO)
}
