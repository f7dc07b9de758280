//! A task: a position in a program and the structures it is in.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::atomic::transaction::{Beginning, Committing, Scratch};
use crate::commands::invocation::Expanded;
use crate::commands::opening::{Opening, Redirects, Written};
use crate::commands::table::Table;
use crate::effect::{Directory, DraftId, OperationId, ProcessId, Query, ScopeId, TaskId, Umask};
use crate::eval::replacing::Replacing;
use crate::event::{Refusal, Reply};
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::program::code::{Address, Program};
use crate::remote::remote_branch::RemoteState;
use crate::tasks::frame::{Frame, FrameKind, TryFrame, TryPhase};
use crate::tasks::suspend::Suspend;
use crate::tasks::timer::TimerKey;
use crate::tasks::trace::Trace;
use crate::time::Time;
use crate::tries::entering::Entering;
use crate::unwind::ending::{Ending, Logged, Retry, TaskResidue, Thrown};
use crate::values::value::{Handle, Value};
use crate::values::variables::{Change, Kept, Variables};
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;

/// The script, a branch or a stage.
#[derive(Debug)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The task that waits for it, and its place among its siblings.
    pub parent: Option<(TaskId, usize)>,
    /// The program it is in.
    pub program: Arc<Program>,
    /// The present instruction.
    pub at: Address,
    /// Values of unfinished expressions.
    pub stack: Vec<Value>,
    /// Structures, outermost first.
    pub frames: Vec<Frame>,
    /// Its variables.
    pub variables: Variables,
    /// `$0`, `$1`, …
    pub args: Arc<Vec<BString>>,
    /// Its directory.
    pub directory: Directory,
    /// What its files are made without.
    pub umask: Umask,
    /// Its descriptors.
    pub io: Table,
    /// The innermost family its commands belong to.
    pub scope: ScopeId,
    /// What it takes from the task it was forked from.
    pub inherited: Arc<ParentContext>,
    /// What it waits for.
    pub state: State,
    /// Since when it does what it does.
    pub since: Time,
    /// The most attempts that one of its outermost tries has made.
    pub attempts: u64,
    /// The present instruction's command, once its words are expanded.
    pub expanded: Option<Arc<Expanded>>,
    /// What else there is of the present instruction, if it doesn't end where it begins.
    pub progress: Option<Box<Progress>>,
    /// How it is cancelled, while its `finally` groups run; in these groups, limits may cancel more.
    pub cleaning: Vec<Cleaning>,
    /// What it has made `local` to a call around all of it, and what it had made of that before, if
    /// anything.
    pub locals: Vec<(Name, Option<Change>)>,
}

// There may be a hundred thousand.
const _: () = assert!(size_of::<Task>() <= 400);

/// How far an instruction has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// What was found out for it.
    pub answers: Vec<(Query, Reply)>,
    /// Its redirections that are still to be set up.
    pub redirects: Redirects,
    /// The replacement that it is in the middle of.
    pub replacing: Option<Replacing>,
    /// What was opened for it.
    pub opened: Option<Table>,
}

/// A task that is cancelled, and whose `finally` groups have their time.
#[derive(Debug)]
pub struct Cleaning {
    /// How many frames stay.
    pub keep: usize,
    /// What comes after.
    pub after: AfterEmptied,
    /// What cancelled it.
    pub failure: Arc<Failure>,
    /// The scope that was emptied for it; none for a task that another one waits for, which
    /// cleans up together with that.
    pub emptied: Option<ScopeId>,
    /// The scope that those of the groups are in; before there are any, the one around `emptied`.
    pub scope: ScopeId,
    /// When it was cancelled.
    pub since: Time,
    /// When the groups must end.
    pub limit: Time,
    /// How long what they leave behind has then from SIGTERM to SIGKILL.
    pub grace: Duration,
    /// Says when the groups must end.
    pub timer: Option<TimerKey>,
    /// Set while a group in progress delays the cut; `scope` is then the scope to empty.
    pub waits: bool,
}

