//! Structures that a task is executing, as plain data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::atomic::transaction::{Dropped, Transaction};
use crate::commands::opening::Targets;
use crate::commands::table::IoTable;
use crate::durations::limit::UsualLimit;
use crate::effect::{ScopeId, SpoolId, TaskId};
use crate::forall::gate::ResourceGate;
use crate::forany::state::Hedge;
use crate::grouped_output::buffered::OutputBuffers;
use crate::grouped_output::relay::state::OutputRelay;
use crate::outcome::{BranchResults, Failure};
use crate::pipelines::tally::Tally;
use crate::program::code::{Address, FinallyCode, Loop, Program, TryCode};
use crate::remote::remote_branch::{RemoteFrame, RemoteTarget};
use crate::tasks::directory::WorkingDirectory;
use crate::tasks::timer::TimerKey;
use crate::time::{Deadline, Time};
use crate::tries::futile::FutileFailures;
use crate::unwind::continuation::Continuation;
use crate::unwind::ending::EndedStage;
use crate::values::items::Items;
use crate::values::value::{ResourceHandle, Value};
use crate::values::variables::SavedVariable;
use ftsh_syntax::ast::{AcceptedStatuses, Name, Question};
use ftsh_syntax::backoff::{Backoff, Policy};
use ftsh_syntax::clauses::{ForAllClauses, TryClauses};
use ftsh_syntax::signal::Signal;

/// Structure entered and not yet left.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Height of the task's stack of values at the beginning of the structure.
    pub height: usize,
    /// Kind of the structure.
    pub kind: FrameKind,
}

/// Kinds of structures.
#[derive(Debug)]
pub(crate) enum FrameKind {
    /// The head of a `try`.
    TryHead(Arc<TryCode>),
    /// A `try`, up to its end or its `catch`.
    Try(Box<TryFrame>),
    /// A `catch` block, with the failure caught.
    Catch(Arc<Failure>),
    /// Around a `try` whose `finally` group has not yet run.
    Guard(Box<GuardFrame>),
    /// A `finally` group.
    Finally(Box<FinallyFrame>),
    /// A `for`.
    For(Items),
    /// A `forany`.
    ForAny(Box<ForAnyFrame>),
    /// Branches or stages for which the task waits.
    Join(Box<JoinFrame>),
    /// The whole of a remote branch.
    Remote(Box<RemoteFrame>),
    /// A function or a sourced file.
    Call(Box<CallFrame>),
    /// Redirections around a block or a call.
    Redirected {
        /// Descriptors to restore at the end.
        before: IoTable,
        /// True if the redirections end with the call inside.
        around_call: bool,
    },
    /// Targets of the output of an atomic `try`, around its attempts, its `catch` and its
    /// `finally`.
    Targets(Arc<Targets>),
    /// An attempt of an atomic `try`, or a redirection to files inside such an attempt.
    Transaction(Box<Transaction>),
    /// A command used as a condition, with the question and the address for the answer `false`.
    Probe(Question, Address),
    /// A command that succeeds also with these statuses, with the address after it.
    Accept(AcceptedStatuses, Address),
    /// A command with `keep`.
    Keep {
        /// Scope of the command.
        scope: ScopeId,
        /// Scope around the command.
        outer_scope: ScopeId,
    },
    /// A call in a word.
    WordCall(Box<WordCallFrame>),
}

impl FrameKind {
    /// Returns true for a structure that handles failures instead of passing them on. `accept`
    /// handles only some failures, and counts as no such structure.
    pub(crate) fn is_barrier(&self) -> bool {
        match self {
            Self::Probe(..)
            | Self::WordCall(_)
            | Self::Try(_)
            | Self::TryHead(_)
            | Self::ForAny(_)
            | Self::Catch(_)
            | Self::Finally(_) => true,
            Self::For(_)
            | Self::Guard(_)
            | Self::Join(_)
            | Self::Remote(_)
            | Self::Call(_)
            | Self::Redirected { .. }
            | Self::Targets(_)
            | Self::Accept(..)
            | Self::Keep { .. }
            | Self::Transaction(_) => false,
        }
    }
}

/// A call in a word.
#[derive(Debug)]
pub(crate) struct WordCallFrame {
    /// Offset of the call in the source.
    pub start: usize,
    /// Address of the instruction with the word.
    pub return_to: Address,
    /// Offsets and values of the calls already evaluated for the instruction.
    pub values: Vec<(usize, Value)>,
}

