//! Requests of the machine to its driver.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use super::{
    packed::PackedBranch,
    record::LogRecord,
    time::{Deadline, Time},
};
use crate::channels::{Claim, Passed, Rules};
use ftsh_syntax::ast::{FileTest, Name};
use ftsh_syntax::clauses::On;

pub use crate::interface::id::BufferId;
pub use crate::interface::id::IoId;
pub use crate::interface::id::OperationId;
pub use crate::interface::id::PassId;
pub use crate::interface::id::PipeId;
pub use crate::interface::id::ProcessId;
pub use crate::interface::id::ScopeId;
pub use crate::interface::id::ScratchId;
pub use crate::interface::id::SpoolId;
pub use crate::interface::id::StagedFileId;
pub use crate::interface::id::TaskId;
pub use crate::interface::id::ViewId;
pub use crate::interface::watch::Watch;
pub use ftsh_syntax::signal::Signal;

/// Request to the driver. Requests are performed in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Start a command. Answered by `Spawned` (programs only) and `Exited`, or by `SpawnFailed`.
    Run(Box<Run>),
    /// Replace the shell by a program. Answered by `SpawnFailed` or not at all. If the shell must
    /// stay, answered like `Run`, and the run ends as the program ends.
    Exec(Box<Run>),
    /// Run a branch on another machine. Answered by `Placed` when the branch begins, and by
    /// `Returned` when nothing of the branch is left.
    Dispatch(Box<Dispatch>),
    /// Create a table of descriptors for later commands. Answered by `Done`.
    Open {
        /// Id of the request.
        operation: OperationId,
        /// Table to create.
        io: IoId,
        /// Table to copy first.
        base: IoId,
        /// Base of relative paths.
        directory: Directory,
        /// Umask for new files.
        umask: Umask,
        /// Changes to make, in order.
        redirects: Vec<FdChange>,
    },
    /// Answer a query. Answered by `Done`, off the driver's loop if the query may block.
    Query {
        /// Id of the request.
        operation: OperationId,
        /// Base of relative paths.
        directory: Directory,
        /// Information to find.
        query: Query,
    },
    /// Forget an operation, because no task waits for its answer.
    Abandon(OperationId),
    /// Begin a scope inside another scope, before anything runs there. The script's own scope needs
    /// no such request.
    OpenScope {
        /// New scope.
        scope: ScopeId,
        /// Enclosing scope.
        parent: ScopeId,
        /// Pass of the attempt through a channel. Processes of the scope occupy the channel too.
        pass: Option<PassId>,
    },
    /// Watch the processes of a scope and of the scopes inside, until the scope ends. Answered by
    /// `Stalled` and `OverMemory`, by each at most once. Requested after `OpenScope`.
    Watch {
        /// Scope to watch.
        scope: ScopeId,
        /// Conditions to report, at least one.
        watch: Watch,
    },
    /// Set the first signal that the next `Terminate` sends to the processes of the scope itself,
    /// without the scopes below. Otherwise the signal is SIGTERM.
    SetSignal(ScopeId, Signal),
    /// End everything in the scope and the scopes below, by the signal of each scope and SIGCONT.
    /// Answered by `Emptied`, at once if nothing is left. Commands of the scope that end from now
    /// on need no `Exited`.
    Terminate(ScopeId),
    /// Send SIGTERM to the processes in the scope and the scopes below that `Terminate` sent
    /// another signal.
    Escalate(ScopeId),
    /// Send SIGKILL, because the kill timeout after `Terminate` has passed.
    Kill {
        /// Scope to kill.
        scope: ScopeId,
        /// Strong: repeat until nothing is left. Weak: signal once and report the scope as emptied.
        strong: bool,
    },
    /// Move the processes that a successful scope left running to the scope `into`.
    HandOver {
        /// Scope that ended.
        scope: ScopeId,
        /// Enclosing scope.
        into: ScopeId,
    },
    /// Relay lines from pipes to the target of the same descriptor of a table. Each whole line is
    /// written at once, with its tag before it.
    ///
    /// Answered by `Done` after `FinishRelay`, when everything is written: `Truth(true)`. If
    /// writing is impossible, answered at once; with `Truth(false)` if the reader is gone. An
    /// abandoned relay continues until no more input can come.
    Relay {
        /// Id of the request and of the relay.
        operation: OperationId,
        /// Table of the targets.
        io: IoId,
    },
    /// Finish a relay. No more pipes into the relay will be requested, and later input is not
    /// awaited.
    FinishRelay(OperationId),
    /// Close a table of descriptors. Input of a relay that was made for the table ends with a whole
    /// line.
    CloseIo(IoId),
    /// Forget the output that a tee has kept in its buffer, and the output that is in its pipe now.
    /// Later output is kept.
    ForgetOutput(BufferId),
    /// Drop a buffer.
    DropBuffer(BufferId),
    /// Put staged files in place, in order. All content is on the disk before the first file takes
    /// its place.
    ///
    /// Answered by `Done`: `Truth(true)`; a refusal if no file has taken its place; `Incomplete` if
    /// only some have. If abandoned before the first file takes its place, no file does.
    Commit {
        /// Id of the request.
        operation: OperationId,
        /// Staged files to put in place.
        files: Vec<StagedFileId>,
    },
    /// Begin a view of directories for an attempt. Changes below the directories by programs and
    /// requests of the view are kept apart until a commit. Answered by `Done`: `Words` with the
    /// absolute paths of the directories without links, which later attempts of the same `try` name;
    /// a refusal if the directories cannot be covered.
    BeginView(Box<BeginView>),
    /// Put the changes of a view and staged files in place: staged files inside the view first, then
    /// all changes of the view, then the other staged files. Nothing runs in the view any more.
    ///
    /// Answered by `Done` as by `Commit`, or with `Conflict`. With a journal, a view whose commit had begun
    /// before a resume is in place.
    CommitView {
        /// Id of the request.
        operation: OperationId,
        /// View to commit.
        view: ViewId,
        /// Staged files to put in place.
        files: Vec<StagedFileId>,
        /// True inside another atomic attempt. Files outside the view are then not put in place,
        /// and a later commit names all files again.
        is_inner: bool,
    },
    /// Drop a view, in which nothing runs any more. Unless committed, all changes are discarded.
    DropView(ViewId),
    /// Drop a staged file. Unless committed, the file is removed.
    DropStagedFile(StagedFileId),
    /// Consume the input that was read since the replay began. The rest is available to the next
    /// reader of the same input.
    KeepInput(SpoolId),
    /// Drop a replay. Unless kept, the input returns to its position at the beginning of the
    /// replay.
    DropSpool(SpoolId),
    /// Remove a scratch directory with its content, if the directory was created.
    DropScratch(ScratchId),
    /// Wait for an attempt's turn in a channel. Answered by `Done` with `Admission`, and by
    /// `Queued` before that if the attempt has to wait. A refusal states why the channel cannot be
    /// used. An abandoned request returns what it was granted meanwhile.
    Enter(Box<Entry>),
    /// Report that an attempt is over. Unless the attempt succeeded, nothing of it is left.
    Leave(PassId, Passed),
    /// Append content to a buffer, which is created if missing. Requested only by a machine that
    /// runs a remote branch, and by a resumed run.
    Fill(BufferId, BString),
    /// Write to the log.
    Log(LogRecord),
    /// Append lines of samples to a record of durations, by the name from the answer to
    /// `Query::Durations`.
    RecordDurations(BString, BString),
}

