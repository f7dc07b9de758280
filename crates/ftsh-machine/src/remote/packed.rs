//! A branch of a `forall` as plain data, so that another machine, of the same version, can run it: what it
//! sees, but no descriptors.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

use crate::channels::Rules;
use crate::outcome::{BranchFailure, FailureKind};
use ftsh_syntax::backoff::Policy;

/// A branch that has not begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedBranch {
    /// The texts it may run, and those that failures are shown in.
    pub texts: Vec<Text>,
    /// Where its `forall` stands.
    pub place: Place,
    /// Its word, which the variable of the `forall` has.
    pub word: PackedValue,
    /// Its functions.
    pub functions: Vec<(String, Place)>,
    /// The channels that are declared, with their rules once that was run.
    pub channels: Vec<(String, Option<Rules>)>,
    /// Its variables.
    pub variables: Vec<PackedVariable>,
    /// What the run's environment had, and the script has unset.
    pub unset: Vec<String>,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// Where it begins; absolute.
    pub directory: BString,
    /// The rights that its files don't get.
    pub umask: u16,
    /// What it sees of the structures around it.
    pub around: Around,
    /// When it was to begin, on the clock of the run.
    pub at: Duration,
    /// For its random choices.
    pub seed: u64,
    /// The settings of the run.
    pub settings: PackedSettings,
}

/// A script, or a file that one has sourced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// What it is called.
    pub name: String,
    /// All of it.
    pub text: String,
    /// How many instructions it has, where some of them may be run.
    pub length: Option<usize>,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Of which text.
    pub text: usize,
    /// Which of its instructions: that holds for the same text and the same version only.
    pub at: usize,
}

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: PackedValue,
    /// Whether commands get it in their environment.
    pub exported: bool,
    /// Whether it came with the environment and the script has not assigned it.
    pub inherited: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedValue {
    /// Bytes.
    Text(BString),
    /// An integer.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// The first integer of a range, the last one, how far they are apart.
    Range(i64, i64, i64),
    /// The content of a variable that is used as a file.
    Written(BString),
}

/// What a branch sees of the structures around it. Times are on the clock of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// The tightest limit.
    pub deadline: Option<Duration>,
    /// The innermost `try`: which attempt it makes, when it began, when it must end.
    pub attempt: Option<(u64, Duration, Option<Duration>)>,
    /// What was caught; nothing if empty.
    pub caught: Vec<PackedFailure>,
    /// Whether a `finally` group is around that comes after success.
    pub succeeded: bool,
    /// How deep calls are nested.
    pub depth: usize,
    /// Whether a `finally` group around is still to be run.
    pub is_guarded: bool,
    /// The channels that attempts around have gone through.
    pub inside: Vec<String>,
    /// Whether an attempt around is not the first one.
    pub is_retried: bool,
}

/// A failure without the one that explains it, which comes after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFailure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The exit code or the signal's number.
    pub code: i32,
    /// What happened, in one line for people.
    pub message: String,
    /// The command that failed, as typed words.
    pub command: String,
    /// How long the command ran, if one did.
    pub elapsed: Option<Duration>,
    /// The text it stands in.
    pub text: usize,
    /// The line, from 1.
    pub line: u32,
    /// The tries it ended, innermost first.
    pub tries: Vec<PackedTried>,
    /// What became of the branches, if it is the failure of a `forall`.
    pub branches: Option<PackedBranches>,
    /// What the atomic attempt that it ended had written last.
    pub output: Option<BString>,
}

/// How often and how long a `try` tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedTried {
    /// The script the `try` stands in.
    pub file: String,
    /// The line of the `try`.
    pub line: u32,
    /// The number of attempts made.
    pub attempts: u64,
    /// From the first attempt's start to the end.
    pub elapsed: Duration,
}

/// What became of the branches of a `forall`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedBranches {
    /// The first ones that failed.
    pub told: Vec<BranchFailure>,
    /// How many failed.
    pub failed: u64,
    /// The words of those that succeeded, one a line; none if that is too much.
    pub succeeded: Option<BString>,
    /// Those of all others.
    pub others: Option<BString>,
}

