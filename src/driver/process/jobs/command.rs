//! A command in progress, and what workers do for it.

use bstr::BString;

use super::super::fds::stream::Ended;
use super::super::fds::{Fd, FdError, FdTable};
use super::super::os::workers::Handle;
use super::super::program::{Program, Started};
use crate::machine::effect::{IoId, OperationId, ProcessId, ScopeId};
use crate::machine::event::{Reply, SpawnError};

/// A command in progress.
pub struct Command {
    /// Its family.
    pub scope: ScopeId,
    /// How far it has come.
    pub stage: Stage,
    /// Its name, for the log.
    pub name: BString,
    /// The script's line.
    pub line: u32,
    /// The `PATH` it is looked for along.
    pub path: BString,
    /// Whether it can't write to the terminal; known only if that matters.
    pub quiet: bool,
    /// Whether a worker may be starting its program right now.
    pub starting: bool,
    /// Whether its end is still to be told.
    pub wanted: bool,
    /// What it has of descriptors, or may take.
    pub claim: Claim,
    /// The variables that it may write to: they stay files until it ends.
    pub written: Vec<Fd>,
}

impl Command {
    /// One that is about to begin.
    pub fn new(scope: ScopeId, name: BString, line: u32) -> Self {
        let (stage, path) = (Stage::Running(0), BString::default());
        let (quiet, starting, wanted) = (false, false, true);
        Self {
            scope,
            stage,
            name,
            line,
            path,
            quiet,
            starting,
            wanted,
            claim: Claim::default(),
            written: Vec::new(),
        }
    }

    /// One that waits for descriptors.
    pub fn queued(scope: ScopeId, name: BString, line: u32) -> Self {
        Self { stage: Stage::Queued, quiet: true, ..Self::new(scope, name, line) }
    }
}

/// How far a command has come.
pub enum Stage {
    /// It waits for descriptors.
    Queued,
    /// A worker does it, or starts it.
    Working(Handle),
    /// It runs, as this process.
    Running(i32),
}

/// What a worker found out or did.
pub enum Answer {
    /// It started a program, or couldn't; and whether that may want the terminal.
    Started(Result<Started, SpawnError>, bool),
    /// The files for an `exec` are open.
    Ready(Box<Program>, Result<FdTable, FdError>),
    /// A builtin ended.
    Ended(Ended),
    /// A table for this name, or why there is none.
    Table(IoId, Result<FdTable, FdError>),
    /// The answer to a query.
    Reply(Result<Reply, FdError>),
    /// Nothing: it was cancelled.
    Cancelled,
}

/// Who waits for a worker's answer.
pub enum Waiting {
    /// A command.
    Command(ProcessId),
    /// An operation.
    Operation(OperationId),
}

/// The descriptors of a command.
#[derive(Clone, Copy, Default)]
pub struct Claim {
    /// How many it may take while a worker does it or starts it.
    pub need: usize,
    /// Whether some come free when it ends, which it does by itself.
    pub gives_back: bool,
}

impl Answer {
    /// The process that was started, if one was.
    pub fn pid(&self) -> Option<i32> {
        match self {
            Self::Started(Ok(started), _) => Some(started.pid),
            _ => None,
        }
    }
}
