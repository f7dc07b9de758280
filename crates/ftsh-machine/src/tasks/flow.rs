//! Where an instruction leads.

use crate::outcome::Outcome;
use crate::tasks::suspend::Suspend;
use crate::tasks::task::{State, Task};
use crate::unwind::ending::{Ending, Thrown};

/// Where an instruction leads.
#[derive(Debug)]
pub enum Flow {
    /// The task can go on.
    Continue,
    /// The log is told something, and then the task goes on: what is told must not change who has
    /// the next turn.
    YieldFirst,
    /// It waits.
    Wait(State),
    /// It has more branches to start.
    SpawnMore,
    /// It fails.
    Throw(Thrown),
    /// It is about to end; what it started may have to go first.
    Exiting(Ending),
    /// It ended.
    Exited(Ending),
    /// An attempt failed, or the condition did, and nothing of it is left.
    AttemptFailed(Thrown),
    /// It ends by this, which may take its siblings along.
    Failing(Ending),
    /// The run is over.
    Finish(Outcome),
}

/// An instruction's result, or what it still needs.
pub type Step = Result<Flow, Suspend>;

impl Flow {
    /// Leaves a task's state as it is.
    pub fn keep_waiting(task: &mut Task) -> Self {
        Self::Wait(std::mem::replace(&mut task.state, State::Ready))
    }
}