/// What a machine's configuration says, but for what it tells people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedSettings {
    /// `$$`
    pub pid: u32,
    /// The delays of tries that name no policy.
    pub backoff: Policy,
    /// From the request to end to SIGKILL.
    pub kill_timeout: Duration,
    /// Whether SIGKILL is repeated until everything is gone.
    pub kill_strong: bool,
    /// Whether a variable that is set nowhere is empty.
    pub unset_is_empty: bool,
    /// The variables whose values aren't to be said.
    pub redacted: Vec<String>,
    /// What else isn't to be said, one value a line.
    pub given: BString,
    /// The values that are known not to be said.
    pub secret: Vec<BString>,
}

/// A branch that another machine has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedBranch {
    /// How it ended.
    pub end: BranchEnd,
    /// How many attempts its tries have made.
    pub attempts: u64,
    /// Texts that its failures stand in, beside those that it came with, which come first.
    pub texts: Vec<Text>,
}

/// How a branch ended that another machine has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchEnd {
    /// At its end, or by `exit 0`.
    Succeeded,
    /// By `exit`.
    Exited(u8),
    /// By a failure.
    Failed {
        /// The failure, and those that explain it.
        failure: Vec<PackedFailure>,
        /// Whether the `try` around it may try again.
        again: Again,
    },
    /// By this signal to the shell that ran it: everything of it is gone.
    Cancelled(i32),
    /// The limit around it passed.
    OutOfTime(Vec<PackedFailure>),
    /// By a failure inside calls or branches of its own.
    FailedInside {
        /// The failure, and those that explain it.
        failure: Vec<PackedFailure>,
        /// Whether the `try` around it may try again.
        again: Again,
        /// The trace of the failure.
        trace: PackedTrace,
    },
}

impl BranchEnd {
    /// The failure, and those that explain it; none of a branch without one.
    pub fn failures(&self) -> Option<&[PackedFailure]> {
        match self {
            Self::Failed { failure, .. }
            | Self::FailedInside { failure, .. }
            | Self::OutOfTime(failure) => Some(failure),
            Self::Succeeded | Self::Exited(_) | Self::Cancelled(_) => None,
        }
    }

    /// The same, to change it.
    pub fn failures_mut(&mut self) -> Option<&mut [PackedFailure]> {
        match self {
            Self::Failed { failure, .. }
            | Self::FailedInside { failure, .. }
            | Self::OutOfTime(failure) => Some(failure),
            Self::Succeeded | Self::Exited(_) | Self::Cancelled(_) => None,
        }
    }
}

/// The calls and branches around a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedTrace {
    /// The steps, innermost first.
    pub steps: Vec<PackedStep>,
    /// Number of steps left out of the middle.
    pub left_out: u64,
}

/// A call or a branch around a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedStep {
    /// Name of the function or of the loop's variable; none of a sourced file.
    pub name: Option<String>,
    /// Word of a branch.
    pub word: Option<String>,
    /// Script with the call or the loop.
    pub file: String,
    /// Line in that script, from 1.
    pub line: u32,
    /// Number of the failure's tries that are inside the step.
    pub tries: usize,
}

/// What becomes of the `try` around a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Again {
    /// It tries again as its clauses say.
    AsUsual,
    /// It makes the same attempt again, so long after the failure at the earliest.
    Deferred(Duration),
    /// It doesn't try again.
    Never,
}

/// Why a branch can't be run by another machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpackable {
    /// What it writes takes place with an attempt around it, or not at all.
    #[error("a branch inside an atomic attempt can't be run elsewhere")]
    Atomic,
    /// It has no directory that could be named.
    #[error("the current directory is gone")]
    NoDirectory,
    /// A variable can't be had as text.
    #[error("the variable `{name}`: {why}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// Why a packed branch can't be run by this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrunnable {
    /// A text isn't one that can be run.
    #[error("the text `{0}` can't be read")]
    Text(String),
    /// It was packed by a shell of another version.
    #[error("what it is to run isn't there: it was packed by another version of ftsh")]
    OtherProgram,
}
