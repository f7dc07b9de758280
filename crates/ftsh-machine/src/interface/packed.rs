//! A branch of a `forall` as plain data, for another machine with the same version. The data
//! contain everything visible to the branch except for descriptors.

use std::num::NonZeroU32;
use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::{
    outcome::{BranchFailure, FailureKind},
    watch::Watch,
};
use crate::channels::Rules;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::signal::Signal;

/// Branch that has not begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedBranch {
    /// Texts of programs, and of failures.
    pub texts: Vec<Text>,
    /// Address of its `forall`.
    pub place: CodePlace,
    /// Word of the branch, the value of the loop's variable.
    pub word: PackedValue,
    /// Defined functions.
    pub functions: Vec<(String, CodePlace)>,
    /// Declared channels, with their rules once the declaration was executed.
    pub channels: Vec<(String, Option<Rules>)>,
    /// Variables with their values.
    pub variables: Vec<PackedVariable>,
    /// Names from the run's environment that the script has unset.
    pub unset: Vec<String>,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// Absolute path of the directory.
    pub directory: BString,
    /// Umask for new files.
    pub umask: u16,
    /// Context from the structures around the branch.
    pub around: PackedContext,
    /// Moment of the beginning, on the clock of the run.
    pub at: Duration,
    /// Seed of random choices.
    pub seed: u64,
    /// Settings of the run.
    pub settings: PackedSettings,
    /// `$slot`
    pub slot: Option<NonZeroU32>,
}

/// Script, or file that was sourced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Name of the text.
    pub name: String,
    /// Content of the text.
    pub text: String,
    /// Number of instructions, if the text is a program.
    pub length: Option<usize>,
    /// True if functions of the program may read `$error_output`, also those of files that the
    /// program uses and that are not sent along.
    pub calls_read: bool,
}

/// Address of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// Index of the text.
    pub text: usize,
    /// Address in the program, valid only for the same text and the same version.
    pub at: usize,
}

/// Variable with a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedVariable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: PackedValue,
    /// True if commands receive the variable in their environment.
    pub exported: bool,
    /// True if the value came from the environment and was not assigned by the script.
    pub inherited: bool,
}

/// Value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedValue {
    /// Bytes.
    Text(BString),
    /// An integer.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// The first integer of a range, the last one, and the step.
    Range(i64, i64, i64),
    /// The output of a command, as stored in a variable.
    Written(BString),
    /// The elements of a list.
    List(Vec<BString>),
}

/// Context from the structures around a branch. Times are on the clock of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PackedContext {
    /// Tightest deadline.
    pub deadline: Option<Duration>,
    /// Attempt of the innermost `try`: number, beginning of the `try`, deadline.
    pub attempt: Option<(u64, Duration, Option<Duration>)>,
    /// Failure being handled, with its chain of explanations; empty if none.
    pub caught: Vec<PackedFailure>,
    /// True inside a `finally` group after success.
    pub succeeded: bool,
    /// Depth of nested calls.
    pub depth: usize,
    /// True if an enclosing `finally` group has not yet run.
    pub is_guarded: bool,
    /// Channels occupied by enclosing attempts.
    pub inside: Vec<String>,
    /// True if an enclosing attempt is a retry.
    pub is_retried: bool,
    /// First signal for the processes of the branch if it is canceled.
    pub signal: Signal,
    /// Conditions of the enclosing attempts on the processes of the branch.
    pub conditions: Watch,
}

/// Failure without its explanation, which is the next element of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFailure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Exit code or signal number.
    pub code: i32,
    /// Description in one line for people.
    pub message: String,
    /// Failed command, as typed words.
    pub command: String,
    /// Duration of the command, if a command ran.
    pub elapsed: Option<Duration>,
    /// Index of the failure's text.
    pub text: usize,
    /// Line, from 1.
    pub line: u32,
    /// Tries that the failure ended, innermost first.
    pub tries: Vec<PackedTrySummary>,
    /// Results of the branches, if a `forall` failed.
    pub branches: Option<PackedBranchResults>,
    /// Last output of the atomic attempt ended by the failure.
    pub output: Option<BString>,
    /// Name of the slug of the message.
    pub slug: String,
    /// Name of the system's error, if the system gave the reason.
    pub errno: Option<String>,
}

/// Number of attempts and duration of a `try`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedTrySummary {
    /// Script of the `try`.
    pub file: String,
    /// Line of the `try`.
    pub line: u32,
    /// Number of attempts made.
    pub attempts: u64,
    /// Time from the start of the first attempt to the end.
    pub elapsed: Duration,
}

