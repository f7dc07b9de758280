//! A task: a position in a program with a stack of structures.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use super::replacing::Replacing;
use crate::attempts::{Entering, TryFrame, TryPhase, WorkingDirectory};
use crate::branches::{JoinFrame, JoinKind};
use crate::effect::{
    Directory, OperationId, ProcessId, Query, ScopeId, StagedFileId, TaskId, Umask, ViewId,
};
use crate::elsewhere::RemoteState;
use crate::endings::{
    Continuation, EndedStage, LastAttempt, Logged, Retry, TaskEnding, TaskResidue, Thrown,
};
use crate::event::{Refusal, Reply};
use crate::frames::{CallFrame, Frame, FrameKind};
use crate::invocation::{Expanded, IoTable, Opening, Redirects, WrittenVariable};
use crate::outcome::{BranchResults, Failure, FailureKind, KindAndCode, Outcome};
use crate::packed::{AttemptInfo, BranchFiles};
use crate::program::{Address, Program};
use crate::resources::ResourceHandle;
use crate::scheduler::TimerKey;
use crate::time::{Deadline, Time};
use crate::transactions::{Committing, OpeningTransaction, OpeningView, Scratch};
use crate::values::{Suspend, Value};
use crate::variables::{Change, SavedVariable, Variables};
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;
use ftsh_syntax::signal::Signal;

/// A script, a branch or a stage.
#[derive(Debug)]
pub(crate) struct Task {
    /// Id of the task.
    pub id: TaskId,
    /// Parent, and index among the siblings.
    pub parent: Option<(TaskId, usize)>,
    /// Current program.
    pub program: Arc<Program>,
    /// Address of the current instruction.
    pub at: Address,
    /// Values of unfinished expressions.
    pub stack: Vec<Value>,
    /// Structures, outermost first.
    pub frames: Vec<Frame>,
    /// Variables of the task.
    pub variables: Variables,
    /// `$0`, `$1`, …
    pub args: Arc<Vec<BString>>,
    /// Current directory.
    pub directory: Directory,
    /// Umask for new files.
    pub umask: Umask,
    /// Number of the enclosing branch of a `forall` among those that run.
    pub slot: Option<NonZeroU32>,
    /// Files that the branch gives here after its success, or that travel with a dispatched branch.
    pub files: Option<Box<BranchFiles>>,
    /// Current descriptors.
    pub io: IoTable,
    /// Scope of new commands.
    pub scope: ScopeId,
    /// Context received from the parent.
    pub inherited: Arc<ParentContext>,
    /// Reason for waiting, if any.
    pub state: TaskState,
    /// Beginning of the current activity.
    pub since: Time,
    /// Highest number of attempts among the outermost tries.
    pub attempts: u64,
    /// Command of the current instruction, once its words are expanded.
    pub expanded: Option<Arc<Expanded>>,
    /// Further state of an instruction that takes several steps.
    pub progress: Option<Box<InstructionProgress>>,
    /// Cancellations in progress, while `finally` groups run. Limits inside the groups may add
    /// further ones.
    pub cancellations: Vec<Cancellation>,
    /// Variables made `local` outside the task's own calls, with the task's earlier changes to
    /// them.
    pub locals: Vec<(Name, Option<Change>)>,
}

// A run may have a hundred thousand tasks.
const _: () = assert!(size_of::<Task>() <= 416);

/// Progress of an instruction that takes several steps.
#[derive(Debug, Default)]
pub(crate) struct InstructionProgress {
    /// Queries answered for the instruction.
    pub answers: Vec<(Query, Reply)>,
    /// Offsets in the source and values of the calls evaluated for the words of the instruction.
    pub calls: Vec<(usize, Value)>,
    /// Redirections still to be set up.
    pub redirects: Redirects,
    /// Replacement in progress.
    pub replacing: Option<Replacing>,
    /// Table opened for the instruction.
    pub opened: Option<IoTable>,
}

