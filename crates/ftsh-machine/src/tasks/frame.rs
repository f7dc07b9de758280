//! What a task is in the middle of, as plain data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::atomic::transaction::{Dropped, Transaction};
use crate::commands::opening::Targets;
use crate::commands::table::Table;
use crate::effect::{ReplayId, ScopeId, TaskId};
use crate::forany::hedge::Hedge;
use crate::grouped_output::held::Outputs;
use crate::grouped_output::relay::Relay;
use crate::outcome::{Branches, Failure};
use crate::pipelines::tally::Tally;
use crate::program::code::{Address, FinallyCode, Loop, Program, TryCode};
use crate::remote::remote_branch::{Elsewhere, RemoteFrame};
use crate::tasks::timer::TimerKey;
use crate::time::Time;
use crate::unwind::ending::Ended;
use crate::unwind::leaving::Leaving;
use crate::values::items::Items;
use crate::values::value::Handle;
use crate::values::variables::Kept;
use ftsh_syntax::ast::Name;
use ftsh_syntax::backoff::{Backoff, Policy};
use ftsh_syntax::clauses::{ForAllClauses, TryClauses};

/// A structure, entered and not yet left.
#[derive(Debug)]
pub struct Frame {
    /// How many values were on the task's stack when it was entered.
    pub height: usize,
    /// Which structure.
    pub kind: FrameKind,
}

/// The structures.
#[derive(Debug)]
pub enum FrameKind {
    /// The head of a `try`.
    TryHead(Arc<TryCode>),
    /// A `try`, up to its end or its `catch`.
    Try(Box<TryFrame>),
    /// A `catch` block, and what it caught.
    Catch(Arc<Failure>),
    /// Around a `try` with a `finally` group that is still to be run.
    Guard(Box<GuardFrame>),
    /// A `finally` group.
    Finally(Box<FinallyFrame>),
    /// A `for`.
    For(Items),
    /// A `forany`.
    ForAny(Box<ForAnyFrame>),
    /// Branches or stages that the task waits for.
    Join(Box<JoinFrame>),
    /// All of a branch that runs elsewhere.
    Remote(Box<RemoteFrame>),
    /// A function or a sourced file.
    Call(Box<CallFrame>),
    /// Redirections around a block or a call.
    Redirected {
        /// The descriptors to go back to.
        before: Table,
        /// Whether they end with the call inside.
        around_call: bool,
    },
    /// Where the output of an atomic `try` is to go, around its attempts, its `catch` and its `finally`.
    Targets(Arc<Targets>),
    /// An attempt of an atomic `try`, or what is written to files in one.
    Transaction(Box<Transaction>),
    /// A command that is a question; where to go if the answer is no.
    Question(Address),
}

/// A `try`.
#[derive(Debug)]
pub struct TryFrame {
    /// Tells this `try` from others in timers.
    pub id: u64,
    /// Its code.
    pub code: Arc<TryCode>,
    /// What it is doing.
    pub phase: TryPhase,
    /// When it began.
    pub started: Time,
    /// Its own limit, or an enclosing one if that is earlier; never, if there is none.
    pub deadline: Time,
    /// Cuts it short, if the limit is its own.
    pub deadline_timer: Option<TimerKey>,
    /// Its clauses.
    pub clauses: TryClauses<Duration, u64, Policy>,
    /// The present attempt, from 1.
    pub attempt: u64,
    /// When the present attempt began.
    pub attempt_started: Time,
    /// When the present attempt must end: `deadline`, or the limit by `each`.
    pub attempt_deadline: Time,
    /// Cuts the present attempt short.
    pub attempt_timer: Option<TimerKey>,
    /// The delays.
    pub backoff: Backoff,
    /// When the first attempt failed.
    pub first_failed: Option<Time>,
    /// Whether the present attempt is the one before the deadline.
    pub last: bool,
    /// Whether the attempt before was deferred, so that the next one has its number.
    pub deferred: bool,
    /// Whether those who see no more than failures know that it may wait for long.
    pub told_of_delay: bool,
    /// The scope of the present attempt or condition.
    pub scope: ScopeId,
    /// The scope around the `try`.
    pub outer_scope: ScopeId,
    /// How the last attempt failed.
    pub failure: Option<Arc<Failure>>,
    /// Whether its standard input was still there, if that was asked.
    pub input: Option<bool>,
    /// What all attempts read, if it is atomic.
    pub replay: Option<Handle<ReplayId>>,
    /// What the attempt that is failing has written.
    pub dropped: Option<Dropped>,
}