/// A `try`.
#[derive(Debug)]
pub(crate) struct TryFrame {
    /// Id of the `try`, for its timers.
    pub id: u64,
    /// Code of the `try`.
    pub code: Arc<TryCode>,
    /// Current phase.
    pub phase: TryPhase,
    /// Beginning of the `try`.
    pub started: Time,
    /// Own deadline, or an enclosing one if earlier; [`Deadline::NONE`] without any.
    pub deadline: Deadline,
    /// Timer of the deadline, if the deadline is the frame's own.
    pub deadline_timer: Option<TimerKey>,
    /// Directories of `atomic in`; absolute and without links once the first attempt has begun.
    pub directories: Vec<BString>,
    /// Clauses of the `try`.
    pub clauses: TryClauses<Duration, u64, u64, Policy, Signal>,
    /// State of `each usual`. The clause `each` has the limit of the current attempt.
    pub usual: Option<Box<UsualLimit>>,
    /// Number of the current attempt, from 1.
    pub attempt: u64,
    /// Beginning of the current attempt.
    pub attempt_started: Time,
    /// Deadline of the current attempt: `deadline`, or the limit by `each`.
    pub attempt_deadline: Deadline,
    /// Timer of the limit by `each`.
    pub attempt_timer: Option<TimerKey>,
    /// State of the backoff policy.
    pub backoff: Backoff,
    /// Moment of the first failure.
    pub first_failed: Option<Time>,
    /// True if the current attempt is the last before the deadline.
    pub last: bool,
    /// True if the previous attempt was deferred, so that the next attempt reuses its number.
    pub deferred: bool,
    /// Set when a long delay was logged at the level of failures.
    pub delay_logged: bool,
    /// Scope of the current attempt or condition.
    pub scope: ScopeId,
    /// Failures that time does not mend.
    pub futile: FutileFailures,
    /// Directory in which the `try` began. Each attempt begins there.
    pub began_in: WorkingDirectory,
    /// Scope around the `try`.
    pub outer_scope: ScopeId,
    /// Failure of the last attempt.
    pub failure: Option<Arc<Failure>>,
    /// True if the standard input was open at the last check; `None` without a check.
    pub input: Option<bool>,
    /// Standard input of all attempts, for an atomic `try`.
    pub replay: Option<ResourceHandle<SpoolId>>,
    /// Output of the attempt that is failing.
    pub dropped: Option<Dropped>,
}

/// Phases of a `try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TryPhase {
    /// Waiting for a turn in a channel.
    Entering,
    /// Executing the body.
    Attempt,
    /// Evaluating the condition of `while`.
    Condition,
    /// Waiting before the next attempt.
    Delay,
}

impl TryPhase {
    /// Returns true if the phase has its own scope.
    pub(crate) fn is_scoped(self) -> bool {
        match self {
            Self::Attempt | Self::Condition => true,
            Self::Entering | Self::Delay => false,
        }
    }
}

/// A `try` with a `finally` group.
#[derive(Debug)]
pub(crate) struct GuardFrame {
    /// Directory in which the `try` began.
    pub began_in: WorkingDirectory,
    /// Code of the group.
    pub code: Arc<FinallyCode>,
    /// Failure caught by the `catch`, if any.
    pub caught: Option<Arc<Failure>>,
    /// Results of the branches of an inner `forall` that was cut short.
    pub branches: Option<Arc<BranchResults>>,
}

/// A running `finally` group.
#[derive(Debug)]
pub(crate) struct FinallyFrame {
    /// Directory in which the `try` ended.
    pub ended_in: WorkingDirectory,
    /// Code of the group.
    pub code: Arc<FinallyCode>,
    /// Failure shown by `$error`; `None` after success.
    pub error: Option<Arc<Failure>>,
    /// Continuation after the group.
    pub then: Continuation,
    /// Deadline of the group, if set by the cancellation of the task.
    pub limit: Option<Deadline>,
    /// Set when a cut waits for the end of the group.
    pub spared: bool,
    /// Set when the group was cut short while output of branches is still to be written.
    pub cut: bool,
    /// Scope of the group.
    pub scope: ScopeId,
    /// Scope around the group.
    pub outer_scope: ScopeId,
}

/// A `forany`.
#[derive(Debug)]
pub(crate) struct ForAnyFrame {
    /// Code of the loop.
    pub code: Arc<Loop>,
    /// List of the loop.
    pub items: Items,
    /// Number of items tried before the current one.
    pub tried: u64,
}

impl ForAnyFrame {
    /// Returns true if no item follows the current one.
    pub(crate) fn is_last(&self) -> bool {
        self.tried.saturating_add(1) >= self.items.len()
    }
}

/// A call.
#[derive(Debug)]
pub(crate) struct CallFrame {
    /// Name of the function; `None` for a sourced file.
    pub function: Option<Name>,
    /// True if the caller needs a value.
    pub wants_value: bool,
    /// Program of the caller.
    pub program: Arc<Program>,
    /// Address at which the caller continues.
    pub return_to: Address,
    /// Arguments of the caller.
    pub args: Arc<Vec<BString>>,
    /// Previous values of the variables set for this call only.
    pub restore: Vec<SavedVariable>,
    /// Beginning of the call.
    pub started: Time,
    /// Command as written, for the log; `None` in an expression, where the value is logged.
    pub command: Option<String>,
    /// Depth of nested calls, including this call.
    pub depth: usize,
}

/// Branches or stages running in parallel.
#[derive(Debug)]
pub(crate) struct JoinFrame {
    /// Address after the structure.
    pub end: Address,
    /// Tasks still running.
    pub running: BTreeSet<TaskId>,
    /// Kind of the structure, with its state.
    pub kind: JoinKind,
}

/// Kinds of parallel tasks.
#[derive(Debug)]
pub(crate) enum JoinKind {
    /// The branches of a `forall`.
    Branches {
        /// Code of the loop.
        code: Arc<Loop>,
        /// Clauses of the loop.
        clauses: Box<ForAllClauses<u64, BString>>,
        /// Descriptors of every branch.
        io: IoTable,
        /// Results of the branches.
        tally: Box<Tally>,
        /// Buffered output of the branches, if grouped.
        outputs: Option<Box<OutputBuffers>>,
        /// Relay of the branches' output, if tagged.
        relay: Option<OutputRelay>,
        /// Engine of the branches, if remote.
        elsewhere: Option<Arc<RemoteTarget>>,
        /// Resources that a further branch needs.
        gate: Option<Box<ResourceGate>>,
    },
    /// The alternatives of a hedged `forany`.
    Hedge(Box<Hedge>),
    /// The stages of a pipeline, with the endings of the finished stages.
    Stages(Vec<Option<EndedStage>>),
}