/// Cancellation in progress, while the task's `finally` groups run.
#[derive(Debug)]
pub(crate) struct Cancellation {
    /// Number of frames to keep.
    pub keep: usize,
    /// Continuation after the groups.
    pub after: AfterEmptied,
    /// Failure that canceled the task.
    pub failure: Arc<Failure>,
    /// Scope emptied for the cancellation; `None` for a child task, which is cleaned up together
    /// with its parent. A cut of a child that `waits` only ends its groups, and its parent goes on.
    pub emptied: Option<ScopeId>,
    /// Parent scope of the groups' scopes. Before the first group, the scope around `emptied`.
    pub scope: ScopeId,
    /// Moment of the cancellation.
    pub since: Time,
    /// Deadline of the groups.
    pub limit: Deadline,
    /// First signal for processes left by the groups.
    pub signal: Signal,
    /// Time from the first signal to SIGKILL for processes left by the groups.
    pub grace: Duration,
    /// Timer of the deadline.
    pub timer: Option<TimerKey>,
    /// Set while a running group delays the cut; `scope` is then the scope to empty.
    pub waits: bool,
}

/// Context of a branch or a stage, taken from the structures around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParentContext {
    /// Tightest deadline.
    pub deadline: Deadline,
    /// Innermost attempt.
    pub attempt: Option<AttemptInfo>,
    /// Failure being handled.
    pub failure: Option<Arc<Failure>>,
    /// True inside a `finally` group after success.
    pub succeeded: bool,
    /// Results shown by `$failed`.
    pub branches: Option<Arc<BranchResults>>,
    /// Depth of nested calls.
    pub depth: usize,
    /// True if an enclosing `finally` group has not yet run.
    pub is_guarded: bool,
    /// Scratch directory of the enclosing atomic attempt.
    pub scratch: Option<Scratch>,
    /// View of the enclosing attempt that has one.
    pub view: Option<ResourceHandle<ViewId>>,
}

/// State of a task: ready, or waiting.
#[derive(Debug)]
pub(crate) enum TaskState {
    /// Ready to continue.
    Ready,
    /// Waiting for the answer to a query. The instruction then starts over.
    Query(OperationId, Query),
    /// Waiting for descriptors. The instruction then starts over.
    Opening(Opening),
    /// Waiting for the descriptors of a pipeline's stage, which then begins.
    Piped(OperationId),
    /// Waiting for a turn in a channel. The innermost `try` then makes its attempt.
    Entering(Entering),
    /// Waiting for a command.
    Command(Box<RunningCommand>),
    /// Waiting for the commit of the files written by a command.
    CommittingFiles(Box<CommittingFiles>),
    /// Waiting for the result of an end-of-input check, after which the attempt continues.
    CheckingInput(OperationId),
    /// Waiting for the view of an attempt, which then begins.
    OpeningView(OpeningView),
    /// Waiting for the descriptors of a transaction, which then begins.
    Beginning(OpeningTransaction),
    /// Waiting for a step of a commit.
    Committing(Committing),
    /// Waiting for the last output of a failed attempt, after which its `try` continues.
    ReadingOutput(OperationId, AfterEmptied),
    /// Waiting for the names of the processes left in a scope, which is then emptied.
    ListingLeftovers(OperationId, ScopeId, AfterEmptied),
    /// Waiting for a remote branch.
    Remote(RemoteState),
    /// Waiting for a timer.
    Sleeping(TimerKey),
    /// Waiting for the record of a branch that succeeded, after which the branch ends; with the number
    /// of bytes of the file that were read before. Without a number, waiting for the check of the
    /// files that the branch gives.
    Recording(OperationId, Option<u64>),
    /// Waiting for the tasks of the innermost frame.
    Children,
    /// Waiting for a turn to start more branches.
    Forking,
    /// Waiting for a turn to clean up, as a canceled child task or as the parent of canceled tasks.
    AwaitingCleanup,
    /// Cleaning up.
    Cleaning,
    /// Waiting for the end of all processes in a scope.
    Emptying(ScopeId, AfterEmptied),
}

