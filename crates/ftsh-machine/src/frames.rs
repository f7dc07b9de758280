//! Structures that a task is executing, as plain data.

use std::sync::Arc;

use bstr::BString;

use crate::attempts::{TryFrame, WorkingDirectory};
use crate::branches::JoinFrame;
use crate::effect::ScopeId;
use crate::elsewhere::RemoteFrame;
use crate::endings::{Continuation, LastAttempt};
use crate::invocation::{IoTable, Targets};
use crate::items::Items;
use crate::outcome::{BranchResults, Failure};
use crate::program::{Address, FinallyCode, Loop, Program, TryCode};
use crate::time::{Deadline, Time};
use crate::transactions::Transaction;
use crate::values::Value;
use crate::variables::SavedVariable;
use ftsh_syntax::ast::{AcceptedStatuses, Name, Question};

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
    /// A `catch` block, with the failure caught and the last attempt of its `try`.
    Catch(Arc<Failure>, Option<LastAttempt>),
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
    /// An `in`, with the directory to return to.
    In(Box<WorkingDirectory>),
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
            | Self::Catch(..)
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
            | Self::In(_)
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

/// A `try` with a `finally` group.
#[derive(Debug)]
pub(crate) struct GuardFrame {
    /// Directory in which the `try` began.
    pub began_in: WorkingDirectory,
    /// Code of the group.
    pub code: Arc<FinallyCode>,
    /// Failure caught by the `catch`, if any.
    pub caught: Option<Arc<Failure>>,
    /// Last attempt, once the attempts have ended.
    pub last: Option<LastAttempt>,
    /// Results of the branches of the last `forall` inside that ended.
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
    /// Results of the branches of the last `forall` before the group.
    pub branches: Option<Arc<BranchResults>>,
    /// Last attempt, if one was made.
    pub last: Option<LastAttempt>,
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