/// What a branch or stage sees of the structures around it.
#[derive(Clone, Debug, Default)]
pub struct ParentContext {
    /// The tightest limit.
    pub deadline: Option<Time>,
    /// The innermost `try`.
    pub attempt: Option<Attempt>,
    /// What was caught.
    pub failure: Option<Arc<Failure>>,
    /// Whether a `finally` group is around that comes after success.
    pub succeeded: bool,
    /// How deep calls are nested.
    pub depth: usize,
    /// Whether a `finally` group around is still to be run.
    pub is_guarded: bool,
    /// The directory of the atomic attempt around.
    pub scratch: Option<Scratch>,
}

/// What `$attempt`, `$elapsed` and `$remaining` tell.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// From 1.
    pub number: u64,
    /// When the `try` began.
    pub started: Time,
    /// When it must end, if it must.
    pub deadline: Option<Time>,
}

/// What a task waits for.
#[derive(Debug)]
pub enum State {
    /// Nothing: it can go on.
    Ready,
    /// An answer; then the present instruction starts over.
    Query(OperationId, Query),
    /// Descriptors; then the present instruction starts over.
    Opening(Opening),
    /// The descriptors of a pipeline's stage; then it begins.
    Piped(OperationId),
    /// Its turn in a channel; then the innermost `try` makes its attempt.
    Entering(Entering),
    /// A command.
    Command(Box<Command>),
    /// The files that a command has written, to take their places.
    Settling(Box<Settling>),
    /// Whether the standard input of an attempt has ended; then that goes on.
    Asking(OperationId),
    /// The descriptors of a transaction; then it begins.
    Beginning(Beginning),
    /// A step of a commit.
    Committing(Committing),
    /// What a failed attempt has written last; then its `try` goes on.
    Telling(OperationId, AfterEmptied),
    /// A branch that runs elsewhere.
    Remote(RemoteState),
    /// A timer.
    Sleeping(TimerKey),
    /// The tasks of the innermost frame.
    Children,
    /// Its turn to start more of them.
    Forking,
    /// Its turn to clean up, as a task that another one waits for, or such tasks of its own.
    Doomed,
    /// To clean up, now.
    Cleaning,
    /// The end of everything in a scope.
    Emptying(ScopeId, AfterEmptied),
}

/// A command in progress.
#[derive(Debug)]
pub struct Command {
    /// Its name in events.
    pub process: ProcessId,
    /// As written, for messages.
    pub text: String,
    /// When it began.
    pub started: Time,
    /// The variables that `read` sets.
    pub reads: Vec<Name>,
    /// What changes when it ends, or is cut short once its redirections are set up; not if it is lost.
    pub written: Option<Written>,
    /// Variables that its redirections have changed, as they were.
    pub before: Vec<Kept>,
    /// Whether the task ends with it (`exec`).
    pub last: bool,
    /// Whether the run ends with it.
    pub replaces_shell: bool,
    /// The files that it writes whole or not at all.
    pub drafts: Vec<Handle<DraftId>>,
}

/// A command that has succeeded, but for its files.
#[derive(Debug)]
pub struct Settling {
    /// The request.
    pub operation: OperationId,
    /// The command.
    pub command: Box<Command>,
    /// How long it ran.
    pub elapsed: Duration,
}

/// What a task does when its scope is empty.
#[derive(Debug)]
pub enum AfterEmptied {
    /// Go on failing, at the innermost frame.
    Fail(Thrown),
    /// The innermost frame's `finally` group failed.
    EndFinally(Thrown),
    /// A `finally` group of a cancelled task is over: go on with the next one.
    NextGroup,
    /// Go on leaving what it is in.
    Leave(Ending),
    /// Fail, in this scope.
    Throw(Thrown, ScopeId),
    /// The `finally` groups of the task, which was cancelled, have their time.
    Clean(Box<Cleaning>),
    /// The task is over.
    End(Ending),
    /// The run is over.
    Finish(Outcome),
}