/// Command in progress.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    /// Id of the command in events.
    pub process: ProcessId,
    /// Command as written, for messages.
    pub text: String,
    /// Start of the command.
    pub started: Time,
    /// Variables set by `read`.
    pub reads: Vec<Name>,
    /// Change of a variable, applied when the command ends or is cut short after its redirections
    /// are set up. A lost command changes nothing.
    pub written: Option<WrittenVariable>,
    /// Previous values of the variables changed by its redirections.
    pub before: Vec<SavedVariable>,
    /// True if the task ends with the command (`exec`).
    pub last: bool,
    /// True if the run ends with the command.
    pub replaces_shell: bool,
    /// Staged files of the command.
    pub drafts: Vec<ResourceHandle<StagedFileId>>,
}

/// Successful command whose files are not yet committed.
#[derive(Debug)]
pub(crate) struct CommittingFiles {
    /// Id of the commit.
    pub operation: OperationId,
    /// Command that succeeded.
    pub command: Box<RunningCommand>,
    /// Duration of the command.
    pub elapsed: Duration,
}

/// Continuation of a task after its scope is empty.
#[derive(Debug)]
pub(crate) enum AfterEmptied {
    /// Continue the failure at the innermost frame.
    Fail(Thrown),
    /// Fail the innermost frame's `finally` group.
    EndFinally(Thrown),
    /// Continue with the next `finally` group of a canceled task.
    NextGroup,
    /// Commit the transaction of the innermost frame, and continue.
    Commit(Continuation),
    /// Continue leaving the structures.
    Leave(TaskEnding),
    /// Fail in the given scope.
    Throw(Thrown, ScopeId),
    /// Run the `finally` groups of a canceled task.
    Clean(Box<Cancellation>),
    /// End the task.
    End(TaskEnding),
    /// End the run.
    Finish(Outcome),
}

impl Task {
    /// Returns the line of the current instruction.
    pub(crate) fn line(&self) -> u32 {
        self.program.lines.get(self.at).copied().unwrap_or(0)
    }

    /// Creates a failure at the current instruction.
    pub(crate) fn thrown(
        &self,
        kind: FailureKind,
        code: i32,
        mut message: String,
        command: &str,
    ) -> Thrown {
        let secrets = &self.variables.secrets;
        secrets.hide_in(&mut message);
        let failure = Failure {
            source: Arc::clone(&self.program.source),
            line: self.line(),
            earlier: self.caught().cloned(),
            ..Failure::new(kind, code, message, secrets.hide(command).into_owned())
        };
        Thrown {
            failure: Arc::new(failure),
            retry: Retry::AsUsual,
            logged: Logged::Not,
            answers: true,
        }
    }

    /// Returns the failure of redirections that cannot be opened.
    pub(crate) fn not_opened(&self, refusal: Refusal) -> Thrown {
        self.refused(FailureKind::Redirect, refusal)
    }

    /// Returns the failure of a request that the driver refused.
    pub(crate) fn refused(&self, kind: FailureKind, refusal: Refusal) -> Thrown {
        self.thrown(kind, 1, refusal.message, "").caused_by(refusal.errno)
    }

    /// Returns the failure of a violated invariant, an internal error of the shell. The failure is
    /// never retried. With debug assertions, the process panics instead.
    pub(crate) fn broken(&self, what: &str) -> Thrown {
        debug_assert!(false, "line {}: {what}", self.line());
        let message = format!("{what}: an internal error of ftsh");
        Thrown { retry: Retry::Never, ..self.thrown(FailureKind::Internal, 1, message, "") }
    }

    /// Moves to the next instruction.
    pub(crate) fn advance(&mut self) {
        self.jump(self.at + 1);
    }

    /// Moves to an address.
    pub(crate) fn jump(&mut self, to: Address) {
        self.at = to;
        self.expanded = None;
        // Dropping nothing is a call all the same.
        if self.progress.is_some() {
            self.progress = None;
        }
    }

    /// Returns the progress of the current instruction, created if missing.
    pub(crate) fn progress(&mut self) -> &mut InstructionProgress {
        self.progress.get_or_insert_default()
    }

    /// Returns the answers for the current instruction.
    pub(crate) fn answers(&self) -> &[(Query, Reply)] {
        self.progress.as_ref().map_or(&[], |progress| &progress.answers)
    }

