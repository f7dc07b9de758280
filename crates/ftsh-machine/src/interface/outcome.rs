//! Outcomes and failures. A failure is a value, consumed by `try`.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::trace::{Trace, TraceStep, place};
use ftsh_syntax::Source;
use ftsh_syntax::slug::Slug;

/// Maximum length of a value, and of all words of a command together, in bytes.
pub const MAX_VALUE_LEN: usize = 64 * 1024 * 1024;

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success, or `exit 0`.
    Succeeded,
    /// `exit n` with n > 0.
    Exited(u8),
    /// A failure without a handler.
    Failed(Box<Failure>),
    /// A signal, given by its number.
    Interrupted(i32),
}

impl Outcome {
    /// Returns the shell's exit status; for `Interrupted` the status that a parent shell would
    /// report.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Exited(code) => *code,
            Self::Failed(failure) => failure.exit_code(),
            Self::Interrupted(signal) => (128 + signal) as u8,
        }
    }
}

/// Failure of a command, a structure or a script. The serialized form leaves out the source, which
/// may be long, and the earlier failure, since a reader must not recurse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Exit code or signal number; for other kinds the exit status of a script that ends by the
    /// failure.
    pub code: i32,
    /// Name of the system's error, such as `ENOENT`, if the system gave the reason.
    pub errno: Option<String>,
    /// Slug of the message: that of the kind, or a finer one.
    pub slug: Slug,
    /// Description in one line for people, without the place.
    pub message: String,
    /// Failed command, as typed words.
    pub command: String,
    /// Duration of the command, if a command ran.
    pub elapsed: Option<Duration>,
    /// Script of the failure.
    #[serde(skip)]
    pub source: Arc<Source>,
    /// Line of the failure, from 1.
    pub line: u32,
    /// Tries that the failure ended, innermost first.
    pub tries: Vec<TrySummary>,
    /// Calls and branches around the failure.
    pub trace: Trace,
    /// Earlier failure that explains this failure: the handled failure, or the last failure before
    /// time ran out.
    #[serde(skip)]
    pub earlier: Option<Arc<Failure>>,
    /// Results of the branches, if a `forall` failed.
    pub branches: Option<Arc<BranchResults>>,
    /// Last bytes that the attempt ended by the failure wrote to standard error, if kept.
    #[serde(skip)]
    pub printed: Option<Arc<BString>>,
    /// End of the standard error of the attempts ended by the failure, if it was discarded with
    /// their output.
    pub errors: Option<Arc<BString>>,
    /// End of the standard output of the atomic attempt ended by the failure, which was discarded.
    pub output: Option<Arc<BString>>,
}

/// Results of the branches of a `forall`.
#[derive(Debug, Serialize, Deserialize)]
pub struct BranchResults {
    /// First failed branches, to be reported separately; empty if the failure is simply that of the
    /// first failed branch.
    pub reported: Vec<BranchFailure>,
    /// Number of failed branches.
    pub failed: u64,
    /// True if the failure only counts failures of branches, which are logged. The failures of the
    /// branches of another shell are not in the log of this shell.
    #[serde(skip)]
    pub sums_up: bool,
    /// Words of the branches.
    #[serde(serialize_with = "list_words", deserialize_with = "listed_words")]
    pub words: Arc<dyn BranchWords>,
}

impl BranchResults {
    /// Returns the results without the lists of words.
    #[must_use]
    pub fn without_words(&self) -> Self {
        let (reported, words) = (self.reported.clone(), Arc::new(ListedWords::default()));
        Self { reported, failed: self.failed, sums_up: self.sums_up, words }
    }
}

/// Failure of a branch of a `forall`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchFailure {
    /// `name=word`
    pub word: String,
    /// Place and message of the failure.
    pub story: String,
    /// Last lines that the failed attempt printed and that were discarded.
    pub printed: Vec<String>,
}

/// Words of a `forall`, in a form that is cheap for long lists, because few scripts list them.
pub trait BranchWords: fmt::Debug + Send + Sync {
    /// Calls `visit` for each word of the branches that succeeded, or of all others.
    ///
    /// # Errors
    ///
    /// [`UnknownWords`] if another machine ran the branches and sent no words.
    fn each(&self, succeeded: bool, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords>;

    /// Calls `visit` with what failed, for each word of the branches that did not succeed.
    ///
    /// # Errors
    ///
    /// [`UnknownWords`] if the texts were too long to be kept or to be sent.
    fn each_error(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords>;
}

/// Absence of a list about branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownWords {
    /// The list was too long to be sent by another machine.
    #[error("the machine that ran the branches sent no list of words, which is too long")]
    NotSent,
    /// The list was too long to be kept.
    #[error("the list is too long")]
    TooLong,
}

/// Words of branches as lists, each absent if too long for a value.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ListedWords {
    succeeded: Option<Vec<BString>>,
    others: Option<Vec<BString>>,
    errors: Option<Vec<BString>>,
}

