//! The `finally` group, which runs once however its `try` ends.
//!
//! A guard frame around the `try` intercepts every way out, and runs the group before the way
//! continues. Cancellation from outside passes the guard, too; see `cleanup`.

use std::sync::Arc;

use super::Unwinder;
use crate::attempts::TryFrame;
use crate::core::{Flow, Step};
use crate::endings::{Continuation, TaskEnding, Thrown};
use crate::frames::{FinallyFrame, Frame, FrameKind, GuardFrame};
use crate::outcome::{BranchResults, Failure};
use crate::program::FinallyCode;
use crate::record::{Level, LogEvent};
use crate::tasks::{AfterEmptied, Task, Tasks};

/// Violated invariant: the innermost structure belongs to a `finally` group.
const NO_GUARD: &str = "the innermost structure has no `finally`";

/// Begins a `try` with a `finally` group.
pub(crate) fn guard(task: &mut Task, code: &Arc<FinallyCode>) {
    let began_in = task.working_directory();
    let guard =
        GuardFrame { code: Arc::clone(code), began_in, caught: None, last: None, branches: None };
    task.enter(FrameKind::Guard(Box::new(guard)));
}

impl Unwinder<'_> {
    /// Handles the regular end of such a `try`, or of its `catch`.
    pub(crate) fn run_finally(&mut self, task: &mut Task) -> Flow {
        let Some(Frame { kind: FrameKind::Guard(guard), .. }) = task.frames.pop() else {
            return Flow::broken(task, NO_GUARD);
        };
        let then = Continuation::To(guard.code.end);
        self.begin_finally(task, *guard, then)
    }

    /// Runs a group in its own scope. The limits of the enclosing structures apply, unless a
    /// cancellation sets a limit.
    pub(crate) fn begin_finally(
        &mut self,
        task: &mut Task,
        guard: GuardFrame,
        then: Continuation,
    ) -> Flow {
        let cancellation =
            task.cancellations.last().filter(|_| matches!(then, Continuation::Canceled));
        let outer_scope = cancellation.map_or(task.scope, |cancellation| cancellation.scope);
        let limit = cancellation.map(|cancellation| cancellation.limit);
        let failure = match &then {
            Continuation::Throw(thrown) => Some(Arc::clone(&thrown.failure)),
            Continuation::Canceled => cancellation.map(|cancellation| {
                let mut failure = Arc::clone(&cancellation.failure);
                if let Some(branches) = &guard.branches {
                    Arc::make_mut(&mut failure).branches = Some(Arc::clone(branches));
                }
                failure
            }),
            Continuation::To(_)
            | Continuation::JumpOut { .. }
            | Continuation::Return(_)
            | Continuation::EndTry(_)
            | Continuation::End(_) => None,
        };
        let error = guard.caught.or(failure);
        let scope = self.core.new_scope(Some(outer_scope));
        // A canceled group may outlive the attempt around it.
        if let Some(view) = task.view() {
            self.core.parts().scopes.set_view(scope, view.clone());
        }
        let code = guard.code;
        self.core.log_at(task, code.line, || LogEvent::Finally, Level::STRUCTURES);
        task.jump(code.at);
        task.scope = scope;
        // Read before the return: after a success, the task continues in this directory.
        let ended_in = task.working_directory();
        task.return_to(&guard.began_in);
        let frame = FinallyFrame {
            ended_in,
            code,
            error,
            branches: guard.branches,
            last: guard.last,
            then,
            limit,
            spared: false,
            cut: false,
            scope,
            outer_scope,
        };
        task.enter(FrameKind::Finally(Box::new(frame)));
        Flow::Continue
    }

    /// Handles the success of a group. Processes left running are kept, unless the task is
    /// canceled, and the task continues as decided before.
    pub(crate) fn end_finally(&mut self, task: &mut Task) -> Step {
        let Some(frame) = top_group(task) else { return Ok(Flow::broken(task, NO_GUARD)) };
        task.scope = frame.outer_scope;
        if frame.spared {
            return Ok(self.spared_group_ended(task, frame.then.failure()));
        }
        if let (Continuation::Canceled, Some(limit)) = (&frame.then, frame.limit) {
            // The processes belong to the canceled work, and must end before the next group.
            let grace = limit.timer_moment() - self.core.now();
            return Ok(self.empty_within(task, frame.scope, grace, AfterEmptied::NextGroup));
        }
        self.core.hand_over(frame.scope, frame.outer_scope);
        if !frame.then.is_failing() {
            task.return_to(&frame.ended_in);
        }
        self.proceed(task, frame.then)
    }

    /// Handles the failure of a group, whose scope is empty. An earlier failure takes precedence.
    pub(crate) fn finally_failed(&mut self, task: &mut Task, thrown: Thrown) -> Flow {
        let Some(frame) = top_group(task) else { return Flow::broken(task, NO_GUARD) };
        task.scope = frame.outer_scope;
        if frame.spared {
            return self.spared_group_ended(task, frame.then.failure().or(Some(thrown)));
        }
        match frame.then {
            then if then.is_failing() => self.proceed_failing(task, then),
            _ => Flow::Throw(thrown),
        }
    }

    fn proceed_failing(&mut self, task: &mut Task, then: Continuation) -> Flow {
        match then {
            Continuation::Throw(thrown) => Flow::Throw(thrown),
            Continuation::EndTry(ended) => self.catch(task, *ended),
            Continuation::End(ending) => Flow::Exiting(ending),
            Continuation::Canceled => self.continue_cleanup(task),
            Continuation::To(_) | Continuation::JumpOut { .. } | Continuation::Return(_) => {
                Flow::Exiting(TaskEnding::Succeeded)
            }
        }
    }
}

