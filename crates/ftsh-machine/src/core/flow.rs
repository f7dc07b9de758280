//! Control flow after an instruction, and calls in words: `${f(x)}`.
//!
//! An instruction whose words contain calls is suspended until each call has a value, and starts
//! over with the values.

use crate::effect::ScopeId;
use crate::endings::{Continuation, TaskEnding, Thrown};
use crate::frames::{Frame, FrameKind, WordCallFrame};
use crate::outcome::Outcome;
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::values::Suspend;

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
    /// The scope is emptied first.
    Empty(ScopeId, AfterEmptied),
    /// The scope of the task is empty.
    Emptied(AfterEmptied),
    /// The task continues leaving a structure as decided before.
    Proceed(Continuation),
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
    /// Fails a task because of a violated invariant.
    pub(crate) fn broken(task: &Task, what: &str) -> Self {
        Self::Throw(task.broken(what))
    }

    /// Makes a task start more branches, unless its turn to do so is already pending.
    pub(crate) fn fork_again(task: &Task) -> Self {
        match task.state {
            TaskState::Forking => Self::Wait(TaskState::Forking),
            _ => Self::SpawnMore,
        }
    }

    /// Leaves a task's state as it is.
    pub(crate) fn keep_waiting(task: &mut Task) -> Self {
        Self::Wait(std::mem::replace(&mut task.state, TaskState::Ready))
    }
}

/// Begins the call at an offset of the source, for a word of the current instruction.
pub(crate) fn begin_word_call(task: &mut Task, start: usize) -> Flow {
    let calls = &task.program.calls;
    let Ok(index) = calls.binary_search_by_key(&start, |(start, _)| *start) else {
        return Flow::broken(task, "a call in a word has no code");
    };
    let (_, address) = calls[index];
    // Answers to queries may change during the call.
    let values = task.progress.take().map(|progress| progress.calls).unwrap_or_default();
    task.enter(FrameKind::WordCall(Box::new(WordCallFrame { start, return_to: task.at, values })));
    task.jump(address);
    Flow::Continue
}

/// Ends a call in a word, and starts the instruction with the word over.
pub(crate) fn end_word_call(task: &mut Task) -> Step {
    let value = task.pop()?;
    match task.frames.pop() {
        Some(Frame { kind: FrameKind::WordCall(call), .. }) => {
            task.jump(call.return_to);
            let values = &mut task.progress().calls;
            *values = call.values;
            values.push((call.start, value));
            Ok(Flow::Continue)
        }
        _ => Ok(Flow::broken(task, "a call in a word ends that has not begun")),
    }
}
