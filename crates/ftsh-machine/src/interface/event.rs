//! Reports of the driver to the machine.

use std::fmt::Display;
use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    id::{BufferId, OperationId, ProcessId, ScopeId},
    packed::EndedBranch,
};
use crate::channels::Admission;
use ftsh_syntax::slug::Slug;

pub use crate::interface::watch::MemoryUse;

/// Signal that kills a command writing to a pipe without a reader.
pub const SIGPIPE: i32 = 13;

/// Result of an effect, or a signal to the shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A program was started.
    Spawned {
        /// Id of the command.
        process: ProcessId,
        /// Process id.
        pid: i32,
    },
    /// A command could not be started, or a builtin failed.
    SpawnFailed {
        /// Id of the command.
        process: ProcessId,
        /// Reason.
        error: SpawnError,
    },
    /// A command ended.
    Exited {
        /// Id of the command.
        process: ProcessId,
        /// Status of the end.
        status: CommandStatus,
        /// Line read by `Action::ReadLine`.
        line: Option<BString>,
        /// True if the command ended by SIGPIPE, or with status 141 as shells report it, and the
        /// reader of a descriptor of `Run::feeds` is gone.
        reader_gone: bool,
    },
    /// An attempt waits for its turn in a channel.
    Queued {
        /// Id of the request.
        operation: OperationId,
    },
    /// A dispatched branch begins.
    Placed {
        /// Id of the branch.
        process: ProcessId,
        /// Name of the machine.
        node: String,
    },
    /// A dispatched branch is over, or will not begin. Nothing of the branch is left.
    Returned {
        /// Id of the branch.
        process: ProcessId,
        /// Result of the branch.
        returned: Returned,
    },
    /// An operation ended.
    Done {
        /// Id of the operation.
        operation: OperationId,
        /// Answer, or the reason for its absence.
        result: Result<Reply, Refusal>,
    },
    /// Nothing of a terminated scope is left, or the rest cannot be killed.
    Emptied {
        /// Id of the scope.
        scope: ScopeId,
    },
    /// The processes of a watched scope made no progress for the time of its condition.
    Stalled {
        /// Id of the scope.
        scope: ScopeId,
    },
    /// The processes of a watched scope use more memory than its condition allows.
    OverMemory {
        /// Id of the scope.
        scope: ScopeId,
        /// Memory of the processes.
        memory: MemoryUse,
    },
    /// A signal, given by its number, ends the shell.
    Interrupted(i32),
    /// The run was resumed in this process, from its journal.
    Resumed {
        /// Commands without a recorded end: each may have been done, in part or not at all.
        lost: Vec<ProcessId>,
        /// Commits of views that have taken place, though no answer is recorded. The answers follow.
        committed: Vec<OperationId>,
    },
    /// The shell ends, but not the run. Everything started is ended, and nothing more begins.
    Suspended(Suspension),
}

impl Event {
    /// Returns the answer of a driver without engines for remote branches.
    pub fn no_engine(process: ProcessId) -> Self {
        let why = "this shell cannot run branches on other machines".into();
        let returned = Returned::NotBegun { node: None, why, blame: Blame::Request };
        Self::Returned { process, returned }
    }
}

/// Result of a dispatched branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Returned {
    /// The branch ended and reported its result.
    Ended {
        /// Name of the machine.
        node: String,
        /// Duration of the branch on the machine.
        elapsed: Duration,
        /// State of the branch at its end.
        ended: Box<EndedBranch>,
    },
    /// The branch began, and its result is unknown.
    Lost {
        /// Name of the machine, if known.
        node: Option<String>,
        /// Reason, for people.
        why: String,
    },
    /// The branch has not begun.
    NotBegun {
        /// Name of the machine, if the branch reached a machine.
        node: Option<String>,
        /// Reason, for people.
        why: String,
        /// Cause, which decides the next step.
        blame: Blame,
    },
    /// A file of the branch is missing or could not be transferred. The branch has not succeeded, and
    /// is not started again.
    Files {
        /// Name of the machine, if the branch reached a machine.
        node: Option<String>,
        /// Reason with the name of the file, for people.
        why: String,
    },
}

/// Cause of a branch that has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blame {
    /// The machine cannot run the branch, but another machine may.
    Node,
    /// The engine is absent or overloaded. A later request may succeed.
    Engine,
    /// All remaining machines are to be avoided.
    Exclusion,
    /// The request cannot be fulfilled.
    Request,
    /// The branch still waited for a machine when other machines need not be avoided any more.
    Stale,
}

/// Cause of a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Suspension {
    /// A signal, given by its number.
    Signal(i32),
    /// A deadline passed which only this start of the run has.
    Deadline,
}

/// Reason for the absence of an answer: one line for people, written by the driver.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct Refusal {
    /// Line for people.
    pub message: String,
    /// Name of the system's error, such as `ENOENT`, if the system gave the reason.
    pub errno: Option<String>,
}

impl Refusal {
    /// Creates a refusal from an error of the driver.
    pub fn new(error: impl Display) -> Self {
        Self { message: error.to_string(), errno: None }
    }
}

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStatus {
    /// The command exited with this code.
    Exited(i32),
    /// This signal killed the command.
    Signaled(i32),
    /// The system killed the command for lack of memory.
    OutOfMemory,
    /// The status was lost.
    Lost,
}

/// Reason why a command could not be started, or a builtin failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnError {
    /// Kind of the error.
    pub kind: SpawnErrorKind,
    /// One line for people.
    pub message: String,
    /// Name of the system's error, such as `ENOENT`, if the system gave the reason.
    pub errno: Option<String>,
}

impl SpawnError {
    /// Creates an error for which the system gave no reason.
    pub fn new(kind: SpawnErrorKind, message: String) -> Self {
        Self { kind, message, errno: None }
    }
}

/// Kind of an error of starting a command or of executing a builtin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnErrorKind {
    /// The program does not exist.
    NotFound,
    /// The program cannot be executed.
    NotExecutable,
    /// A redirection could not be set up.
    Redirect,
    /// The system refused, for example because of too many processes or too long arguments.
    System,
    /// A builtin began but could not read or write.
    Builtin,
}

/// Answer to a query. `Open` is answered by `Truth(true)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Yes or no.
    Truth(bool),
    /// Bytes.
    Text(BString),
    /// Words.
    Words(Vec<BString>),
    /// Buffers.
    Buffers(Vec<BufferId>),
    /// Answer of a channel to an attempt.
    Admission(Admission),
    /// Failure of a filter: slug and line for people.
    Failed(Slug, String),
    /// Reason why a commit has taken place only in part.
    Incomplete(Refusal),
    /// Reason why nothing of a commit has taken place: another process changed the same files.
    Conflict(String),
    /// Resources of the machine.
    Resources(FreeResources),
    /// Durations of earlier attempts.
    Durations(RecordedDurations),
}

/// Resources of the machine; `None` for an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FreeResources {
    /// Bytes of memory available for new programs.
    pub memory: Option<u64>,
    /// Load of the machine during the last minute.
    pub load: Option<f64>,
}

/// Durations of earlier attempts in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedDurations {
    /// Name of the record; `None` if the driver keeps no record.
    pub record: Option<BString>,
    /// Text of the history.
    pub history: BString,
}

impl Reply {
    /// Returns the answer of a clock, from the time since the beginning of 1970.
    pub fn clock(since: Duration) -> Self {
        Self::Text(format!("{}.{:06}", since.as_secs(), since.subsec_micros()).into())
    }
}
