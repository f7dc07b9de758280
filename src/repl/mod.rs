//! The prompt: a session of single statements.

mod at_blank;
mod end_keys;
mod helper;
mod history;
mod prompt;
mod read;
mod retry_key;
mod screen;
mod story;
mod why;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use nix::sys::signal::Signal;
use nix::unistd::{gethostname, getuid};

use self::prompt::{Facts, Shown};
use self::read::{LineReader, ReadLine};
pub use self::story::Story;
use ftsh_ide::help::{self, ProgramTopic};
use ftsh_ide::known::SessionSnapshot;
use ftsh_machine::driver::{self, Interactive};
use ftsh_machine::event::Event;
use ftsh_machine::secrets::Secrets;
use ftsh_machine::time::Time;
use ftsh_machine::{Failure, FailureKind, Machine, Outcome};
use ftsh_process::non_blocking_writer;
use ftsh_process::{Edited, TerminalRestore};
use ftsh_syntax::ast::{Block, Name};
use ftsh_syntax::diagnostic;
use ftsh_syntax::{KnownNames, Script, Source, parse_with, unfinished_with};

/// Name of a statement in messages.
pub const NAME: &str = "prompt";

/// Returns an empty script, which begins a session.
pub fn nothing() -> Script {
    Script::new(Arc::new(Source::new(NAME, "")), Block::default())
}

/// Returns the action that restores the terminal if the shell is killed at its prompt.
pub fn restore() -> Option<TerminalRestore> {
    TerminalRestore::new(if read::is_capable() { read::SEQUENCE } else { "" })
}

/// Runs statements of the user until the session ends. The driver's log adds records to `story`, and
/// `help` knows `topics` besides those of the language.
pub fn run(
    machine: Machine,
    driver: impl Interactive<Edited = Edited>,
    story: Rc<RefCell<Story>>,
    topics: Vec<ProgramTopic>,
) -> Outcome {
    let capable = read::is_capable();
    let colors = capable && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut session = Session {
        machine,
        driver,
        reader: LineReader::new(capable, colors),
        story,
        topics: topics.into(),
        last: None,
        why: None,
        misused: None,
        colors,
        unicode: has_unicode_locale(),
    };
    driver::run(&mut session.machine, &mut session.driver);
    write_output(concat!("ftsh ", env!("CARGO_PKG_VERSION"), ": `help` helps, Ctrl-D leaves\n"));
    loop {
        if let Some(outcome) = session.turn() {
            return session.driver.flush_on_exit(outcome);
        }
    }
}

struct Session<D: Interactive<Edited = Edited>> {
    machine: Machine,
    driver: D,
    reader: LineReader<D>,
    /// Tries of the present statement.
    story: Rc<RefCell<Story>>,
    /// Topics of `help` that the language does not have.
    topics: Arc<[ProgramTopic]>,
    /// Failure of the last statement, in one or two words.
    last: Option<String>,
    /// Last statement that failed, for `why`.
    why: Option<why::LastFailure>,
    /// Value of `FTSH_PROMPT` with a reported error.
    misused: Option<String>,
    colors: bool,
    unicode: bool,
}

/// A complete input, or the reason for none.
enum PromptInput {
    Text(String),
    Nothing,
    End,
    Signal(i32),
    Timeout,
}

impl<D: Interactive<Edited = Edited>> Session<D> {
    /// Runs one statement. Returns the outcome of the session after the last one.
    fn turn(&mut self) -> Option<Outcome> {
        let text = match self.input() {
            PromptInput::Text(text) => text,
            PromptInput::Nothing => return None,
            PromptInput::End => return Some(Outcome::Succeeded),
            PromptInput::Signal(signal) => return Some(self.end_by(signal)),
            PromptInput::Timeout => {
                let outcome = self.statement(&nothing());
                write_error("ftsh: the deadline of this shell has passed\n");
                return Some(outcome);
            }
        };
        self.reader.remember(&text);
        let functions: Vec<&str> = self.machine.functions().map(|name| &**name).collect();
        let channels: Vec<&str> = self.machine.channels().map(|name| &**name).collect();
        let names = known_names(&functions, &channels);
        let script = match parse_with(NAME, &text, names) {
            Ok(script) => script,
            Err(errors) => {
                match help::asked_of_operator(&text) {
                    Some(topics) => self.help(&topics),
                    None => write_error(&diagnostic::render_all(&errors)),
                }
                return None;
            }
        };
        if script.body.commands.is_empty() {
            return None;
        }
        if let Some(topics) = self.prompt_command(&script, help::COMMAND) {
            self.help(&topics);
            return None;
        }
        if self.prompt_command(&script, why::COMMAND).is_some_and(|words| words.is_empty()) {
            self.show_why();
            return None;
        }
        let began = self.driver.now();
        *self.story.borrow_mut() = Story::default();
        let outcome = self.statement(&script);
        self.last = self.note(&text, &script, began, &outcome);
        let is_over = match outcome {
            Outcome::Interrupted(signal) => !matches!(signal, libc::SIGINT | libc::SIGQUIT),
            _ => {
                self.machine.exit_requested() || self.machine.deadline().is_past(self.driver.now())
            }
        };
        if !is_over && self.reader.is_editor() {
            self.begin_line();
        }
        is_over.then_some(outcome)
    }

