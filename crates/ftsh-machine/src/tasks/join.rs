//! Tasks side by side: the branches of a `forall` or a hedged `forany`, and the stages of a pipeline.

use crate::effect::TaskId;
use crate::grouped_output::held::Outputs;
use crate::grouped_output::relay::Relay;
use crate::outcome::{FailureKind, KindAndCode};
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::tasks::timer::TimerKey;
use crate::unwind::ending::{Ending, Retry, Thrown};

/// What is wrong where the innermost structure isn't the one whose tasks end.
pub const NO_JOIN: &str = "the innermost structure has no tasks";

/// What becomes of a branch that is dropped: one that only waits for the end of what it started keeps
/// its ending.
pub fn cut_short(branch: &Task, why: KindAndCode) -> Option<KindAndCode> {
    match &branch.state {
        State::Emptying(_, AfterEmptied::End(ending)) => ending.failure(),
        _ => Some(why),
    }
}

/// The tasks that a task waits for.
pub fn children(task: &Task) -> Vec<TaskId> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => join.running.iter().copied().collect(),
        _ => Vec::new(),
    }
}

impl JoinFrame {
    /// Whether nothing is left to wait for.
    pub fn is_done(&self) -> bool {
        self.running.is_empty()
            && self.kind.outputs().is_none_or(Outputs::is_done)
            && self.kind.relay().is_none_or(Relay::is_done)
    }

    /// What is armed for it alone.
    pub fn timer(&self) -> Option<TimerKey> {
        match &self.kind {
            JoinKind::Hedge(hedge) => hedge.timer,
            JoinKind::Branches { .. } | JoinKind::Stages(_) => None,
        }
    }
}

impl JoinKind {
    /// What writes on what its tasks print, if that is tagged.
    pub fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Branches { relay, .. } => relay.as_ref(),
            Self::Hedge(_) | Self::Stages(_) => None,
        }
    }

    /// True if all that its branches print is written, each by itself.
    pub fn is_grouped(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.is_some(),
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// True if branches have printed what is not written yet, and is to be written whatever cuts them off.
    pub fn holds_output(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.as_ref().is_some_and(|it| it.is_left()),
            // A word that is cut off has not won.
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// What its tasks print, if that is held.
    pub fn outputs(&self) -> Option<&Outputs> {
        match self {
            Self::Branches { outputs, .. } => outputs.as_deref(),
            Self::Hedge(hedge) => hedge.outputs.as_deref(),
            Self::Stages(_) => None,
        }
    }
}

/// Has a task that waits for branches look after them.
pub fn fork_again(task: &Task) -> Flow {
    match task.state {
        State::Forking => Flow::Wait(State::Forking),
        _ => Flow::SpawnMore,
    }
}

/// The tasks that the innermost structure waits for, if it does.
pub fn top_join(task: &mut Task) -> Option<&mut JoinFrame> {
    match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

/// Whether what waits for these tasks may go on when one of them has failed.
pub fn outlives_a_failure(kind: &JoinKind, thrown: &Thrown) -> bool {
    match kind {
        JoinKind::Hedge(hedge) => !thrown.retry.is_for_the_try() && hedge.outlives_a_failure(),
        JoinKind::Branches { clauses, .. } => clauses.is_counted(),
        JoinKind::Stages(_) => false,
    }
}

/// Why the other branches are ended when one has ended like this.
pub fn reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Succeeded => "enough branches succeeded",
        Ending::Failed(Thrown { retry: Retry::Unread, .. }) => "nobody reads what they write",
        Ending::Exited(_) | Ending::Failed(_) => "another branch failed",
    }
}

/// The failure of a branch or a stage, as `what` says, that said `exit`.
pub fn exited(task: &Task, what: &str, code: u8) -> Thrown {
    let message = format!("a {what} exited with {code}");
    task.thrown(FailureKind::Exit, i32::from(code), message, "exit")
}
