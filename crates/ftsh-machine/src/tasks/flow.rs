//! Control flow after an instruction.

use crate::outcome::Outcome;
use crate::tasks::suspend::Suspend;
use crate::tasks::task::{Task, TaskState};
use crate::unwind::ending::{TaskEnding, Thrown};

/// Control flow after an instruction.
#[derive(Debug)]
pub(crate) enum Flow {
    /// The task continues.
    Continue,
    /// The task continues after its log record is written. The order of turns stays the same.
    YieldFirst,
    /// The task waits.
    Wait(TaskState),
    /// The task has more branches to start.
    SpawnMore,
    /// The task fails.
    Throw(Thrown),
    /// The task ends, after its processes have ended.
    Exiting(TaskEnding),
    /// The task ended.
    Exited(TaskEnding),
    /// An attempt or its condition failed, and nothing of the attempt is left.
    AttemptFailed(Thrown),
    /// The task ends with a failure or `exit`, which may end its siblings.
    Failing(TaskEnding),
    /// The run is over.
    Finish(Outcome),
}

/// Result of an instruction, or the information that the instruction still needs.
pub(crate) type Step = Result<Flow, Suspend>;

impl Flow {
    /// Leaves a task's state as it is.
    pub(crate) fn keep_waiting(task: &mut Task) -> Self {
        Self::Wait(std::mem::replace(&mut task.state, TaskState::Ready))
    }
}