    fn help(&mut self, topics: &[String]) {
        let columns = self.reader.columns();
        write_output(&help::answer(topics, &self.topics, columns, self.colors));
    }

    /// Reports the failure of a statement and keeps it for `why`. Returns the failure in one or two
    /// words.
    fn note(
        &mut self,
        text: &str,
        script: &Script,
        began: Time,
        outcome: &Outcome,
    ) -> Option<String> {
        let (report, name, failure) = match outcome {
            Outcome::Failed(failure) => {
                let report = report(failure, &script.source, self.machine.secrets());
                write_error(&report);
                (report, name(failure), Some(Failure::clone(failure)))
            }
            Outcome::Interrupted(signal) => {
                write_error("\n");
                let name = signal_name(*signal);
                (format!("interrupted by {name}\n"), name, None)
            }
            Outcome::Succeeded | Outcome::Exited(_) => return None,
        };
        let (ended, story) = (self.driver.now(), self.story.take());
        let hint = self.reader.hint(script, failure.as_ref());
        self.reader.failed(text);
        if let Some(hint) = hint {
            let hint = help::fill_hanging(hint, "  ", "  ", self.reader.columns());
            let hint = hint.trim_end();
            write_error(&if self.colors {
                format!("\x1b[2m{hint}\x1b[0m\n")
            } else {
                format!("{hint}\n")
            });
        }
        let statement = text.to_owned();
        self.why = Some(why::LastFailure { statement, began, ended, report, failure, story });
        Some(name)
    }

    fn show_why(&mut self) {
        let columns = self.reader.columns();
        let (now, secrets) = (self.driver.now(), self.machine.secrets());
        match &self.why {
            Some(last) => write_output(&last.render(now, columns, secrets)),
            None => write_output("Nothing has failed yet.\n"),
        }
    }

    fn statement(&mut self, script: &Script) -> Outcome {
        self.machine.run_next(script);
        let outcome = driver::run(&mut self.machine, &mut self.driver);
        self.driver.reset_terminal();
        outcome
    }

    /// Ends the session because of a signal at the prompt.
    fn end_by(&mut self, signal: i32) -> Outcome {
        self.machine.run_next(&nothing());
        self.machine.handle_event(self.driver.now(), Event::Interrupted(signal));
        driver::run(&mut self.machine, &mut self.driver)
    }

    /// Reads lines until they form a complete input.
    fn input(&mut self) -> PromptInput {
        let mut text: Option<String> = None;
        loop {
            let functions: Vec<Name> = self.machine.functions().cloned().collect();
            let functions: Vec<&str> = functions.iter().map(|name| &**name).collect();
            let channels: Vec<Name> = self.machine.channels().cloned().collect();
            let channels: Vec<&str> = channels.iter().map(|name| &**name).collect();
            let names = known_names(&functions, &channels);
            let unfinished = |text: &str| unfinished_with(text, names);
            let lacks = text.as_deref().and_then(unfinished);
            let mut known = SessionSnapshot::of(&self.machine);
            known.topics = Arc::clone(&self.topics);
            let prompt = match lacks {
                Some(lacks) => {
                    let prompt = prompt::continuation(lacks, self.unicode);
                    (prompt.clone(), prompt)
                }
                None => self.prompt(&known),
            };
            let before = text.as_ref().map(|text| format!("{text}\n")).unwrap_or_default();
            let until = self.machine.deadline().timer_moment();
            let (driver, machine) = (&mut self.driver, &mut self.machine);
            let line = match self.reader.line(&prompt, &before, known, driver, until, machine) {
                ReadLine::Text(line) => line,
                ReadLine::Interrupted => return PromptInput::Nothing,
                ReadLine::End if text.is_some() => {
                    // An unfinished input is an error at the end of the session.
                    if let Err(errors) = parse_with(NAME, &before, names) {
                        write_error(&diagnostic::render_all(&errors));
                    }
                    return PromptInput::Nothing;
                }
                ReadLine::End => return PromptInput::End,
                ReadLine::Unreadable(reason) => {
                    write_error(&format!("ftsh: {reason}\n"));
                    return PromptInput::Nothing;
                }
                ReadLine::Signal(signal) => return PromptInput::Signal(signal),
                ReadLine::Timeout => return PromptInput::Timeout,
            };
            let whole = before + &line;
            if unfinished(&whole).is_none() {
                return PromptInput::Text(whole);
            }
            text = Some(whole);
        }
    }