/// Directory of a task, and the view in which the task finds files.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// Absolute path; `None` for the directory in which the shell was started.
    pub path: Option<Arc<BString>>,
    /// View of the innermost attempt that has one.
    pub view: Option<ViewId>,
}

impl Directory {
    /// Creates a directory outside all views.
    pub fn at(path: impl Into<BString>) -> Self {
        Self { path: Some(Arc::new(path.into())), view: None }
    }
}

/// Journals of earlier versions, which had no views, contain checksums of this text.
impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.view {
            None => self.path.fmt(f),
            Some(view) => write!(f, "{:?} in {view:?}", self.path),
        }
    }
}

/// View of directories for an attempt.
#[derive(Clone, Debug)]
pub struct BeginView {
    /// Id of the request.
    pub operation: OperationId,
    /// New view.
    pub view: ViewId,
    /// Paths of directories, at least one.
    pub directories: Vec<BString>,
    /// Base of relative paths, and the enclosing view.
    pub directory: Directory,
}

/// Umask of a task, or `None` for the umask with which the shell was started.
pub type Umask = Option<u16>;

/// Attempt that waits for a channel.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Id of the request.
    pub operation: OperationId,
    /// Id of the pass, once admitted.
    pub pass: PassId,
    /// Name of the channel: letters, digits and `_`, not beginning with a digit.
    pub channel: Name,
    /// Rules of the channel, as declared in this script.
    pub rules: Arc<Rules>,
    /// Kind of the attempt, for the budget of retries.
    pub claim: Claim,
    /// Line of the script.
    pub line: u32,
}