    /// Returns the value of a call in a word of the current instruction, if already evaluated.
    pub(crate) fn call_value(&self, start: usize) -> Option<&Value> {
        let mut values = self.progress.as_ref()?.calls.iter();
        values.find(|(known, _)| *known == start).map(|(_, value)| value)
    }

    /// Returns the table opened for the current instruction.
    pub(crate) fn opened(&self) -> Option<&IoTable> {
        self.progress.as_ref()?.opened.as_ref()
    }

    /// Takes the table opened for the current instruction.
    pub(crate) fn take_opened(&mut self) -> Option<IoTable> {
        self.progress.as_mut()?.opened.take()
    }

    /// Returns the redirections of the current instruction, if any.
    pub(crate) fn redirects(&mut self) -> Option<&mut Redirects> {
        self.progress.as_mut().map(|progress| &mut progress.redirects)
    }

    /// Returns true if redirections of the current instruction are still to be set up.
    pub(crate) fn is_to_redirect(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| !progress.redirects.is_empty())
    }

    /// Enters a structure.
    pub(crate) fn enter(&mut self, kind: FrameKind) {
        self.frames.push(Frame { height: self.stack.len(), kind });
    }

    /// Pops the topmost value.
    pub(crate) fn pop(&mut self) -> Result<Value, Suspend> {
        self.stack.pop().ok_or(Suspend::Broken("a value is missing"))
    }

    /// Reverses the topmost values, which are then popped in the order in which they were pushed.
    pub(crate) fn reverse_top(&mut self, values: usize) {
        let from = self.stack.len().saturating_sub(values);
        self.stack[from..].reverse();
    }

    /// Returns the innermost structure if it is a `try`.
    pub(crate) fn top_try(&mut self) -> Option<&mut TryFrame> {
        match self.frames.last_mut() {
            Some(Frame { kind: FrameKind::Try(frame), .. }) => Some(frame),
            _ => None,
        }
    }

    /// Iterates over the enclosing tries, innermost first.
    pub(crate) fn tries(&self) -> impl Iterator<Item = &TryFrame> {
        self.frames.iter().rev().filter_map(|frame| match &frame.kind {
            FrameKind::Try(frame) => Some(&**frame),
            _ => None,
        })
    }

    /// Iterates over the enclosing tries, innermost first, each with its source text.
    pub(crate) fn placed_tries(&self) -> impl Iterator<Item = (&TryFrame, &Arc<Source>)> {
        let frames = self.frames.iter().rev();
        let placed = frames.scan(&self.program.source, |source, frame| {
            if let FrameKind::Call(call) = &frame.kind {
                *source = &call.program.source;
            }
            Some((&frame.kind, *source))
        });
        placed.filter_map(|(kind, source)| match kind {
            FrameKind::Try(frame) => Some((&**frame, source)),
            _ => None,
        })
    }

    /// Returns the current directory, to return to.
    pub(crate) fn working_directory(&self) -> WorkingDirectory {
        WorkingDirectory::of(&self.directory, &self.variables)
    }

    /// Returns to an earlier directory.
    pub(crate) fn return_to(&mut self, place: &WorkingDirectory) {
        place.restore(&mut self.directory, &mut self.variables);
    }

    /// Returns the attempt of the innermost `try`, or the last attempt in its `catch` or `finally`,
    /// with the deadline of a `limit` inside it.
    pub(crate) fn attempt(&self) -> Option<AttemptInfo> {
        let info = |frame: &TryFrame| AttemptInfo {
            number: frame.attempt,
            started: frame.started,
            deadline: frame.deadline,
        };
        let deadline = self.tries().next().map(|frame| frame.deadline);
        let around = deadline.or(self.inherited.attempt.map(|attempt| attempt.deadline));
        let last = |last: LastAttempt| AttemptInfo {
            number: last.number,
            started: last.started,
            deadline: around.unwrap_or(Deadline::NONE),
        };
        let innermost = |limits: bool| {
            let counts = |ended: &LastAttempt| limits || !ended.is_limit;
            self.frames.iter().rev().find_map(|frame| match &frame.kind {
                FrameKind::Try(frame) => (limits || !frame.code.is_limit).then(|| info(frame)),
                FrameKind::Catch(_, ended) => ended.filter(counts).map(last),
                FrameKind::Finally(frame) => frame.last.filter(counts).map(last),
                _ => None,
            })
        };
        // A `limit` outside of tries counts as an attempt.
        let innermost = innermost(false).or(self.inherited.attempt).or_else(|| innermost(true));
        innermost.map(|it| AttemptInfo { deadline: deadline.unwrap_or(it.deadline), ..it })
    }

    /// Returns the innermost structure that handles failures instead of passing them on.
    pub(crate) fn barrier(&self) -> Option<&FrameKind> {
        self.frames.iter().rev().map(|frame| &frame.kind).find(|kind| kind.is_barrier())
    }

    /// Returns the failure that `$error` shows.
    pub(crate) fn caught(&self) -> Option<&Arc<Failure>> {
        self.caught_in(&self.frames)
    }

    /// Returns the failure that `$error` would show inside only the given structures.
    pub(crate) fn caught_in<'t>(&'t self, frames: &'t [Frame]) -> Option<&'t Arc<Failure>> {
        previous_result(frames).map_or(self.inherited.failure.as_ref(), PreviousResult::failure)
    }

    /// Returns true if `$error` reports a success.
    pub(crate) fn is_after_success(&self) -> bool {
        previous_result(&self.frames)
            .map_or(self.inherited.succeeded, |result| matches!(result, PreviousResult::Success))
    }

    /// Returns the failure being handled, which can be passed on. At a prompt, `$error` shows a
    /// failure that is already over.
    pub(crate) fn handled(&self) -> Option<&Arc<Failure>> {
        let inherited = self.inherited.failure.as_ref().filter(|_| self.parent.is_some());
        previous_result(&self.frames).map_or(inherited, PreviousResult::failure)
    }

    /// Returns the scope in which the task began.
    pub(crate) fn base_scope(&self) -> ScopeId {
        let outermost = self.frames.iter().find_map(|frame| match &frame.kind {
            FrameKind::Try(frame) => Some(frame.outer_scope),
            FrameKind::Finally(frame) => Some(frame.outer_scope),
            FrameKind::Keep { outer_scope, .. } => Some(*outer_scope),
            _ => None,
        });
        outermost.unwrap_or(self.scope)
    }

    /// Returns the depth of nested calls.
    pub(crate) fn depth(&self) -> usize {
        let innermost = self.frames.iter().rev().find_map(|frame| match &frame.kind {
            FrameKind::Call(call) => Some(call.depth),
            _ => None,
        });
        innermost.unwrap_or(self.inherited.depth)
    }

    /// Takes the state that the task returns to its parent.
    pub(crate) fn residue(&mut self) -> TaskResidue {
        TaskResidue {
            locals: std::mem::take(&mut self.locals),
            variables: std::mem::take(&mut self.variables),
            args: Arc::clone(&self.args),
            directory: self.directory.clone(),
            umask: self.umask,
        }
    }
}