impl Task {
    /// The line of the present instruction.
    pub fn line(&self) -> u32 {
        self.program.lines.get(self.at).copied().unwrap_or(0)
    }

    /// A failure at the present instruction.
    pub fn thrown(
        &self,
        kind: FailureKind,
        code: i32,
        mut message: String,
        command: &str,
    ) -> Thrown {
        let secrets = &self.variables.secrets;
        secrets.hide_in(&mut message);
        let failure = Failure {
            kind,
            code,
            message,
            command: secrets.hide(command).into_owned(),
            elapsed: None,
            source: Arc::clone(&self.program.source),
            line: self.line(),
            tries: Vec::new(),
            trace: Trace::default(),
            earlier: self.caught().cloned(),
            branches: None,
            printed: None,
            output: None,
        };
        Thrown { failure: Arc::new(failure), retry: Retry::AsUsual, logged: Logged::Not }
    }

    /// The failure of redirections that can't be set up.
    pub fn not_opened(&self, refusal: Refusal) -> Thrown {
        self.thrown(FailureKind::Redirect, 1, refusal.message, "")
    }

    /// The failure that something doesn't hold which no script can change. Where debug assertions are
    /// on that ends the process; elsewhere nothing tries again.
    pub fn broken(&self, what: &str) -> Thrown {
        debug_assert!(false, "line {}: {what}", self.line());
        let message = format!("{what}: an internal error of ftsh");
        Thrown { retry: Retry::Never, ..self.thrown(FailureKind::Internal, 1, message, "") }
    }

    /// Goes on after the present instruction.
    pub fn advance(&mut self) {
        self.jump(self.at + 1);
    }

    /// Goes on elsewhere.
    pub fn jump(&mut self, to: Address) {
        self.at = to;
        self.expanded = None;
        self.progress = None;
    }

    /// How far the present instruction has come, to go on there.
    pub fn progress(&mut self) -> &mut Progress {
        self.progress.get_or_insert_default()
    }

    /// What was found out for the present instruction.
    pub fn answers(&self) -> &[(Query, Reply)] {
        self.progress.as_ref().map_or(&[], |progress| &progress.answers)
    }

    /// What was opened for the present instruction.
    pub fn opened(&self) -> Option<&Table> {
        self.progress.as_ref()?.opened.as_ref()
    }

    /// The same, for whatever has it from now on.
    pub fn take_opened(&mut self) -> Option<Table> {
        self.progress.as_mut()?.opened.take()
    }

    /// The redirections of the present instruction, if it has any.
    pub fn redirects(&mut self) -> Option<&mut Redirects> {
        self.progress.as_mut().map(|progress| &mut progress.redirects)
    }

