//! Failures during unwinding, endings of tasks, and ways to leave a `try`.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::effect::{Directory, Umask};
use crate::outcome::{Failure, FailureKind};
use crate::program::{Address, TryCode};
use crate::record::LogRecord;
use crate::time::Time;
use crate::trace::TraceStep;
use crate::values::Value;
use crate::variables::{Change, Changes, Variables};
use ftsh_syntax::ast::{Name, Question};
use ftsh_syntax::slug::Slug;

pub(crate) use crate::outcome::Retry;

/// Failure during unwinding.
#[derive(Clone, Debug)]
pub(crate) struct Thrown {
    /// Failure as seen by scripts.
    pub failure: Arc<Failure>,
    /// Effect on the enclosing `try`.
    pub retry: Retry,
    /// Log records already written for the failure.
    pub logged: Logged,
    /// True if a condition may take the failure for an answer. False for the failure of a call in a
    /// word, and of a stage before the one that answers.
    pub answers: bool,
}

/// Log records already written for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// No record.
    Not,
    /// Record of a failure that might still be contained.
    Failure,
    /// Record of the failure that ends the run.
    End,
}

impl Logged {
    /// Returns the state after a failure was logged.
    pub(crate) fn from_uncaught(uncaught: bool) -> Self {
        if uncaught { Self::End } else { Self::Failure }
    }
}

/// End of a task.
#[derive(Clone, Debug)]
pub(crate) enum TaskEnding {
    /// Regular end.
    Succeeded,
    /// End by `exit`.
    Exited(u8),
    /// End by a failure.
    Failed(Thrown),
}

impl TaskEnding {
    /// Returns the kind and the code of the failure, if the ending is one.
    pub(crate) fn failure(&self) -> Option<(FailureKind, i32)> {
        match self {
            Self::Succeeded => None,
            Self::Exited(code) => Some((FailureKind::Exit, i32::from(*code))),
            Self::Failed(thrown) => Some((thrown.failure.kind, thrown.failure.code)),
        }
    }
}

impl TaskEnding {
    /// Returns true if a stage ended early only because its reader was gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Failed(Thrown { retry: Retry::BrokenPipe, .. }))
    }
}

/// Ended stage of a pipeline.
#[derive(Debug)]
pub(crate) struct EndedStage {
    /// End of the stage.
    pub ending: TaskEnding,
    /// Changes of variables by the stage.
    pub changes: Changes,
}

/// State returned by an ended task to its parent.
#[derive(Debug)]
pub(crate) struct TaskResidue {
    /// Variables made `local` outside the task's own calls, with the task's earlier changes to
    /// them.
    pub locals: Vec<(Name, Option<Change>)>,
    /// Variables of the task.
    pub variables: Variables,
    /// Arguments of the task.
    pub args: Arc<Vec<BString>>,
    /// Directory of the task.
    pub directory: Directory,
    /// Umask for new files.
    pub umask: Umask,
}

impl Thrown {
    /// Returns true if a condition treats the failure as the answer `false`.
    pub(crate) fn is_negative_answer(&self, question: Question) -> bool {
        let is_status =
            matches!(self.failure.kind, FailureKind::Exit | FailureKind::Failure | FailureKind::Io);
        let is_no = match question {
            Question::Bare | Question::Succeeds => true,
            Question::Yes => self.failure.code == 1,
            Question::Output => false,
        };
        self.answers && is_status && is_no
    }

    /// Adds a first step to the trace of a new failure.
    #[must_use]
    pub(crate) fn inside(mut self, step: Option<TraceStep>) -> Self {
        let failure = Arc::make_mut(&mut self.failure);
        failure.trace.extend(step);
        self
    }

    /// Sets the slug of a new failure.
    #[must_use]
    pub(crate) fn named(mut self, slug: Slug) -> Self {
        Arc::make_mut(&mut self.failure).slug = slug;
        self
    }

    /// Sets the name of the system's error that caused a new failure.
    #[must_use]
    pub(crate) fn caused_by(mut self, errno: Option<String>) -> Self {
        Arc::make_mut(&mut self.failure).errno = errno;
        self
    }

    /// Sets the duration of the command of a new failure.
    #[must_use]
    pub(crate) fn after(mut self, elapsed: Duration) -> Self {
        Arc::make_mut(&mut self.failure).elapsed = Some(elapsed);
        self
    }
}

impl TaskEnding {
    /// Returns the reason for ending the other branches after the ending.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Succeeded => "enough branches succeeded",
            Self::Failed(Thrown { retry: Retry::BrokenPipe, .. }) => {
                "the reader of their output is gone"
            }
            Self::Exited(_) | Self::Failed(_) => "another branch failed",
        }
    }
}

/// Last attempt of a `try` that has ended, for its `catch` and its `finally`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastAttempt {
    /// Number, from 1; 0 if a clause of the `try` had no value.
    pub number: u64,
    /// Beginning of the `try`.
    pub started: Time,
    /// True for a `limit`, which counts only outside of tries.
    pub is_limit: bool,
}

/// A `try` without further attempts.
#[derive(Debug)]
pub(crate) struct EndedTry {
    /// Code of the `try`.
    pub code: Arc<TryCode>,
    /// Last attempt, if one was made.
    pub last: Option<LastAttempt>,
    /// Record of the end, for the log.
    pub record: Option<LogRecord>,
    /// Failure of the last attempt.
    pub thrown: Thrown,
}

/// Continuation after a `finally` group, or after a commit.
#[derive(Debug)]
pub(crate) enum Continuation {
    /// Jump to an address.
    To(Address),
    /// Continue `break` or `continue`.
    JumpOut {
        /// Number of frames still to leave.
        frames: usize,
        /// Target address.
        to: Address,
    },
    /// Continue `return`, with its value.
    Return(Option<Value>),
    /// End the task.
    End(TaskEnding),
    /// Continue a failure.
    Throw(Thrown),
    /// End a `try` by a failure.
    EndTry(Box<EndedTry>),
    /// Continue a cancellation.
    Canceled,
}

impl Continuation {
    /// Returns true if a failure is in progress, so that a failure of the group is secondary. A
    /// stage whose reader is gone has not failed.
    pub(crate) fn is_failing(&self) -> bool {
        match self {
            Self::To(_) | Self::JumpOut { .. } | Self::Return(_) => false,
            Self::End(ending) => {
                !matches!(ending, TaskEnding::Succeeded) && !ending.is_broken_pipe()
            }
            Self::Throw(thrown) => thrown.retry != Retry::BrokenPipe,
            Self::EndTry(_) | Self::Canceled => true,
        }
    }
}