/// Previous result known to a structure, as shown by `$error`.
enum PreviousResult<'t> {
    Failure(&'t Arc<Failure>),
    Success,
}

impl<'t> PreviousResult<'t> {
    fn failure(self) -> Option<&'t Arc<Failure>> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::Success => None,
        }
    }
}

/// Returns the results of branches that `$failed` shows. A `finally` group also shows those of a
/// `forall` that succeeded.
pub(crate) fn branch_results(task: &Task) -> Option<&Arc<BranchResults>> {
    let known = task.frames.iter().rev().find(|frame| previous_result_of(frame).is_some());
    let noted = match known.map(|frame| &frame.kind) {
        Some(FrameKind::Finally(group)) => group.branches.as_ref(),
        Some(_) => None,
        None => task.inherited.branches.as_ref(),
    };
    task.caught().and_then(|failure| failure.of_branches()).or(noted)
}

/// Returns the previous result known to the innermost structure that has one.
fn previous_result(frames: &[Frame]) -> Option<PreviousResult<'_>> {
    frames.iter().rev().find_map(previous_result_of)
}

fn previous_result_of(frame: &Frame) -> Option<PreviousResult<'_>> {
    match &frame.kind {
        FrameKind::Catch(failure, _) => Some(PreviousResult::Failure(failure)),
        FrameKind::Finally(frame) => {
            Some(frame.error.as_ref().map_or(PreviousResult::Success, PreviousResult::Failure))
        }
        FrameKind::Try(frame) if frame.phase == TryPhase::Condition => {
            frame.failure.as_ref().map(PreviousResult::Failure)
        }
        _ => None,
    }
}