impl BranchWords for ListedWords {
    fn each(&self, succeeded: bool, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        let words = if succeeded { &self.succeeded } else { &self.others };
        words.iter().flatten().for_each(|word| visit(word));
        words.as_ref().map(|_| ()).ok_or(UnknownWords::NotSent)
    }

    fn each_error(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        self.errors.iter().flatten().for_each(|error| visit(error));
        self.errors.as_ref().map(|_| ()).ok_or(UnknownWords::NotSent)
    }
}

fn list_words<S: Serializer>(words: &Arc<dyn BranchWords>, out: S) -> Result<S::Ok, S::Error> {
    let (succeeded, others) =
        (list(|add| words.each(true, add)), list(|add| words.each(false, add)));
    ListedWords { succeeded, others, errors: list(|add| words.each_error(add)) }.serialize(out)
}

fn listed_words<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<dyn BranchWords>, D::Error> {
    Ok(Arc::new(ListedWords::deserialize(from)?))
}

/// Lists the texts that a function visits; `None` if they are too long for a value.
fn list(
    each: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), UnknownWords>,
) -> Option<Vec<BString>> {
    let (mut words, mut length) = (Vec::new(), 0);
    let mut add = |word: &[u8]| {
        length += word.len() + 1;
        if length <= MAX_VALUE_LEN {
            words.push(BString::from(word));
        }
    };
    each(&mut add).ok()?;
    (length <= MAX_VALUE_LEN).then_some(words)
}

/// Equal failures have equal words.
impl PartialEq for BranchResults {
    fn eq(&self, other: &Self) -> bool {
        self.reported == other.reported && self.failed == other.failed
    }
}

impl Eq for BranchResults {}

/// Number of attempts and duration of a `try`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrySummary {
    /// Script of the `try`.
    pub file: Arc<str>,
    /// Line of the `try`.
    pub line: u32,
    /// Number of attempts made.
    pub attempts: u64,
    /// Time from the start of the first attempt to the end.
    pub elapsed: Duration,
}

/// Kinds of failure that scripts distinguish by `$error_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureKind {
    /// A command exited non-zero.
    Exit,
    /// A signal killed a command.
    Signal,
    /// A time limit passed.
    Timeout,
    /// A sibling failed, or the shell was interrupted.
    Canceled,
    /// A program was not found or is not executable.
    NotFound,
    /// A program could not be started.
    Spawn,
    /// A redirection could not be opened.
    Redirect,
    /// An expression or a word has no value.
    Expression,
    /// The script executed `failure`, or a builtin returned a negative result.
    Failure,
    /// A builtin could not write or read. Scripts see the kind `io`, but as a condition the
    /// failure is no answer.
    Builtin,
    /// The script executed `giveup`.
    Giveup,
    /// The script executed `defer`.
    Deferred,
    /// A channel did not admit an attempt.
    Refused,
    /// The command was running when the shell ended, and its result is unknown to the resumed run.
    Lost,
    /// An engine for remote branches failed.
    Engine,
    /// Internal error of the shell.
    Internal,
    /// A value that the caller of the script must give is missing.
    Usage,
    /// A directory could not be entered, or a file could not be read by the shell itself.
    Io,
    /// The processes of an attempt made no progress for the time of `stalled`.
    Stalled,
    /// The processes of an attempt used more memory than the size of `memory`.
    Memory,
    /// Another process changed what an attempt of `atomic in` changed.
    Conflict,
    /// The command of a `with` ended before the group.
    Companion,
}

