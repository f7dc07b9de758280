//! How things end: failures are values that `try` consumes.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use thiserror::Error;

use crate::tasks::trace::{Step, Trace, place};
use ftsh_syntax::Source;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded, or said `exit 0`.
    Succeeded,
    /// It said `exit n` with n > 0.
    Exited(u8),
    /// A failure that nothing caught ended it.
    Failed(Box<Failure>),
    /// This signal ended it.
    Interrupted(i32),
}

impl Outcome {
    /// The shell's exit status; for `Interrupted` what a shell would see.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Exited(code) => *code,
            Self::Failed(failure) => failure.exit_code(),
            Self::Interrupted(signal) => (128 + signal) as u8,
        }
    }
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The exit code or the signal's number; for other kinds the exit status of a script that
    /// ends by this failure.
    pub code: i32,
    /// What happened, in one line for people, without the place.
    pub message: String,
    /// The command that failed, as typed words.
    pub command: String,
    /// How long the command ran, if one did.
    pub elapsed: Option<Duration>,
    /// The script it stands in.
    pub source: Arc<Source>,
    /// The line, from 1.
    pub line: u32,
    /// The tries it ended, innermost first.
    pub tries: Vec<Tried>,
    /// Calls and branches around it.
    pub trace: Trace,
    /// An earlier failure that explains this one: what was being handled, or what had failed
    /// before time ran out.
    pub earlier: Option<Arc<Failure>>,
    /// What became of the branches, if it is the failure of a `forall`.
    pub branches: Option<Arc<Branches>>,
    /// The end of what the attempt that it ended has written to standard error, if it was kept.
    pub printed: Option<Arc<BString>>,
    /// What the atomic attempt that it ended had written last, which is dropped: standard error, then
    /// standard output.
    pub output: Option<Arc<BString>>,
}

/// What became of the branches of a `forall`.
#[derive(Debug)]
pub struct Branches {
    /// The first ones that failed, to be told one by one; none if the failure is simply that of the
    /// first one.
    pub told: Vec<BranchFailure>,
    /// How many failed.
    pub failed: u64,
    /// Their words.
    pub words: Arc<dyn Words>,
}

/// How a branch of a `forall` failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BranchFailure {
    /// `name=word`
    pub word: String,
    /// Where and how.
    pub story: String,
}

/// The words of a `forall`: lists can be long, and few ask for them.
pub trait Words: fmt::Debug + Send + Sync {
    /// Lists those of the branches that succeeded, or of all others, one a line.
    ///
    /// # Errors
    ///
    /// [`Unlistable`] if the words cannot be listed so.
    fn list(&self, succeeded: bool) -> Result<BString, Unlistable>;
}

/// Reasons why words cannot be listed one a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unlistable {
    /// The list is longer than a value can be.
    #[error("the words are more than a variable can hold")]
    TooLong,
    /// A list one a line would have two words for one.
    #[error("a word has a newline in it, so the words cannot be listed one a line")]
    Newline,
    /// The machine that ran the branches sent no list.
    #[error("the words are not known here")]
    Unknown,
}

/// Words are the same where failures are.
impl PartialEq for Branches {
    fn eq(&self, other: &Self) -> bool {
        self.told == other.told && self.failed == other.failed
    }
}

impl Eq for Branches {}

/// How often and how long a `try` tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The script the `try` stands in.
    pub file: Arc<str>,
    /// The line of the `try`.
    pub line: u32,
    /// The number of attempts made.
    pub attempts: u64,
    /// From the first attempt's start to the end.
    pub elapsed: Duration,
}