impl Task {
    /// Returns the failure of a branch that is cut short. A branch that only waits for its
    /// processes to end keeps its ending.
    pub(crate) fn cut_short(&self, why: KindAndCode) -> Option<KindAndCode> {
        match &self.state {
            TaskState::Emptying(_, AfterEmptied::End(ending))
            | TaskState::ReadingOutput(_, AfterEmptied::End(ending)) => ending.failure(),
            _ => Some(why),
        }
    }

    /// Returns the tasks for which the task waits.
    pub(crate) fn children(&self) -> Vec<TaskId> {
        match self.frames.last() {
            Some(Frame { kind: FrameKind::Join(join), .. }) => {
                join.running.iter().copied().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the innermost structure if that waits for tasks.
    pub(crate) fn top_join(&mut self) -> Option<&mut JoinFrame> {
        match self.frames.last_mut() {
            Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
            _ => None,
        }
    }

    /// Returns true if a later stage of the task's pipeline reads the output of the stage at
    /// `index`.
    pub(crate) fn is_read_by_sibling(&self, index: usize) -> bool {
        self.stages().is_some_and(|stages| index + 1 < stages.len())
    }

    /// Returns true if a stage before `index` has failed, and the task's pipeline fails by that
    /// failure.
    pub(crate) fn has_failed_before(&self, index: usize) -> bool {
        let stages = self.stages().map_or(&[][..], |stages| &stages[..index]);
        let mut before = stages.iter().flatten().map(|stage| &stage.ending);
        before.any(|it| !matches!(it, TaskEnding::Succeeded) && !it.is_broken_pipe())
    }

    /// Returns the stages of the pipeline for which the task waits.
    fn stages(&self) -> Option<&[Option<EndedStage>]> {
        match &self.frames.last()?.kind {
            FrameKind::Join(join) => match &join.kind {
                JoinKind::Stages(stages) => Some(stages),
                JoinKind::Branches { .. } | JoinKind::Hedge(_) | JoinKind::Beside(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the failure of a task that executed `exit`; `what` names the task.
    pub(crate) fn exited(&self, what: &str, code: u8) -> Thrown {
        let message = format!("{what} exited with {code}");
        self.thrown(FailureKind::Exit, i32::from(code), message, "exit")
    }

    /// Returns to the caller of a call.
    pub(crate) fn leave_call(&mut self, call: CallFrame) {
        self.program = call.program;
        self.at = call.return_to - 1;
        if call.function.is_some() {
            self.args = call.args;
        }
        let kept = call.restore.into_iter().rev();
        kept.for_each(|kept| self.variables.put_back(kept));
    }

    /// Returns the answer to a query of the current instruction.
    pub(crate) fn answer(&self, query: &Query) -> Option<&Reply> {
        self.answers().iter().find(|(asked, _)| asked == query).map(|(_, reply)| reply)
    }

    /// Returns the directory as an absolute path; `None` if the shell's own directory is gone.
    pub(crate) fn absolute_directory(&self) -> Result<Option<BString>, Suspend> {
        if let Some(directory) = &self.directory.path {
            return Ok(Some(directory.to_vec().into()));
        }
        match self.answer(&Query::OwnDirectory) {
            Some(Reply::Text(directory)) => Ok(Some(directory.clone())),
            Some(_) => Ok(None),
            None => Err(Suspend::Pending(Query::OwnDirectory)),
        }
    }
}
