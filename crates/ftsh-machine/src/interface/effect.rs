//! What the machine asks of the world.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::channels::{Claim, Passed, Rules};
pub use crate::interface::id::{
    BufferId, DraftId, IoId, OperationId, PassId, PipeId, ProcessId, ReplayId, ScopeId, ScratchId,
    TaskId,
};
use crate::record::Record;
use crate::remote::packed::PackedBranch;
use crate::time::Time;
use ftsh_syntax::ast::{FileTest, Name};
use ftsh_syntax::clauses::On;

/// A request to the driver, to be carried out in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Start a command. Answered by `Spawned` (programs only) and `Exited`, or by `SpawnFailed`.
    Run(Box<Run>),
    /// Replace the shell by this program. Answered by `SpawnFailed` or not at all; or as `Run`, where the
    /// shell stays, and then the run ends as the program does.
    Exec(Box<Run>),
    /// Have an engine run a branch elsewhere. Answered by `Returned`, when nothing of the branch is left, and
    /// by `Placed` before that if it begins.
    Dispatch(Box<Dispatch>),
    /// Make a table of descriptors that later commands start from. Answered by `Done`.
    Open {
        /// The request.
        operation: OperationId,
        /// The table to make.
        io: IoId,
        /// The table to copy first.
        base: IoId,
        /// Where relative paths start; none is the shell's own directory.
        directory: Directory,
        /// What new files are made without.
        umask: Umask,
        /// What to change, in order.
        redirects: Vec<FdChange>,
    },
    /// Find something out. Answered by `Done`, off the driver's loop if it may block.
    Query {
        /// The request.
        operation: OperationId,
        /// Where relative paths start.
        directory: Directory,
        /// What to find out.
        query: Query,
    },
    /// Nobody waits for this operation any more; no answer is needed.
    Abandon(OperationId),
    /// A scope begins inside another one; asked for before anything runs in it. The script's own
    /// scope needs none.
    OpenScope {
        /// The new scope.
        scope: ScopeId,
        /// The one around it.
        parent: ScopeId,
        /// How the attempt that it is of went through a channel: what runs in it is inside as well.
        pass: Option<PassId>,
    },
    /// Ask everything in the scope, and in those below it, to end: SIGTERM and SIGCONT.
    /// Answered by `Emptied`, at once if nothing is left. Commands of the scope that end from now on
    /// need no `Exited`.
    Terminate(ScopeId),
    /// The grace period of `Terminate` is over: SIGKILL.
    Kill {
        /// The scope.
        scope: ScopeId,
        /// Repeat until nothing is left (strong), or signal once and report the scope emptied
        /// (weak).
        strong: bool,
    },
    /// The scope ended well: what it left running belongs to `into` now.
    HandOver {
        /// The scope that ended.
        scope: ScopeId,
        /// The one around it.
        into: ScopeId,
    },
    /// Begin to relay lines: what comes from pipes into this is written on, each whole line with its
    /// tag before it and at once, to where the same descriptor of a table leads. Answered by `Done` when
    /// `FinishRelay` is said and all is written: `Truth(true)`; at once if it can't be written:
    /// `Truth(false)` if nobody reads. If it is abandoned, it goes on until nothing more can come.
    Relay {
        /// The request, and what the relay is called.
        operation: OperationId,
        /// The table.
        io: IoId,
    },
    /// No more pipes into a relay will be asked for, and what isn't in one now is not waited for.
    FinishRelay(OperationId),
    /// Close this table of descriptors. What has come through a pipe into a relay that was made for
    /// the table ends with a whole line.
    CloseIo(IoId),
    /// Forget this buffer.
    DropBuffer(BufferId),
    /// Put what drafts hold where it belongs, in order: all of it is on the disk before the first takes
    /// its place. Answered by `Done`: `Truth(true)`; a refusal if none has taken its place; `Text`, which
    /// says why, if some have and the rest can't. If it is abandoned before the first takes its place,
    /// none does.
    Settle {
        /// The request.
        operation: OperationId,
        /// What to put in its place.
        drafts: Vec<DraftId>,
    },
    /// Forget this draft: if it isn't settled, nothing of it stays.
    DropDraft(DraftId),
    /// What was read of this input since the replay began is read for good; what is left of it is there
    /// for whoever reads the same input next.
    KeepInput(ReplayId),
    /// Forget this replay. Unless it was kept, the input is again where it was when the replay began.
    DropReplay(ReplayId),
    /// Remove this directory and all in it, if it was made.
    DropScratch(ScratchId),
    /// Have an attempt wait for its turn in a channel. Answered by `Done`: `Admission`, and by `Queued`
    /// before that if it has to wait. A refusal says why the channel can't be used. If it is abandoned, it
    /// gives back what it got meanwhile.
    Enter(Box<Entry>),
    /// The attempt is over, and unless it succeeded, nothing of it is left.
    Leave(PassId, Passed),
    /// Have a buffer hold this after what it holds, and come into being if it isn't there. Only a machine
    /// that was made for a branch asks for that, and whoever makes the world of an earlier start again.
    Fill(BufferId, BString),
    /// Write to the log.
    Log(Record),
}

