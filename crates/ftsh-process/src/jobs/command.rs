//! Commands in progress, and jobs of workers for them.

use bstr::BString;

use crate::channels::Waited;
use crate::descriptors::{Fd, FdTable, TreePosition};
use crate::fds::{Need, Readers};
use crate::paths::FdError;
use crate::program::{ProgramSpec, StartedProgram};
use crate::stream::Ended;
use crate::workers::JobHandle;
use ftsh_machine::effect::{Action, IoId, OperationId, ProcessId, Run};
use ftsh_machine::event::{Reply, SpawnError};
use ftsh_machine::record::Level;
use ftsh_syntax::ast::Name;

/// Command in progress.
pub(crate) struct ActiveCommand {
    /// Stage of its execution.
    pub stage: CommandStage,
    /// Name, for the log.
    pub name: BString,
    /// Line in the script.
    pub line: u32,
    /// `PATH` along which the program is searched.
    pub path: BString,
    /// True if the command cannot write to the terminal; set only if the status line is on.
    pub quiet: bool,
    /// True while a worker may be starting the program.
    pub starting: bool,
    /// Descriptors that the command holds or may open.
    pub need: Need,
    /// Position in the tree of structures.
    pub place: TreePosition,
    /// Descriptors kept open until the end of the command: its variables used as files, and its
    /// input pipes.
    pub kept: Vec<Fd>,
    /// Readers of its output.
    pub readers: Readers,
}

impl ActiveCommand {
    /// Creates a command that is about to start.
    pub(crate) fn new(run: &Run) -> Self {
        let name = match &run.action {
            Action::Program { words, .. } => words.first().cloned().unwrap_or_default(),
            Action::Print(_) => "echo".into(),
            Action::Copy => "output".into(),
            Action::ReadLine => "read".into(),
        };
        Self {
            stage: CommandStage::Running,
            name,
            line: run.line,
            path: BString::default(),
            quiet: false,
            starting: false,
            need: Need::NOTHING,
            place: TreePosition::default(),
            kept: Vec::new(),
            readers: Readers::default(),
        }
    }

    /// Creates a command that waits for descriptors.
    pub(crate) fn queued(run: &Run) -> Self {
        Self { stage: CommandStage::Queued, quiet: true, ..Self::new(run) }
    }
}

pub(crate) enum CommandStage {
    /// Waiting for descriptors.
    Queued,
    /// Started or executed by a worker.
    Working(JobHandle),
    Running,
}

/// Result of a worker's job.
pub(crate) enum JobResult {
    /// Start of a program; true if the program may want the terminal.
    Started(Result<StartedProgram, SpawnError>, bool),
    /// Opened files for an `exec`.
    Ready(Box<ProgramSpec>, Result<FdTable, FdError>),
    /// End of a builtin.
    Ended(Ended),
    /// Descriptor table with its name.
    Table(IoId, Result<FdTable, FdError>),
    /// Answer to a query.
    Reply(Result<Reply, FdError>),
    /// End of a wait for a channel.
    Channel(Waited),
    /// Lines for the log about files that could not be removed, and about commits.
    Left(Vec<(Level, String)>),
    /// No result: the job was canceled.
    Cancelled,
}

/// Recipient of a worker's result.
pub(crate) enum JobRecipient {
    Command(ProcessId),
    Operation(OperationId),
    Relay(OperationId),
    Channel(Name),
}

impl JobResult {
    /// Returns the process that was started, if any.
    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Started(Ok(started), _) => Some(started.pid),
            _ => None,
        }
    }
}