impl FailureKind {
    /// Names of the kinds, in the order of the language's description.
    pub const NAMES: [&'static str; 21] = Slug::KINDS;

    /// Returns true if a limit of the script ended something that was still running.
    pub const fn is_limit(self) -> bool {
        matches!(self, Self::Timeout | Self::Stalled | Self::Memory)
    }

    /// Returns the exit status of a script that ends by a failure of this kind with a code.
    pub fn exit_code(self, code: i32) -> u8 {
        match self {
            Self::Signal => (128 + code).clamp(1, 255) as u8,
            Self::Exit
            | Self::Timeout
            | Self::Canceled
            | Self::NotFound
            | Self::Spawn
            | Self::Redirect
            | Self::Expression
            | Self::Failure
            | Self::Builtin
            | Self::Giveup
            | Self::Deferred
            | Self::Refused
            | Self::Lost
            | Self::Engine
            | Self::Internal
            | Self::Usage
            | Self::Stalled
            | Self::Memory
            | Self::Conflict
            | Self::Companion
            | Self::Io => code.clamp(1, 255) as u8,
        }
    }

    /// Returns the code of a failure that the machine finds while it evaluates a script.
    pub(crate) const fn code(self) -> i32 {
        match self {
            Self::Usage => 2,
            _ => 1,
        }
    }

    /// Returns the name of the kind in scripts and logs.
    pub const fn name(self) -> &'static str {
        self.slug().name()
    }

    /// Returns the slug of the kind.
    pub const fn slug(self) -> Slug {
        match self {
            Self::Exit => Slug::Exit,
            Self::Signal => Slug::Signal,
            Self::Timeout => Slug::Timeout,
            Self::Canceled => Slug::Canceled,
            Self::NotFound => Slug::NotFound,
            Self::Spawn => Slug::Spawn,
            Self::Redirect => Slug::Redirect,
            Self::Expression => Slug::Expression,
            Self::Failure => Slug::Failure,
            Self::Builtin | Self::Io => Slug::Io,
            Self::Giveup => Slug::Giveup,
            Self::Deferred => Slug::Deferred,
            Self::Refused => Slug::Refused,
            Self::Lost => Slug::Lost,
            Self::Engine => Slug::Engine,
            Self::Internal => Slug::Internal,
            Self::Usage => Slug::Usage,
            Self::Stalled => Slug::Stalled,
            Self::Memory => Slug::Memory,
            Self::Conflict => Slug::Conflict,
            Self::Companion => Slug::Companion,
        }
    }

    /// True if the shell words the message of such a failure, not a command or the script.
    pub const fn is_of_the_shell(self) -> bool {
        match self {
            Self::Exit
            | Self::Signal
            | Self::Failure
            | Self::Giveup
            | Self::Deferred
            | Self::Usage => false,
            Self::Timeout
            | Self::Canceled
            | Self::NotFound
            | Self::Spawn
            | Self::Redirect
            | Self::Expression
            | Self::Refused
            | Self::Lost
            | Self::Engine
            | Self::Internal
            | Self::Builtin
            | Self::Stalled
            | Self::Memory
            | Self::Conflict
            | Self::Companion
            | Self::Io => true,
        }
    }
}

/// Effect of a failure on the innermost enclosing `try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retry {
    /// Retry as the clauses say.
    AsUsual,
    /// Repeat the same attempt, at the earliest after this time.
    Deferred(Duration),
    /// Make no further attempt.
    Never,
    /// The reader of a pipeline's stage, or of the script's output, is gone. The `try` is left
    /// together with the rest of the stage or the script. Another machine has no such reader.
    #[serde(skip)]
    BrokenPipe,
}

impl Retry {
    /// Returns true for a failure that `forany` and conditions pass on to the enclosing `try`.
    pub(crate) fn is_for_try_only(self) -> bool {
        self != Self::AsUsual
    }
}

impl Failure {
    /// Creates a failure without a place and without anything around it.
    pub fn new(kind: FailureKind, code: i32, message: String, command: String) -> Self {
        Self {
            kind,
            code,
            errno: None,
            slug: kind.slug(),
            message,
            command,
            elapsed: None,
            source: Arc::default(),
            line: 0,
            tries: Vec::new(),
            trace: Trace::default(),
            earlier: None,
            branches: None,
            printed: None,
            errors: None,
            output: None,
        }
    }

    /// Returns the exit status of a script that ends by the failure.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code(self.code)
    }

    /// Returns the name, without SIG, of the signal that killed the command or ends the shell.
    pub fn signal(&self) -> Option<String> {
        let number = match self.kind {
            FailureKind::Signal => self.code,
            FailureKind::Canceled => self.code.checked_sub(128).filter(|number| *number > 0)?,
            _ => return None,
        };
        let name = signal_name(number);
        Some(name.trim_start_matches("SIG").trim_start_matches("signal ").to_owned())
    }
}