    /// Whether redirections of the present instruction are still to be set up.
    pub fn is_to_redirect(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| !progress.redirects.is_empty())
    }

    /// Enters a structure.
    pub fn enter(&mut self, kind: FrameKind) {
        self.frames.push(Frame { height: self.stack.len(), kind });
    }

    /// Takes the topmost value.
    pub fn pop(&mut self) -> Result<Value, Suspend> {
        self.stack.pop().ok_or(Suspend::Broken("a value is missing"))
    }

    /// Turns the order of the topmost values round, so that they come off as they were pushed.
    pub fn turn(&mut self, values: usize) {
        let from = self.stack.len().saturating_sub(values);
        self.stack[from..].reverse();
    }

    /// The innermost structure's `try`, if it is one.
    pub fn top_try(&mut self) -> Option<&mut TryFrame> {
        match self.frames.last_mut() {
            Some(Frame { kind: FrameKind::Try(frame), .. }) => Some(frame),
            _ => None,
        }
    }

    /// The tries it is in, innermost first.
    pub fn tries(&self) -> impl Iterator<Item = &TryFrame> {
        self.frames.iter().rev().filter_map(|frame| match &frame.kind {
            FrameKind::Try(frame) => Some(&**frame),
            _ => None,
        })
    }

    /// The tries it is in, innermost first, each with the text it stands in.
    pub fn placed_tries(&self) -> impl Iterator<Item = (&TryFrame, &Arc<Source>)> {
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

    /// What the innermost `try` tells.
    pub fn attempt(&self) -> Option<Attempt> {
        let innermost = self.tries().next().map(|frame| Attempt {
            number: frame.attempt,
            started: frame.started,
            deadline: Some(frame.deadline).filter(|deadline| *deadline != Time::NEVER),
        });
        innermost.or(self.inherited.attempt)
    }

    /// The innermost structure that a failure doesn't simply pass through.
    pub fn barrier(&self) -> Option<&FrameKind> {
        self.frames.iter().rev().map(|frame| &frame.kind).find(|kind| match kind {
            FrameKind::Question(_)
            | FrameKind::Try(_)
            | FrameKind::TryHead(_)
            | FrameKind::ForAny(_)
            | FrameKind::Catch(_)
            | FrameKind::Finally(_) => true,
            FrameKind::For(_)
            | FrameKind::Guard(_)
            | FrameKind::Join(_)
            | FrameKind::Remote(_)
            | FrameKind::Call(_)
            | FrameKind::Redirected { .. }
            | FrameKind::Targets(_)
            | FrameKind::Transaction(_) => false,
        })
    }

    /// The failure that `$error` tells.
    pub fn caught(&self) -> Option<&Arc<Failure>> {
        self.caught_in(&self.frames)
    }

    /// The failure that `$error` tells where only these of its structures are around.
    pub fn caught_in<'t>(&'t self, frames: &'t [Frame]) -> Option<&'t Arc<Failure>> {
        told_by(frames).map_or(self.inherited.failure.as_ref(), Told::failure)
    }

    /// Whether `$error` tells of a success.
    pub fn is_after_success(&self) -> bool {
        told_by(&self.frames).map_or(self.inherited.succeeded, |told| matches!(told, Told::Success))
    }

    /// The failure that is being handled, and can be passed on. At a prompt `$error` tells of
    /// one that is over.
    pub fn handled(&self) -> Option<&Arc<Failure>> {
        let inherited = self.inherited.failure.as_ref().filter(|_| self.parent.is_some());
        told_by(&self.frames).map_or(inherited, Told::failure)
    }

    /// The scope that it began in.
    pub fn base_scope(&self) -> ScopeId {
        let outermost = self.frames.iter().find_map(|frame| match &frame.kind {
            FrameKind::Try(frame) => Some(frame.outer_scope),
            FrameKind::Finally(frame) => Some(frame.outer_scope),
            _ => None,
        });
        outermost.unwrap_or(self.scope)
    }

    /// How deep calls are nested.
    pub fn depth(&self) -> usize {
        let innermost = self.frames.iter().rev().find_map(|frame| match &frame.kind {
            FrameKind::Call(call) => Some(call.depth),
            _ => None,
        });
        innermost.unwrap_or(self.inherited.depth)
    }

    /// What is left of it when it is over.
    pub fn residue(&mut self) -> TaskResidue {
        TaskResidue {
            locals: std::mem::take(&mut self.locals),
            variables: std::mem::take(&mut self.variables),
            args: Arc::clone(&self.args),
            directory: self.directory.clone(),
            umask: self.umask,
        }
    }
}

/// What a structure knows of what comes before it.
enum Told<'t> {
    Failure(&'t Arc<Failure>),
    Success,
}

impl<'t> Told<'t> {
    fn failure(self) -> Option<&'t Arc<Failure>> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::Success => None,
        }
    }
}

/// What the innermost structure tells that knows something.
fn told_by(frames: &[Frame]) -> Option<Told<'_>> {
    frames.iter().rev().find_map(|frame| match &frame.kind {
        FrameKind::Catch(failure) => Some(Told::Failure(failure)),
        FrameKind::Finally(frame) => {
            Some(frame.error.as_ref().map_or(Told::Success, Told::Failure))
        }
        FrameKind::Try(frame) if frame.phase == TryPhase::Condition => {
            frame.failure.as_ref().map(Told::Failure)
        }
        _ => None,
    })
}