/// A task's directory: an absolute path, or none for the one the shell was started in.
pub type Directory = Option<Arc<BString>>;

/// The rights that a task's new files don't get, or none for those that the shell was started without.
pub type Umask = Option<u16>;

/// An attempt that is to go through a channel.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The request.
    pub operation: OperationId,
    /// What it is called once it is admitted.
    pub pass: PassId,
    /// The channel: letters, digits and `_`, not beginning with a digit.
    pub channel: Name,
    /// What this shell obeys there.
    pub rules: Arc<Rules>,
    /// By what right.
    pub claim: Claim,
    /// The script's line.
    pub line: u32,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name in events.
    pub process: ProcessId,
    /// The task that waits for it.
    pub task: TaskId,
    /// The family it belongs to.
    pub scope: ScopeId,
    /// What to do.
    pub action: Action,
    /// Where it runs and relative paths start.
    pub directory: Directory,
    /// What it makes files without.
    pub umask: Umask,
    /// The descriptors it starts from.
    pub io: IoId,
    /// Whether nothing else will start from them: they needn't be kept for the task.
    pub is_last: bool,
    /// What to change in them, in order.
    pub redirects: Vec<FdChange>,
    /// A bit for each descriptor that leads then to where a later stage of a pipeline reads, or whoever
    /// reads what the shell writes.
    pub feeds: u16,
    /// When the tightest enclosing limit passes: for the command's own use (`FTSH_DEADLINE`).
    pub deadline: Option<Time>,
    /// How long it has from SIGTERM to SIGKILL if it is cancelled, where that is less than the kill
    /// timeout of the run.
    pub grace: Option<Duration>,
    /// The script's line.
    pub line: u32,
}

/// A branch that is to run elsewhere.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Its name in events.
    pub process: ProcessId,
    /// The task that waits for it.
    pub task: TaskId,
    /// The family it belongs to. If that is terminated, `Emptied` says that nothing of the branch is left on
    /// any machine.
    pub scope: ScopeId,
    /// What runs it.
    pub on: On<BString>,
    /// Machines that are to be avoided, if that leaves any.
    pub avoid: Vec<String>,
    /// When the first of them needn't be avoided any more: who waits for another one until then is asked for
    /// again ([`Blame::Stale`](crate::event::Blame::Stale)).
    pub avoid_until: Time,
    /// What to run.
    pub branch: Box<PackedBranch>,
    /// Where what it prints goes.
    pub io: IoId,
    /// The script's line.
    pub line: u32,
}

/// What a command does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Run a program found along `PATH` of its environment.
    Program {
        /// Name and arguments; never empty.
        words: Vec<BString>,
        /// The exported variables.
        environment: Arc<Environment>,
        /// Variables for this command only; they win over `environment`.
        overrides: Vec<(BString, BString)>,
    },
    /// Write bytes to descriptor 1.
    Print(BString),
    /// Write to descriptor 1 what there is to read from descriptor 0.
    Copy,
    /// Read a line from descriptor 0, up to and without its newline, and nothing after it.
    /// Exits 0 with the line, or 1 with what there was before the end of input.
    ReadLine,
}

/// Names and values for a program.
pub type Environment = Vec<(BString, BString)>;

/// A change to a table of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdChange {
    /// The descriptor to set, 0 to 9.
    pub descriptor: u8,
    /// What to set it to.
    pub source: FdSource,
}