/// The kind of a failure, and its code.
pub type KindAndCode = (FailureKind, i32);

impl Failure {
    /// Returns the kind and the code.
    pub fn reason(&self) -> KindAndCode {
        (self.kind, self.code)
    }

    /// Returns the slug if the shell worded the message, not a command or the script.
    pub fn shown_slug(&self) -> Option<Slug> {
        let is_shown = self.kind.is_of_the_shell() || self.slug != self.kind.slug();
        is_shown.then_some(self.slug)
    }

    /// Returns the name of the script with the failure.
    pub fn file(&self) -> &Arc<str> {
        self.source.name()
    }

    /// Returns the line with the steps around the failure, as seen from a script: `line 5, called
    /// at line 9`.
    pub fn way<'a>(
        &self,
        seen_from: &str,
        steps: impl IntoIterator<Item = &'a TraceStep>,
    ) -> String {
        let mut way = place(self.file(), self.line, seen_from);
        for step in steps {
            way += ", ";
            way += &step.brief(seen_from);
        }
        way
    }

    /// Returns the kept output of the attempt ended by the failure.
    pub fn all_output(&self) -> Vec<u8> {
        let parts = [&self.printed, &self.errors, &self.output];
        parts.into_iter().flatten().flat_map(|part| part.iter().copied()).collect()
    }

    /// Returns the results of the branches of the `forall` that failed or was cut short.
    pub fn of_branches(&self) -> Option<&Arc<BranchResults>> {
        let is_cut =
            self.kind.is_limit() || matches!(self.kind, FailureKind::Canceled | FailureKind::Lost);
        let earlier = self.earlier.as_deref().filter(|_| is_cut);
        self.branches.as_ref().or_else(|| earlier?.of_branches())
    }

    /// Returns the last non-empty lines, at most `most`, printed by the attempts ended by the failure
    /// and discarded: those of standard error, if there are any. A failure that was cut short in a
    /// later attempt has those of the earlier failure.
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        let is_cut = self.kind.is_limit() || self.kind == FailureKind::Canceled;
        let earlier = self.earlier.as_ref().filter(|_| is_cut);
        let errors = self.errors.as_ref().or_else(|| earlier?.errors.as_ref());
        let output = errors.or(self.output.as_ref()).map_or(&b""[..], |output| output);
        let lines = output.lines().rev().filter(|line| !line.trim_ascii().is_empty());
        let mut lines: Vec<_> = lines.take(most).map(|line| line.to_str_lossy().into()).collect();
        lines.reverse();
        lines
    }

    /// Returns one line for people: the message and the number of attempts, without the place.
    pub fn summary(&self) -> String {
        // Messages may contain newlines of a script or a file name.
        let mut summary = self.message.replace(|c: char| c.is_control(), " ");
        for tried in self.tries.iter().filter(|tried| tried.attempts > 1) {
            // Writing to a string cannot fail.
            let _ = write!(summary, ", {} attempts in {}", tried.attempts, Human(tried.elapsed));
        }
        summary
    }
}

impl fmt::Display for Failure {
    /// The place and the summary.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file(), self.line, self.summary())
    }
}

/// Returns a command, or another text, as one line that is short enough for a message.
pub fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Duration for people: `350 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`.
pub struct Human(
    /// Duration to show.
    pub Duration,
);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let millis = self.0.as_millis();
        let seconds = self.0.as_secs();
        let pair = |f: &mut fmt::Formatter, size: u64, unit: &str, part: u64, name: &str| {
            let (whole, rest) = (seconds / size, seconds % size / part);
            write!(f, "{whole} {unit}")?;
            if rest > 0 { write!(f, " {rest} {name}") } else { Ok(()) }
        };
        match seconds {
            0 => write!(f, "{millis} ms"),
            1..60 if millis.is_multiple_of(1000) => write!(f, "{seconds} s"),
            1..60 => write!(f, "{}.{} s", seconds, millis % 1000 / 100),
            60..3600 => pair(f, 60, "min", 1, "s"),
            3600..86400 => pair(f, 3600, "h", 60, "min"),
            _ => pair(f, 86400, "d", 3600, "h"),
        }
    }
}

/// Returns a signal's name, such as `SIGTERM`.
pub(crate) fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal - 1).ok().and_then(|index| NAMES.get(index));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}
