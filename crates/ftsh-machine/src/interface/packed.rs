//! A branch of a `forall` as plain data, for another machine with the same version. The data
//! contain everything visible to the branch except for descriptors.

use std::num::NonZeroU32;
use std::sync::Arc;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::{
    config::Config,
    outcome::{Failure, Retry},
    record::spans::RemoteSpans,
    time::{Deadline, Time},
    watch::Watch,
};
use crate::channels::Rules;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;
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
    pub functions: Vec<(Name, CodePlace)>,
    /// Declared channels, with their rules once the declaration was executed.
    pub channels: Vec<(Name, Option<Arc<Rules>>)>,
    /// Variables with their values.
    pub variables: Vec<PackedVariable>,
    /// Names from the run's environment that the script has unset.
    pub unset: Vec<Name>,
    /// `$0`, `$1`, …
    pub arguments: Vec<BString>,
    /// Absolute path of the directory.
    pub directory: BString,
    /// Settings of the run, with the umask and the tightest deadline of the branch.
    pub config: Config,
    /// Context from the structures around the branch.
    pub around: PackedContext,
    /// Moment of the beginning, on the clock of the run.
    pub at: Time,
    /// Seed of random choices.
    pub seed: u64,
    /// `$slot`
    pub slot: Option<NonZeroU32>,
    /// Files that travel with the branch.
    pub files: BranchFiles,
}

/// Files of a branch by `takes` and `gives`: names relative to the directory of the branch, without
/// `.` and `..`. No list names a file twice, or a file in a directory that the list names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchFiles {
    /// Files and directories that must exist before the branch begins.
    pub takes: Vec<BString>,
    /// Files and directories that must exist after the branch has succeeded.
    pub gives: Vec<BString>,
}

/// Script, or file that was sourced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Name and text.
    pub source: Arc<Source>,
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
    pub name: Name,
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
    /// Attempt of the innermost `try`.
    pub attempt: Option<AttemptInfo>,
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

/// Attempt as shown by `$attempt`, `$elapsed` and `$remaining`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptInfo {
    /// Number, from 1.
    pub number: u64,
    /// Beginning of the `try`.
    pub started: Time,
    /// Deadline of the `try`, if any.
    pub deadline: Deadline,
}

/// Failure of a chain. The next element of the chain explains the failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFailure {
    /// The failure, without its source and its explanation.
    pub failure: Failure,
    /// Index of the failure's text.
    pub text: usize,
}

/// Branch after its end on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedBranch {
    /// End of the branch.
    pub end: BranchEnd,
    /// Number of attempts made by the branch's tries.
    pub attempts: u64,
    /// Further texts of failures, numbered after the texts of the packed branch.
    pub texts: Vec<Arc<Source>>,
    /// Spans of the branch, if the run has a trace.
    pub spans: RemoteSpans,
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
        again: Retry,
    },
    /// End by a signal to the shell that ran the branch. Nothing of the branch is left.
    Canceled(i32),
    /// End by the deadline of an enclosing structure.
    OutOfTime(Vec<PackedFailure>),
}

impl BranchEnd {
    /// Returns the failure with its chain of explanations, empty if the branch has not failed.
    pub fn failures_mut(&mut self) -> &mut [PackedFailure] {
        match self {
            Self::Failed { failure, .. } | Self::OutOfTime(failure) => failure,
            Self::Succeeded | Self::Exited(_) | Self::Canceled(_) => &mut [],
        }
    }
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