/// Command to start.
#[derive(Clone, Debug)]
pub struct Run {
    /// Id of the command in events.
    pub process: ProcessId,
    /// Task that waits for the command.
    pub task: TaskId,
    /// Scope of the command.
    pub scope: ScopeId,
    /// Action of the command.
    pub action: Action,
    /// Working directory, and base of relative paths.
    pub directory: Directory,
    /// Umask of the command.
    pub umask: Umask,
    /// Table of descriptors to start from.
    pub io: IoId,
    /// True if no other command starts from the table, which need not be kept for the task.
    pub is_last: bool,
    /// Changes to the table, in order.
    pub redirects: Vec<FdChange>,
    /// Bit set of descriptors leading to a later stage of a pipeline, or to the reader of the
    /// shell's own output.
    pub feeds: u16,
    /// Tightest enclosing deadline, passed to the command in `FTSH_DEADLINE`.
    pub deadline: Deadline,
    /// Time from the first signal to SIGKILL if the command is canceled, where shorter than the run's kill
    /// timeout.
    pub grace: Option<Duration>,
    /// Line of the script.
    pub line: u32,
}

/// Branch to run on another machine.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Id of the branch in events.
    pub process: ProcessId,
    /// Task that waits for the branch.
    pub task: TaskId,
    /// Scope of the branch. After `Terminate`, `Emptied` states that nothing of the branch is left
    /// on any machine.
    pub scope: ScopeId,
    /// Engine and its options.
    pub on: On<BString>,
    /// Machines to avoid, unless no other machine remains.
    pub avoid: Vec<String>,
    /// Earliest moment at which a machine need not be avoided any more. A branch still waiting for
    /// another machine then is returned with [`Blame::Stale`](super::event::Blame::Stale) and
    /// dispatched again.
    pub avoid_until: Time,
    /// State of the branch.
    pub branch: Box<PackedBranch>,
    /// Table of descriptors for the branch's output.
    pub io: IoId,
    /// Line of the script.
    pub line: u32,
}

/// Action of a command.
#[derive(Clone, Debug)]
pub enum Action {
    /// Run a program found along `PATH` of its environment.
    Program {
        /// Name and arguments; never empty.
        words: Vec<BString>,
        /// The exported variables.
        environment: Arc<Environment>,
        /// Variables for this command only, which override `environment`.
        overrides: Vec<(BString, BString)>,
    },
    /// Write bytes to descriptor 1.
    Print(BString),
    /// Copy descriptor 0 to descriptor 1.
    Copy,
    /// Read a line from descriptor 0, without its newline and nothing after. Exits 0 with the line,
    /// or 1 with the rest before the end of input.
    ReadLine,
}

/// Names and values of a program's environment.
pub type Environment = Vec<(BString, BString)>;