/// What a `try` is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryPhase {
    /// Waiting for its turn in a channel.
    Entering,
    /// Its body.
    Attempt,
    /// The condition of its `while`.
    Condition,
    /// Waiting before the next attempt.
    Delay,
}

impl TryPhase {
    /// Whether it has a scope of its own.
    pub fn is_scoped(self) -> bool {
        match self {
            Self::Attempt | Self::Condition => true,
            Self::Entering | Self::Delay => false,
        }
    }
}

/// A `try` with a `finally` group.
#[derive(Debug)]
pub struct GuardFrame {
    /// The group.
    pub code: Arc<FinallyCode>,
    /// What the `catch` has caught, if it came to that.
    pub caught: Option<Arc<Failure>>,
    /// What became of the branches of a `forall` inside that was cut.
    pub branches: Option<Arc<Branches>>,
}

/// A `finally` group that runs.
#[derive(Debug)]
pub struct FinallyFrame {
    /// The group.
    pub code: Arc<FinallyCode>,
    /// What `$error` tells; nothing after success.
    pub error: Option<Arc<Failure>>,
    /// What comes after it.
    pub then: Leaving,
    /// When it must end, if what cancelled the task says so.
    pub limit: Option<Time>,
    /// Set when a cut waits for the end of the group.
    pub spared: bool,
    /// Set when the group was cut short, and output of branches in it is still to be written.
    pub cut: bool,
    /// Its own scope.
    pub scope: ScopeId,
    /// The scope around it.
    pub outer_scope: ScopeId,
}

/// A `forany`.
#[derive(Debug)]
pub struct ForAnyFrame {
    /// Its code.
    pub code: Arc<Loop>,
    /// The list.
    pub items: Items,
    /// How many items were tried before the present one.
    pub tried: u64,
}

impl ForAnyFrame {
    /// Whether no item is left after the present one.
    pub fn is_last(&self) -> bool {
        self.tried.saturating_add(1) >= self.items.len()
    }
}

/// A call.
#[derive(Debug)]
pub struct CallFrame {
    /// The function; none for a sourced file.
    pub function: Option<Name>,
    /// Whether the caller wants a value.
    pub wants_value: bool,
    /// The caller's program.
    pub program: Arc<Program>,
    /// Where the caller goes on.
    pub return_to: Address,
    /// The caller's arguments.
    pub args: Arc<Vec<BString>>,
    /// Variables set for this call only, as they were.
    pub restore: Vec<Kept>,
    /// When it began.
    pub started: Time,
    /// The command as written, for the log; none in an expression, whose value is told.
    pub command: Option<String>,
    /// How many calls it is inside of, with itself.
    pub depth: usize,
}

/// Branches or stages side by side.
#[derive(Debug)]
pub struct JoinFrame {
    /// What comes after.
    pub end: Address,
    /// The tasks that have not ended.
    pub running: BTreeSet<TaskId>,
    /// Which kind, with what only that needs.
    pub kind: JoinKind,
}

/// What runs side by side.
#[derive(Debug)]
pub enum JoinKind {
    /// The branches of a `forall`.
    Branches {
        /// Its code.
        code: Arc<Loop>,
        /// Its clauses.
        clauses: ForAllClauses<u64, BString>,
        /// The descriptors of every branch.
        io: Table,
        /// What became of the branches.
        tally: Box<Tally>,
        /// What they print, if that is held.
        outputs: Option<Box<Outputs>>,
        /// What writes it on line by line, if it is tagged.
        relay: Option<Relay>,
        /// Where they run, if not here.
        elsewhere: Option<Arc<Elsewhere>>,
    },
    /// The words of a hedged `forany`.
    Hedge(Box<Hedge>),
    /// The stages of a pipeline: those that have ended.
    Stages(Vec<Option<Ended>>),
}
