//! What the world tells the machine.

use std::fmt::Display;
use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::channels::Admission;
use crate::effect::{BufferId, OperationId, ProcessId, ScopeId};
use crate::remote::packed::EndedBranch;

/// What a command dies of that writes where nobody reads any more.
pub const SIGPIPE: i32 = 13;

/// What came of an effect, or a signal to the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A program runs.
    Spawned {
        /// The command.
        process: ProcessId,
        /// Its process id.
        pid: i32,
    },
    /// A command could not be started, or is a builtin that could not do what it should.
    SpawnFailed {
        /// The command.
        process: ProcessId,
        /// Why.
        error: SpawnError,
    },
    /// A command ended.
    Exited {
        /// The command.
        process: ProcessId,
        /// How.
        status: Status,
        /// What `Action::ReadLine` read.
        line: Option<BString>,
        /// True if that is by SIGPIPE, or with the status 141 that shells have for it, and nobody reads any
        /// more where a descriptor of `Run::feeds` leads.
        unread: bool,
    },
    /// An attempt can't go through its channel at once: it waits for its turn.
    Queued {
        /// The request.
        operation: OperationId,
    },
    /// A branch begins that was to run elsewhere.
    Placed {
        /// The branch.
        process: ProcessId,
        /// The machine.
        node: String,
    },
    /// A branch that was to run elsewhere is over, or won't begin; nothing of it is left.
    Returned {
        /// The branch.
        process: ProcessId,
        /// What became of it.
        returned: Returned,
    },
    /// An operation ended.
    Done {
        /// The operation.
        operation: OperationId,
        /// Its answer, or why there is none.
        result: Result<Reply, Refusal>,
    },
    /// Nothing of a scope that was to be terminated is left, or what is left can't be killed.
    Emptied {
        /// The scope.
        scope: ScopeId,
    },
    /// The shell was told to end by this signal (its number).
    Interrupted(i32),
    /// The run goes on in another process, with what was recorded of it.
    Resumed {
        /// Commands that were asked for and whose end isn't known: each may have been done, in part or
        /// not at all.
        lost: Vec<ProcessId>,
    },
    /// The shell is to end, but not the run: what it has started is ended, and nothing more is begun.
    Suspended(Suspension),
}

impl Event {
    /// The answer of a driver that can't have branches run elsewhere.
    pub fn not_here(process: ProcessId) -> Self {
        let why = "this shell can't have branches run elsewhere".into();
        let returned = Returned::NotBegun { node: None, why, blame: Blame::Request };
        Self::Returned { process, returned }
    }
}

/// What became of a branch that was to run elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Returned {
    /// It has told itself how it ended.
    Ended {
        /// The machine.
        node: String,
        /// How long it took there.
        elapsed: Duration,
        /// How.
        ended: Box<EndedBranch>,
    },
    /// It has begun, and nobody knows what came of it.
    Lost {
        /// The machine, if that is known.
        node: Option<String>,
        /// Why, for people.
        why: String,
    },
    /// It has not begun.
    NotBegun {
        /// The machine, if it came to one.
        node: Option<String>,
        /// Why, for people.
        why: String,
        /// What is to be done about it.
        blame: Blame,
    },
}

/// Why a branch has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blame {
    /// The machine can't run it: another one may.
    Node,
    /// The engine isn't there, or has too much to do: later it may.
    Engine,
    /// No machine is left but those that were to be avoided.
    Exclusion,
    /// What was asked for can't be had.
    Request,
    /// Nobody: it still waited for a machine when others needn't be avoided any more.
    Stale,
}

/// Why a run is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// By this signal (its number).
    Signal(i32),
    /// A deadline passed that only this start of it has.
    Deadline,
}

/// Why the world gives no answer: one line for people, in the words of who knows the world.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// The line.
    pub message: String,
}

impl Refusal {
    /// What an error of the driver says.
    pub fn new(error: impl Display) -> Self {
        Self { message: error.to_string() }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// By SIGKILL of the system, which had too little memory.
    OutOfMemory,
    /// Nobody can say: what the system knew of it is lost.
    Lost,
}

/// Why a command could not be started, or a builtin not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// What kind of trouble.
    pub kind: SpawnErrorKind,
    /// One line for people.
    pub message: String,
}

/// What kept a command from starting, or a builtin from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnErrorKind {
    /// There is no such program.
    NotFound,
    /// There is one, but it can't be executed.
    NotExecutable,
    /// A redirection could not be set up.
    Redirect,
    /// The system refused (out of processes, arguments too long, …).
    System,
    /// It is a builtin, which began but could not write or read.
    Builtin,
}

/// The answer to a query; `Open` is answered by `Truth(true)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Yes or no.
    Truth(bool),
    /// Bytes.
    Text(BString),
    /// Words.
    Words(Vec<BString>),
    /// Buffers.
    Buffers(Vec<BufferId>),
    /// Whether an attempt may go through a channel.
    Admission(Admission),
}

impl Reply {
    /// What a clock says, so long after the beginning of 1970.
    pub fn clock(since: Duration) -> Self {
        Self::Text(format!("{}.{:06}", since.as_secs(), since.subsec_micros()).into())
    }
}