/// Change to a table of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdChange {
    /// Descriptor to set, 0 to 9.
    pub descriptor: u8,
    /// New source of the descriptor.
    pub source: FdSource,
}

/// Source or target of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdSource {
    /// A file, relative to the directory.
    File {
        /// Path of the file.
        path: BString,
        /// Mode of opening.
        access: Access,
    },
    /// A buffer, from its beginning.
    BufferRead(BufferId),
    /// A new buffer with the given content, followed by the output.
    BufferCreate(BufferId, BString),
    /// A new buffer with the content of another buffer, followed by the output.
    BufferCopy {
        /// New buffer.
        buffer: BufferId,
        /// Buffer to copy.
        of: BufferId,
    },
    /// A new, empty buffer for output that may get large, so better kept on a disk. A descriptor
    /// above 2 stays unchanged unless it is open for writing. If two descriptors lead to the same
    /// file, the output of both goes, in order, into the buffer of the first. If that is standard
    /// error and the other one standard output, `Query::Tail` of the two buffers tells them apart, and
    /// one command's output to both may change its order.
    Hold(BufferId),
    /// A pipe into a relay.
    Relay {
        /// Id of the relay.
        relay: OperationId,
        /// Tag before each line.
        tag: Arc<BString>,
    },
    /// A pipe into a relay without lines and tags, which forwards its input unchanged. The buffer
    /// keeps the last bytes of the input, at most
    /// [`MAX_REPORTED_OUTPUT`](crate::size::MAX_REPORTED_OUTPUT).
    Tee {
        /// Id of the relay, which has no other pipe.
        relay: OperationId,
        /// Buffer of the last bytes, read only by `Query::Tail`.
        buffer: BufferId,
    },
    /// An existing buffer, at its end.
    BufferAppend(BufferId),
    /// A file to be written whole or not at all, by `Commit`; unchanged until then. A path of
    /// anything but a regular file is opened directly.
    StagedFile {
        /// Id of the staged file.
        file: StagedFileId,
        /// Path, relative to the directory.
        path: BString,
        /// Effect of the commit on an existing file.
        mode: CommitMode,
    },
    /// The current source of the descriptor, from its position at the first request of the replay.
    /// A terminal or an unreadable descriptor stays unchanged.
    Spool(SpoolId),
    /// The current source of another descriptor of the table.
    Descriptor(u8),
    /// `/dev/null`
    Null,
    /// A source lost with an earlier start of the run. Readers and writers receive an error, never
    /// an end of input. Not requested by the machine.
    Gone,
    /// The same source, at this offset in bytes from the beginning. A source that cannot seek keeps
    /// its position. Not requested by the machine.
    Position(u64),
    /// Given bytes, as input.
    Bytes(BString),
    /// The reading end of a pipe. A pipe is created with its first end, and each end is taken once.
    PipeReader(PipeId),
    /// The writing end of a pipe.
    PipeWriter(PipeId),
}

/// Effect of a commit on an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitMode {
    /// Replace the existing file.
    Replace,
    /// Replace the existing file if anything was written, and keep the file otherwise.
    Fill,
    /// Append to the file, as it is at the commit.
    Append,
}

/// Mode of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For writing, created or truncated.
    Write,
    /// For writing at the end, created if missing.
    Append,
}

/// Container of output until its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Buffer for a stream or a variable.
    Buffer(BufferId),
    /// Staged file.
    StagedFile(StagedFileId),
}