/// Results of the branches of a `forall`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedBranchResults {
    /// First failed branches, reported separately.
    pub reported: Vec<BranchFailure>,
    /// Number of failed branches.
    pub failed: u64,
    /// Words of the successful branches; `None` if they cannot be listed.
    pub succeeded: Option<Vec<BString>>,
    /// Words of all other branches, in the same form.
    pub others: Option<Vec<BString>>,
    /// Failures of the other words, in the same form.
    pub errors: Option<Vec<BString>>,
}

/// Configuration of a run, without logging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackedSettings {
    /// Process id of the shell, `$$`.
    pub pid: u32,
    /// Default policy of a `try` without a policy.
    pub backoff: Policy,
    /// Time between the first signal to canceled processes and SIGKILL.
    pub kill_timeout: Duration,
    /// True if SIGKILL is repeated until nothing is left.
    pub kill_strong: bool,
    /// True if an unset variable is empty.
    pub unset_is_empty: bool,
    /// Names of secret variables.
    pub redacted: Vec<String>,
    /// Values given as secrets, one per line.
    pub given: BString,
    /// Values of secret variables known up to now.
    pub secret: Vec<BString>,
}

/// Branch after its end on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedBranch {
    /// End of the branch.
    pub end: BranchEnd,
    /// Number of attempts made by the branch's tries.
    pub attempts: u64,
    /// Further texts of failures, numbered after the texts of the packed branch.
    pub texts: Vec<Text>,
}

/// End of a branch on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchEnd {
    /// Regular end, or `exit 0`.
    Succeeded,
    /// End by `exit`.
    Exited(u8),
    /// End by a failure.
    Failed {
        /// The failure, with its chain of explanations.
        failure: Vec<PackedFailure>,
        /// Effect on the enclosing `try`.
        again: PackedRetry,
    },
    /// End by a signal to the shell that ran the branch. Nothing of the branch is left.
    Canceled(i32),
    /// End by the deadline of an enclosing structure.
    OutOfTime(Vec<PackedFailure>),
    /// End by a failure inside calls or branches of the branch itself.
    FailedInside {
        /// The failure, with its chain of explanations.
        failure: Vec<PackedFailure>,
        /// Effect on the enclosing `try`.
        again: PackedRetry,
        /// Trace of the failure.
        trace: PackedTrace,
    },
}

impl BranchEnd {
    /// Returns the failure with its chain of explanations, if the branch failed.
    pub fn failures(&self) -> Option<&[PackedFailure]> {
        match self {
            Self::Failed { failure, .. }
            | Self::FailedInside { failure, .. }
            | Self::OutOfTime(failure) => Some(failure),
            Self::Succeeded | Self::Exited(_) | Self::Canceled(_) => None,
        }
    }

    /// Returns the failure with its chain of explanations, mutable.
    pub fn failures_mut(&mut self) -> Option<&mut [PackedFailure]> {
        match self {
            Self::Failed { failure, .. }
            | Self::FailedInside { failure, .. }
            | Self::OutOfTime(failure) => Some(failure),
            Self::Succeeded | Self::Exited(_) | Self::Canceled(_) => None,
        }
    }
}

/// Calls and branches around a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedTrace {
    /// Steps, innermost first.
    pub steps: Vec<PackedStep>,
    /// Number of steps left out of the middle.
    pub left_out: u64,
}

/// A call or a branch around a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedStep {
    /// Name of the function or of the loop's variable; `None` for a sourced file.
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

/// Effect of a failure on the enclosing `try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PackedRetry {
    /// Retry as the clauses say.
    AsUsual,
    /// Repeat the same attempt, at the earliest after this time.
    Deferred(Duration),
    /// Make no further attempt.
    Never,
}

/// Reason why a branch cannot be packed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpackable {
    /// The output of the branch is committed with an enclosing attempt.
    #[error("a branch inside an atomic attempt cannot run on another machine")]
    Atomic,
    /// The current directory has no path.
    #[error("the current directory is gone")]
    NoDirectory,
    /// A variable has no text.
    #[error("the variable `{name}`: {why}")]
    Variable {
        /// Name of the variable.
        name: String,
        /// Reason.
        why: String,
    },
}

/// Reason why a packed branch cannot run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrunnable {
    /// A text cannot be parsed.
    #[error("the script `{0}` cannot be parsed")]
    Text(String),
    /// The branch was packed by another version of the shell.
    #[error("the branch was packed by another version of ftsh")]
    OtherProgram,
}