impl Tasks {
    /// Returns true if a task continues although the reader of its output is gone, because a
    /// `finally` group is executed completely. Inside the group, a stage of a pipeline still ends
    /// early, except for the last stage.
    pub(crate) fn continues_without_reader(&self, task: &Task) -> bool {
        let mut place = Some(task);
        while let Some(task) = place {
            if task.is_in_finally() {
                return true;
            }
            let Some((parent, index)) = task.parent else { return false };
            place = self.get(parent);
            if place.is_some_and(|parent| parent.is_read_by_sibling(index)) {
                return false;
            }
        }
        false
    }
}

impl Task {
    /// Records the failure handled by the `catch` of a `try`, for the following `finally` group.
    pub(crate) fn note_caught(&mut self, failure: &Arc<Failure>) {
        if let Some(Frame { kind: FrameKind::Guard(guard), .. }) = self.frames.last_mut() {
            guard.caught = Some(Arc::clone(failure));
        }
    }

    /// Records the results of the branches of a `forall` that ended or was canceled, for the
    /// enclosing `finally` group.
    pub(crate) fn note_branches(&mut self, results: impl FnOnce() -> Arc<BranchResults>) {
        let guard = self.frames.iter_mut().rev().find_map(|frame| match &mut frame.kind {
            FrameKind::Guard(guard) => Some(guard),
            _ => None,
        });
        if let Some(guard) = guard {
            guard.branches = Some(results());
        }
    }

    /// Returns true if processes must end within half of the kill timeout after a cancellation. The
    /// other half is for a `finally` group, around or in progress.
    pub(crate) fn leaves_time_to_clean_up(&self) -> bool {
        self.inherited.is_guarded
            || holds_output(self)
            || self
                .frames
                .iter()
                .any(|frame| matches!(frame.kind, FrameKind::Guard(_) | FrameKind::Finally(_)))
    }

    /// Returns true inside a `finally` group, which no jump may leave.
    pub(crate) fn is_in_finally(&self) -> bool {
        self.frames.iter().any(is_group)
    }
}

/// Records the last attempt of a `try`, which was just left, for the `finally` group around.
pub(super) fn note_last_attempt(task: &mut Task, frame: &TryFrame) {
    if let Some(Frame { kind: FrameKind::Guard(guard), .. }) = task.frames.last_mut() {
        guard.last = frame.last_attempt();
    }
}

/// Returns true in an attempt whose standard output is held.
pub(crate) fn holds_output(task: &Task) -> bool {
    let mut kinds = task.frames.iter().map(|frame| &frame.kind);
    kinds.any(|kind| matches!(kind, FrameKind::Transaction(it) if it.is_held()))
}

/// Returns true for a `finally` group that runs and was not cut short.
pub(crate) fn is_group_in_progress(frame: &Frame) -> bool {
    matches!(&frame.kind, FrameKind::Finally(group) if !group.cut)
}

/// Returns true for a `finally` group.
pub(crate) fn is_group(frame: &Frame) -> bool {
    matches!(frame.kind, FrameKind::Finally(_))
}

/// Leaves the innermost structure, which must be a `finally` group.
fn top_group(task: &mut Task) -> Option<FinallyFrame> {
    match task.frames.pop() {
        Some(Frame { height, kind: FrameKind::Finally(frame) }) => {
            task.stack.truncate(height);
            Some(*frame)
        }
        _ => None,
    }
}