/// What a descriptor can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdSource {
    /// A file, relative to the directory.
    File {
        /// Its path.
        path: BString,
        /// How to open it.
        access: Access,
    },
    /// A buffer, from its beginning.
    BufferRead(BufferId),
    /// A new buffer with this content; what is written comes after it.
    BufferCreate(BufferId, BString),
    /// A new buffer with the content of another one; what is written comes after it.
    BufferCopy {
        /// The new one.
        buffer: BufferId,
        /// The one to copy.
        of: BufferId,
    },
    /// A new, empty buffer for output that may get large: better on a disk than in memory. A descriptor
    /// above 2 that isn't open, or not for writing, stays as it is. If two lead to the same file, what is
    /// written to either comes, in its order, into the buffer of the first.
    Hold(BufferId),
    /// A pipe into a relay.
    Relay {
        /// Which.
        relay: OperationId,
        /// What stands before each line.
        tag: Arc<BString>,
    },
    /// A pipe into a relay without lines and tags: what comes is written on as it comes. The end of it is
    /// also in the buffer, at most [`MOST_TOLD`](crate::values::size::MOST_TOLD) bytes.
    Tee {
        /// The relay, which has no other pipe.
        relay: OperationId,
        /// Only to be asked for its tail.
        buffer: BufferId,
    },
    /// An existing buffer, at its end.
    BufferAppend(BufferId),
    /// A file that is to be written whole or not at all, by `Settle`; until then it is as it was. What is
    /// no regular file is opened as if it were no draft.
    Draft {
        /// What it is called.
        draft: DraftId,
        /// Its path, relative to the directory.
        path: BString,
        /// How it takes its place.
        mode: DraftMode,
    },
    /// What the descriptor reads, from where it stood when this replay was first asked for. A terminal and
    /// what can't be read stay as they are.
    Replay(ReplayId),
    /// What another descriptor of the table is at this point.
    Descriptor(u8),
    /// `/dev/null`
    Null,
    /// What it led to ended with an earlier start of the run: whoever reads from it or writes to it is
    /// told of an error, never of an end of input. The machine doesn't ask for that.
    Gone,
    /// The same as before, but reading goes on at this byte, counted from the beginning; what can't be
    /// sought stays where it is. The machine doesn't ask for that.
    Position(u64),
    /// Given bytes, as input.
    Bytes(BString),
    /// The end of a pipe to read from. A pipe comes into being with its first end; each end is
    /// taken once.
    PipeReader(PipeId),
    /// The end of a pipe to write to.
    PipeWriter(PipeId),
}

/// How a file that was written whole takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftMode {
    /// In place of what is there.
    Replace,
    /// The same, if anything was written; else what is there stays.
    Fill,
    /// After what is there then.
    Append,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For writing, made or emptied.
    Write,
    /// For writing at its end, made if needed.
    Append,
}

/// What holds what was written until it is let out, settled or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    /// What goes to a stream or a variable.
    Buffer(BufferId),
    /// What goes to a file.
    Draft(DraftId),
}

/// Something to find out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Whether a file passes a test; `Reply::Truth`.
    Test(FileTest, BString),
    /// The content of a buffer; `Reply::Text`.
    Buffer(BufferId),
    /// The file names that match a pattern, sorted; `Reply::Words`, empty if none does. In the
    /// pattern, `*`, `?` and `[…]` are special unless preceded by a backslash.
    Glob(BString),
    /// The absolute path of a directory that one may enter; `Reply::Text`.
    Directory(BString),
    /// The absolute path of the directory the shell was started in; `Reply::Text`, or
    /// `Reply::Truth(false)` if that is gone.
    OwnDirectory,
    /// The seconds since 1970, with a fraction; `Reply::Text`.
    Clock,
    /// The home directory of the named user; `Reply::Text`.
    Home(BString),
    /// The content of a file; `Reply::Text`.
    File(BString),
    /// All that is still to come from this descriptor of a table; `Reply::Text`.
    Input(IoId, u8),
    /// The ends of what was written, one after the other, each from the beginning of a line if there is
    /// one, of together so many bytes at most; `Reply::Text`.
    Tail(Vec<Sink>, usize),
    /// Those of these buffers that have any content; `Reply::Buffers`, in this order.
    Filled(Vec<BufferId>),
    /// The path of a directory of an attempt's own, empty when it is first asked for; `Reply::Text`.
    Scratch(ScratchId),
    /// Whether descriptor 0 of this table is a pipe or a socket that nothing more comes from;
    /// `Reply::Truth`.
    InputEnded(IoId),
}
