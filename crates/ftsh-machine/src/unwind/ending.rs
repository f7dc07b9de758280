//! Failures on their way out, and how tasks end.

use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::effect::{Directory, Umask};
use crate::outcome::{Failure, FailureKind};
use crate::remote::packed::Again;
use crate::tasks::trace::Step;
use crate::values::variables::{Change, Changes, Variables};
use ftsh_syntax::ast::Name;

/// A failure on its way out.
#[derive(Clone, Debug)]
pub struct Thrown {
    /// The failure.
    pub failure: Arc<Failure>,
    /// What becomes of the `try` around it.
    pub retry: Retry,
    /// What the log has of it.
    pub logged: Logged,
}

/// What the log has of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    /// Nothing.
    Not,
    /// That it happened, where something might contain it.
    Failure,
    /// That the run ends by it.
    End,
}

impl Logged {
    /// What the log has of a failure that it has been told.
    pub fn as_told(uncaught: bool) -> Self {
        if uncaught { Self::End } else { Self::Failure }
    }
}

/// What becomes of the innermost `try` around a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It tries again as its clauses say.
    AsUsual,
    /// It makes the same attempt again, so long after the failure at the earliest.
    Deferred(Duration),
    /// It doesn't try again.
    Never,
    /// Nobody reads any more what a stage of a pipeline, or the script, writes: the `try` is left like all
    /// else in the stage or the script.
    Unread,
}

impl From<Again> for Retry {
    fn from(again: Again) -> Self {
        match again {
            Again::AsUsual => Self::AsUsual,
            Again::Deferred(by) => Self::Deferred(by),
            Again::Never => Self::Never,
        }
    }
}

impl Retry {
    /// Whether no `forany` or question contains such a failure, but a `try` if anything does.
    pub fn is_for_the_try(self) -> bool {
        self != Self::AsUsual
    }
}

/// How a task ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// At its end.
    Succeeded,
    /// By `exit`.
    Exited(u8),
    /// By a failure.
    Failed(Thrown),
}

impl Ending {
    /// The kind and the code of its failure, if it is one.
    pub fn failure(&self) -> Option<(FailureKind, i32)> {
        match self {
            Self::Succeeded => None,
            Self::Exited(code) => Some((FailureKind::Exit, i32::from(*code))),
            Self::Failed(thrown) => Some((thrown.failure.kind, thrown.failure.code)),
        }
    }
}

impl Ending {
    /// Whether it is that of a stage which may well stop early: nobody read any more what it wrote.
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Failed(Thrown { retry: Retry::Unread, .. }))
    }
}

/// A stage of a pipeline that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// What it has made of variables.
    pub changes: Changes,
}

/// What a task that has ended leaves to the one that waits for it.
#[derive(Debug)]
pub struct TaskResidue {
    /// What it has made `local` to a call around all of it, and what it had made of that before.
    pub locals: Vec<(Name, Option<Change>)>,
    /// Its variables.
    pub variables: Variables,
    /// Its arguments.
    pub args: Arc<Vec<BString>>,
    /// Its directory.
    pub directory: Directory,
    /// What its files are made without.
    pub umask: Umask,
}

impl Thrown {
    /// Whether it answers a question with no.
    pub fn is_no(&self) -> bool {
        matches!(self.failure.kind, FailureKind::Exit | FailureKind::Failure)
    }

    /// Begins the trace of a failure that was just made with a step.
    #[must_use]
    pub fn inside(mut self, step: Option<Step>) -> Self {
        let failure = Arc::make_mut(&mut self.failure);
        failure.trace.extend(step);
        self
    }

    /// Says how long the command ran; right after the failure was made.
    #[must_use]
    pub fn after(mut self, elapsed: Duration) -> Self {
        Arc::make_mut(&mut self.failure).elapsed = Some(elapsed);
        self
    }
}