/// The kinds of failure that scripts can tell apart as `$error_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum FailureKind {
    /// A command exited non-zero.
    Exit,
    /// A signal killed a command.
    Signal,
    /// A time limit passed.
    Timeout,
    /// A sibling failed, or the shell was told to end.
    Cancelled,
    /// A program was not found or is not executable.
    NotFound,
    /// A program could not be started.
    Spawn,
    /// A redirection could not be opened.
    Redirect,
    /// An expression or a word has no value.
    Expression,
    /// The script said `failure`, or a builtin says no.
    Failure,
    /// A builtin could not write or read. To scripts that is a `failure`, but it answers no question.
    Builtin,
    /// The script said `giveup`.
    Giveup,
    /// The script said `defer`.
    Deferred,
    /// A channel doesn't let an attempt through.
    Refused,
    /// It was going on when the shell ended, and the run goes on without knowing what came of it.
    Lost,
    /// What is to run branches elsewhere doesn't.
    Engine,
    /// The shell itself has gone wrong.
    Internal,
}

impl FailureKind {
    /// The names, in the order of the language's description.
    pub const NAMES: [&'static str; 15] = [
        "exit",
        "signal",
        "timeout",
        "cancelled",
        "notfound",
        "spawn",
        "redirect",
        "expression",
        "failure",
        "giveup",
        "deferred",
        "refused",
        "lost",
        "engine",
        "internal",
    ];

    /// The exit status of a script that ends by a failure of this kind with this code.
    pub fn exit_code(self, code: i32) -> u8 {
        match self {
            Self::Signal => (128 + code).clamp(1, 255) as u8,
            Self::Exit
            | Self::Timeout
            | Self::Cancelled
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
            | Self::Internal => code.clamp(1, 255) as u8,
        }
    }

    /// Its name in scripts and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::NotFound => "notfound",
            Self::Spawn => "spawn",
            Self::Redirect => "redirect",
            Self::Expression => "expression",
            Self::Failure | Self::Builtin => "failure",
            Self::Giveup => "giveup",
            Self::Deferred => "deferred",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Engine => "engine",
            Self::Internal => "internal",
        }
    }
}

impl Failure {
    /// The exit status of a script that ends by this failure.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code(self.code)
    }
}

/// The kind of a failure, and its code.
pub type KindAndCode = (FailureKind, i32);

impl Failure {
    /// Returns the kind and the code.
    pub fn reason(&self) -> KindAndCode {
        (self.kind, self.code)
    }

    /// The name of the script it stands in.
    pub fn file(&self) -> &Arc<str> {
        self.source.name()
    }

    /// Its line with the steps around it, as seen from a script: `line 5, called at line 9`.
    pub fn way<'a>(&self, seen_from: &str, steps: impl IntoIterator<Item = &'a Step>) -> String {
        let mut way = place(self.file(), self.line, seen_from);
        for step in steps {
            way += ", ";
            way += &step.brief(seen_from);
        }
        way
    }

    /// Returns what is known of what the attempt that it ended had printed.
    pub fn all_output(&self) -> Vec<u8> {
        let parts = [&self.printed, &self.output];
        parts.into_iter().flatten().flat_map(|part| part.iter().copied()).collect()
    }

    /// Returns what became of the branches of the `forall` that failed, or that was cut short.
    pub fn of_branches(&self) -> Option<&Arc<Branches>> {
        let is_cut =
            matches!(self.kind, FailureKind::Timeout | FailureKind::Cancelled | FailureKind::Lost);
        let earlier = self.earlier.as_deref().filter(|_| is_cut);
        self.branches.as_ref().or_else(|| earlier?.of_branches())
    }

    /// The last lines that the atomic attempt had printed which it ended, of so many at most.
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        let output = self.output.as_deref().map_or(&b""[..], |output| output);
        let lines = output.lines().rev().filter(|line| !line.trim_ascii().is_empty());
        let mut lines: Vec<_> = lines.take(most).map(|line| line.to_str_lossy().into()).collect();
        lines.reverse();
        lines
    }

    /// One line for people: what happened, after how many attempts; without the place.
    pub fn summary(&self) -> String {
        // One line, whatever a script or a file name says.
        let mut summary = self.message.replace(|c: char| c.is_control(), " ");
        for tried in self.tries.iter().filter(|tried| tried.attempts > 1) {
            // Writing to a string can't fail.
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

/// A command, or another text, in one line and short enough for a message.
pub fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Shows a duration to people: `350 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`.
pub struct Human(
    /// What to show.
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
