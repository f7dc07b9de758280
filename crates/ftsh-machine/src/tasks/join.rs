//! Parallel tasks: the branches of a `forall` or a hedged `forany`, and the stages of a pipeline.

use std::num::NonZeroU32;

use crate::effect::TaskId;
use crate::grouped_output::buffered::OutputBuffers;
use crate::grouped_output::relay::state::OutputRelay;
use crate::outcome::{FailureKind, KindAndCode};
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use crate::tasks::task::{AfterEmptied, Task, TaskState};
use crate::tasks::timer::TimerKey;
use crate::unwind::ending::{Retry, TaskEnding, Thrown};

/// Violated invariant: the innermost structure waits for the task that ends.
pub(crate) const NO_JOIN: &str = "the innermost structure has no tasks";

/// Returns the failure of a branch that is cut short. A branch that only waits for its processes to
/// end keeps its ending.
pub(crate) fn cut_short(branch: &Task, why: KindAndCode) -> Option<KindAndCode> {
    match &branch.state {
        TaskState::Emptying(_, AfterEmptied::End(ending)) => ending.failure(),
        _ => Some(why),
    }
}

/// Returns the tasks for which a task waits.
pub(crate) fn children(task: &Task) -> Vec<TaskId> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => join.running.iter().copied().collect(),
        _ => Vec::new(),
    }
}

impl JoinFrame {
    /// Returns true if neither a task nor output is awaited.
    pub(crate) fn is_done(&self) -> bool {
        self.running.is_empty()
            && !self.kind.awaits_words()
            && !self.kind.awaits_resources()
            && self.kind.outputs().is_none_or(OutputBuffers::is_done)
            && self.kind.relay().is_none_or(OutputRelay::is_done)
    }

    /// Returns the timer armed for the structure.
    pub(crate) fn timer(&self) -> Option<TimerKey> {
        match &self.kind {
            JoinKind::Hedge(hedge) => hedge.timer,
            JoinKind::Branches { gate, .. } => gate.as_ref().and_then(|gate| gate.timer()),
            JoinKind::Stages(_) => None,
        }
    }
}

impl JoinKind {
    /// Returns the relay of tagged output.
    pub(crate) fn relay(&self) -> Option<&OutputRelay> {
        match self {
            Self::Branches { relay, .. } => relay.as_ref(),
            Self::Hedge(_) | Self::Stages(_) => None,
        }
    }

    /// Takes the number of a new branch of a `forall`.
    pub(crate) fn take_slot(&mut self) -> Option<NonZeroU32> {
        match self {
            Self::Branches { tally, .. } => Some(tally.take_slot()),
            Self::Hedge(_) | Self::Stages(_) => None,
        }
    }

    /// True if more words may come from an input.
    pub(crate) fn awaits_words(&self) -> bool {
        match self {
            Self::Branches { tally, .. } => tally.awaits_words(),
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// Returns the number of requests, for the resources of the machine or the next words of an
    /// input, that the driver has not answered.
    pub(crate) fn requests(&self) -> usize {
        match self {
            Self::Branches { gate, tally, .. } => {
                let asks = gate.as_ref().is_some_and(|gate| gate.is_asked());
                usize::from(asks) + usize::from(tally.asks_for_words())
            }
            Self::Hedge(_) | Self::Stages(_) => 0,
        }
    }

    /// Returns true if the next branch waits for resources of the machine.
    pub(crate) fn awaits_resources(&self) -> bool {
        match self {
            Self::Branches { gate, .. } => gate.as_ref().is_some_and(|gate| gate.is_awaited()),
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// Returns true if each branch's output is written as a group.
    pub(crate) fn is_grouped(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.is_some(),
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// Returns true if ended branches have unwritten output, which must be written even after a
    /// cancellation.
    pub(crate) fn has_unwritten_output(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.as_ref().is_some_and(|it| it.is_unwritten()),
            // A canceled alternative has not won, so its output is discarded.
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// Returns the buffered output of the tasks.
    pub(crate) fn outputs(&self) -> Option<&OutputBuffers> {
        match self {
            Self::Branches { outputs, .. } => outputs.as_deref(),
            Self::Hedge(hedge) => hedge.outputs.as_deref(),
            Self::Stages(_) => None,
        }
    }
}

/// Makes a task start more branches, unless its turn to do so is already pending.
pub(crate) fn fork_again(task: &Task) -> Flow {
    match task.state {
        TaskState::Forking => Flow::Wait(TaskState::Forking),
        _ => Flow::SpawnMore,
    }
}

/// Returns the innermost structure if that waits for tasks.
pub(crate) fn top_join(task: &mut Task) -> Option<&mut JoinFrame> {
    match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

/// Returns true if the structure may continue after the failure of one task.
pub(crate) fn survives_failure(kind: &JoinKind, thrown: &Thrown) -> bool {
    match kind {
        JoinKind::Hedge(hedge) => !thrown.retry.is_for_try_only() && hedge.survives_failure(),
        JoinKind::Branches { clauses, .. } => clauses.is_counted(),
        JoinKind::Stages(_) => false,
    }
}

/// Returns the reason for ending the other branches after an ending.
pub(crate) fn reason(ending: &TaskEnding) -> &'static str {
    match ending {
        TaskEnding::Succeeded => "enough branches succeeded",
        TaskEnding::Failed(Thrown { retry: Retry::BrokenPipe, .. }) => {
            "the reader of their output is gone"
        }
        TaskEnding::Exited(_) | TaskEnding::Failed(_) => "another branch failed",
    }
}

/// Returns the failure of a task that executed `exit`; `what` names the kind of the task.
pub(crate) fn exited(task: &Task, what: &str, code: u8) -> Thrown {
    let message = format!("a {what} exited with {code}");
    task.thrown(FailureKind::Exit, i32::from(code), message, "exit")
}