/// Information that the machine requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Result of a test of a file; `Reply::Truth`.
    Test(FileTest, BString),
    /// Content of a buffer; `Reply::Text`.
    Buffer(BufferId),
    /// Sorted names of files matching a pattern, or none; `Reply::Words`. In the pattern, `*`, `?`
    /// and `[…]` are special unless preceded by a backslash.
    Glob(BString),
    /// Absolute path of a directory that can be entered; `Reply::Text`.
    Directory(BString),
    /// Absolute path of the directory in which the shell was started; `Reply::Text`, or
    /// `Reply::Truth(false)` if the directory is gone.
    OwnDirectory,
    /// Seconds since 1970, with a fraction; `Reply::Text`.
    Clock,
    /// Home directory of the named user; `Reply::Text`.
    Home(BString),
    /// Content of a file; `Reply::Text`.
    File(BString),
    /// Remaining input of a descriptor of a table; `Reply::Text`.
    Input(IoId, u8),
    /// Last bytes of each sink, concatenated, with the given total length at most; `Reply::Text`.
    /// Each part begins at the beginning of a line if possible.
    Tail(Vec<Sink>, usize),
    /// Non-empty buffers among the given ones, in order; `Reply::Buffers`.
    Filled(Vec<BufferId>),
    /// Names of the processes in a scope from which all others there descend; `Reply::Words`.
    Leftovers(ScopeId),
    /// Path of an attempt's scratch directory, created empty by the first request; `Reply::Text`.
    Scratch(ScratchId),
    /// True if descriptor 0 of the table is a pipe or a socket at its end of input; `Reply::Truth`.
    InputEnded(IoId),
    /// The next bytes that come from descriptor 0 of this table, as many as are there, none at the end;
    /// `Reply::Text`.
    InputPart(IoId),
    /// The next bytes of descriptor 0 of this table up to this text, and not a byte more; the rest of the
    /// input if the text does not come; `Reply::Text`.
    InputWord(IoId, BString),
    /// Sorted names of files matching a pattern as in `Glob`, or none; `Reply::Words`. A part `**`
    /// matches any number of directories.
    Files(BString),
    /// Local time; `Reply::Text`.
    LocalTime(Box<LocalTime>),
    /// Memory available for new programs, and the load of the machine; `Reply::Resources`.
    FreeResources,
    /// Part of a file of words from an offset on, after a word was appended if there is one;
    /// `Reply::Text` with whole lines.
    RecordedWords(Box<WordFile>),
    /// Files of a branch that must exist: regular files, directories and links that stay inside of
    /// the directory; `Reply::Truth(true)`, or a refusal that names the first other one.
    BranchFiles {
        /// True after the success of the branch, for the files that it gives.
        given: bool,
        /// Names in the directory; see [`BranchFiles`](super::packed::BranchFiles).
        names: Vec<BString>,
    },
    /// Absolute path of the directory without symbolic links; `Reply::Text`.
    PhysicalDirectory,
    /// Cut to nothing the regular file that descriptor 1 of this table leads to, and that the table
    /// opened empty; `Reply::Truth`, false and without effect if the file also has output of others.
    TakeBack(IoId),
    /// Results of a filter of jq, by the crate `ftsh-filter`; `Reply::Words`, or `Reply::Failed`.
    Filter(Box<FilterCall>),
    /// Durations of earlier attempts in a file; `Reply::Durations`.
    Durations(DurationsOf),
}

/// Call of the function `json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// Text with JSON values.
    pub text: Arc<BString>,
    /// Filter in the language of jq.
    pub filter: Arc<BString>,
}

/// File whose durations are queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationsOf {
    /// The script that the run began with.
    Script,
    /// A file that the script uses, relative to the shell's own directory.
    Used(BString),
    /// A sourced file, relative to the directory of the query.
    Sourced(BString),
}

/// File that records words, one in a line. Several shells may use the file at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordFile {
    /// Path of the regular file, which is created if missing.
    pub path: BString,
    /// Umask for a new file.
    pub umask: Umask,
    /// Number of bytes that are already known.
    pub from: u64,
    /// Line to append without its end. The line is on the disk before the answer.
    pub line: Option<BString>,
}

/// Local time as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Pattern of strftime(3).
    pub pattern: BString,
    /// Seconds since 1970 and nanoseconds after them; the present moment if absent.
    pub at: Option<(i64, u32)>,
    /// Value of `TZ`, if not empty.
    pub zone: Option<BString>,
}
