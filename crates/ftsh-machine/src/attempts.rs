//! A `try` with its attempts, as plain data.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::dropped::Dropped;
use crate::durations::execution::LimitedExecution;
use crate::durations::learned::LimitKey;
use crate::effect::{BufferId, Directory, OperationId, PassId, ScopeId, SpoolId, Watch};
use crate::outcome::{Failure, FailureKind};
use crate::program::TryCode;
use crate::resources::ResourceHandle;
use crate::scheduler::TimerKey;
use crate::time::{Deadline, Time};
use crate::variables::{Variable, Variables};
use ftsh_syntax::ast::Name;
use ftsh_syntax::backoff::{Backoff, Policy};
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::signal::Signal;
use ftsh_syntax::slug::Slug;

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
    pub dropped: Dropped,
    /// Standard output of the last failed attempt, until it is written or another attempt follows.
    pub held: Option<ResourceHandle<BufferId>>,
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

impl TryFrame {
    /// Violated invariant: the innermost structure is a `try`.
    pub(crate) const MISSING: &str = "the innermost structure is no `try`";

    /// Returns the tightest deadline around the current phase of this `try`.
    pub(crate) fn present_deadline(&self) -> Deadline {
        match self.phase {
            TryPhase::Attempt => self.attempt_deadline,
            TryPhase::Entering | TryPhase::Condition | TryPhase::Delay => self.deadline,
        }
    }

    /// Returns the deadline that the clauses of this `try` set for its current phase.
    pub(crate) fn own_limit(&self) -> Deadline {
        let limit = Deadline::of_limit(self.started, self.clauses.time);
        let each = self.clauses.each.filter(|_| self.phase == TryPhase::Attempt);
        limit.min(Deadline::of_limit(self.attempt_started, each))
    }
}

impl TryFrame {
    /// Returns the number of the next attempt.
    pub(crate) fn next_attempt(&self) -> u64 {
        self.attempt + u64::from(!self.deferred)
    }
}

impl TryFrame {
    /// Returns the conditions that the clauses set.
    pub(crate) fn conditions(&self) -> Watch {
        Watch { stalled: self.clauses.stalled, memory: self.clauses.memory }
    }
}

/// Number of attempts in a row that may fail in the same way at one place.
const MAX_FUTILE: u32 = 3;

/// Addition to the message of a failure that ends a `try`.
const GIVEN_UP: &str = "; three attempts failed in this way, so no other follows";

/// Failures of the latest attempts of a `try` that time does not mend.
#[derive(Debug, Default)]
pub(crate) struct FutileFailures {
    /// Last failure, if time does not mend it.
    last: Option<Arc<Failure>>,
    /// Number of such failures in a row, at the place of the last one.
    count: u32,
}

impl FutileFailures {
    /// Records the failure of an attempt.
    pub(crate) fn record(&mut self, failure: &Arc<Failure>) {
        if !is_futile(failure) {
            *self = Self::default();
            return;
        }
        let is_same = self.last.as_ref().is_some_and(|last| is_same_place(last, failure));
        self.count = if is_same { self.count + 1 } else { 1 };
        self.last = Some(Arc::clone(failure));
    }

    /// Returns true if another attempt is not worth a delay.
    pub(crate) fn are_enough(&self) -> bool {
        self.count >= MAX_FUTILE
    }
}

/// Adds the reason for the end of a `try` to its failure. The enclosing tries add nothing.
pub(crate) fn give_up(failure: &mut Arc<Failure>) {
    if !failure.message.ends_with(GIVEN_UP) {
        Arc::make_mut(failure).message.push_str(GIVEN_UP);
    }
}

/// Returns true for an unset variable, an undefined function, a literal operand that is no number,
/// and a program name without `/` that no directory of `PATH` holds.
fn is_futile(failure: &Failure) -> bool {
    match failure.slug {
        Slug::UnsetVariable | Slug::UnknownFunction | Slug::TextOperand => true,
        Slug::NotFound => {
            let name = failure.command.split(' ').next().unwrap_or_default();
            failure.kind == FailureKind::NotFound && !name.contains('/')
        }
        _ => false,
    }
}

/// Returns true for failures of the same instruction: the message names the word that fails.
fn is_same_place(one: &Failure, other: &Failure) -> bool {
    (one.file(), one.line, &one.message) == (other.file(), other.line, &other.message)
}

/// Attempt waiting for a channel.
#[derive(Debug)]
pub(crate) struct Entering {
    /// Id of the request.
    pub operation: OperationId,
    /// Id of the pass, once admitted.
    pub pass: PassId,
    /// Name of the channel.
    pub channel: Name,
    /// True if the attempt has to wait.
    pub is_queued: bool,
}

/// The learned limit of a `try` in one execution.
#[derive(Debug)]
pub(crate) struct UsualLimit {
    /// Key in the history of the file.
    pub key: LimitKey,
    /// Limits of the attempts.
    pub execution: LimitedExecution,
    /// Number of an attempt that the run's previous shell began. Its duration is unknown.
    pub resumed_attempt: Option<u64>,
}

/// Variables that `cd` sets.
const NAMES: [&str; 2] = ["PWD", "OLDPWD"];

/// Directory of a task, to return to.
#[derive(Clone, Debug)]
pub(crate) struct WorkingDirectory {
    /// The directory; `None` for the shell's own.
    directory: Directory,
    /// Variables that `cd` sets.
    variables: [Option<Variable>; 2],
}

impl WorkingDirectory {
    /// Records a directory with the variables that `cd` sets.
    pub(crate) fn of(directory: &Directory, variables: &Variables) -> Self {
        let variables = NAMES.map(|name| variables.get(name).cloned());
        Self { directory: directory.clone(), variables }
    }

    /// Returns to the directory. Variables stay unless the directory has changed.
    pub(crate) fn restore(&self, directory: &mut Directory, variables: &mut Variables) {
        if *directory != self.directory {
            self.restore_all(directory, variables);
        }
    }

    /// Returns to the directory and to the variables.
    pub(crate) fn restore_all(&self, directory: &mut Directory, variables: &mut Variables) {
        directory.clone_from(&self.directory);
        for (name, value) in NAMES.into_iter().zip(&self.variables) {
            variables.put(&name.into(), value.clone());
        }
    }
}
