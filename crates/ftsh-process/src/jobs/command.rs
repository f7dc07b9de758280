//! A command in progress, and what workers do for it.

use std::io;
use std::path::PathBuf;

use bstr::BString;

use super::super::channels::Waited;
use super::super::fds::stream::Ended;
use super::super::fds::{Fd, FdError, FdTable, Need, Place, Readers};
use super::super::os::workers::Handle;
use super::super::program::{Program, Started};
use ftsh_machine::effect::{Action, IoId, OperationId, ProcessId, Run};
use ftsh_machine::event::{Reply, SpawnError};
use ftsh_syntax::ast::Name;

/// A command in progress.
pub struct Command {
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
    /// What it has of descriptors, or may take.
    pub need: Need,
    /// Where its descriptors come from.
    pub place: Place,
    /// The variables that it may write to, which stay files until it ends, and what it reads that is fed
    /// to it.
    pub kept: Vec<Fd>,
    /// Who reads what it writes to later stages of a pipeline, or where the shell itself writes.
    pub readers: Readers,
}

impl Command {
    /// One that is about to begin.
    pub fn new(run: &Run) -> Self {
        let name = match &run.action {
            Action::Program { words, .. } => words.first().cloned().unwrap_or_default(),
            Action::Print(_) => "echo".into(),
            Action::Copy => "output".into(),
            Action::ReadLine => "read".into(),
        };
        Self {
            stage: Stage::Running,
            name,
            line: run.line,
            path: BString::default(),
            quiet: false,
            starting: false,
            need: Need::NOTHING,
            place: Place::default(),
            kept: Vec::new(),
            readers: Readers::default(),
        }
    }

    /// One that waits for descriptors.
    pub fn queued(run: &Run) -> Self {
        Self { stage: Stage::Queued, quiet: true, ..Self::new(run) }
    }
}

/// How far a command has come.
pub enum Stage {
    /// It waits for descriptors.
    Queued,
    /// A worker does it, or starts it.
    Working(Handle),
    /// It runs.
    Running,
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
    /// What came of waiting for a channel.
    Channel(Waited),
    /// What couldn't be removed, and why.
    Left(Vec<(PathBuf, io::Error)>),
    /// Nothing: it was cancelled.
    Cancelled,
}

/// Who waits for a worker's answer.
pub enum Waiting {
    /// A command.
    Command(ProcessId),
    /// An operation.
    Operation(OperationId),
    /// A relay, for which it writes.
    Relay(OperationId),
    /// A channel.
    Channel(Name),
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