    fn prompt(&mut self, known: &SessionSnapshot) -> Shown {
        let host = gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let user = match known.variable("USER").or(known.variable("LOGNAME")) {
            Some(user) => user.to_string(),
            None => getuid().to_string(),
        };
        let facts = Facts {
            directory: &known.directory,
            home: known.home(),
            failure: self.last.as_deref(),
            user: &user,
            host: host.split('.').next().unwrap_or_default(),
            root: getuid().is_root(),
            columns: self.reader.columns(),
            unicode: self.unicode,
        };
        let format = known.variable("FTSH_PROMPT").map(ToString::to_string);
        let format = format.filter(|format| !format.is_empty());
        let (raw, styled) = prompt::render(format.as_deref(), &facts).unwrap_or_else(|reason| {
            if self.misused != format {
                write_error(&format!(
                    "ftsh: FTSH_PROMPT can't be used: {reason}; see `help prompt`\n"
                ));
                self.misused = format;
            }
            prompt::render(None, &facts).unwrap_or_default()
        });
        if self.colors { (raw, styled) } else { (raw.clone(), raw) }
    }

    /// Returns the words after a command of the prompt, if the statement consists of the command
    /// and no function has its name.
    fn prompt_command(&self, script: &Script, command: &str) -> Option<Vec<String>> {
        let words = help::asked(script, command)?;
        (!self.machine.functions().any(|name| &**name == command)).then_some(words)
    }

    /// Moves the cursor to the beginning of a line if a command has left it elsewhere, because the
    /// editor would erase that text. The terminal is not queried: a line full of blanks wraps only
    /// after other text.
    fn begin_line(&mut self) {
        let columns = self.reader.columns();
        let mark = match (self.unicode, self.colors) {
            (true, true) => "\x1b[2m⏎\x1b[0m",
            (true, false) => "⏎",
            (false, true) => "\x1b[7m%\x1b[0m",
            (false, false) => "%",
        };
        write_output(&format!("{mark}{}\r \r", " ".repeat(columns.saturating_sub(1))));
    }
}

/// Writes to standard output.
/// Returns the names that are defined at the prompt.
fn known_names<'n>(functions: &'n [&'n str], channels: &'n [&'n str]) -> KnownNames<'n> {
    KnownNames { functions, channels, is_open: true, is_part: true, has_used: false }
}

fn write_output(text: &str) {
    non_blocking_writer::standard_output().print(text);
}

/// Writes to standard error.
fn write_error(text: &str) {
    non_blocking_writer::standard_error().print(text);
}

/// Renders a failure. Leaves out the place if the place is the single line above.
fn report(failure: &Failure, source: &Source, secrets: &Secrets) -> String {
    let mut failure = failure.clone();
    // The failure of an earlier statement was reported then.
    failure.earlier.take_if(|earlier| !Arc::ptr_eq(earlier.file(), source.name()));
    let text = crate::report::render(&failure, secrets);
    // The place may be in a function or in a file.
    if !Arc::ptr_eq(failure.file(), source.name()) {
        return text;
    }
    let several = source.text().trim().contains('\n');
    let here = if several { format!("line {}: ", failure.line) } else { String::new() };
    text.replacen(&format!("{NAME}:{}: ", failure.line), &here, 1)
}

/// Returns a failure in one or two words.
fn name(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Exit => format!("exit {}", failure.code),
        FailureKind::Signal => signal_name(failure.code),
        kind => kind.name().to_owned(),
    }
}

fn signal_name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("signal {signal}"),
    }
}

/// True if the locale shows more than ASCII.
fn has_unicode_locale() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
