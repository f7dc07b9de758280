//! Cancellation by limits, failing siblings and signals.

use std::sync::Arc;

use super::Unwinder;
use crate::atomic::Committer;
use crate::attempts::{TryFrame, TryPhase};
use crate::channels::Passed;
use crate::core::{Breach, Flow};
use crate::dropped::DroppedPart;
use crate::endings::{Logged, Retry, Thrown};
use crate::frames::FrameKind;
use crate::grouped_output::{GroupedOutput, halt_flush};
use crate::outcome::{Failure, FailureKind};
use crate::record::Level;
use crate::remote::forget_remote;
use crate::supply::{leave_gate, leave_words};
use crate::tasks::{AfterEmptied, Task, TaskState, Tasks};
use crate::trace::place;
use crate::transactions::Committing;

impl Unwinder<'_> {
    /// Ends everything inside a `try`, and then the `try` or only its attempt.
    pub(crate) fn cut(&mut self, task: &mut Task, id: u64, by: &Cut) -> Flow {
        let position = task
            .frames
            .iter()
            .position(|frame| matches!(&frame.kind, FrameKind::Try(frame) if frame.id == id));
        let Some(position) = position else { return Flow::keep_waiting(task) };
        let innermost = position + 1 == task.frames.len();
        if self.core.tasks().is_being_cut(task, position + 1) {
            return Flow::keep_waiting(task);
        }
        // An attempt that already failed keeps its failure, and has nothing left to cut.
        if innermost && matches!(task.state, TaskState::Emptying(..) | TaskState::ReadingOutput(..))
        {
            return Flow::keep_waiting(task);
        }
        let Some(FrameKind::Try(frame)) = task.frames.get(position).map(|frame| &frame.kind) else {
            return Flow::broken(task, TryFrame::MISSING);
        };
        let (scope, phase, last) = (frame.scope, frame.phase, frame.failure.clone());
        let limit = match by {
            Cut::Try => frame.clauses.time,
            Cut::Attempt => frame.clauses.each,
            Cut::Breach(_) | Cut::Loss => None,
        };
        let conditions = frame.conditions();
        let failure = match (phase, last) {
            (TryPhase::Delay, Some(last)) => {
                self.halt_task(task);
                return self.try_failed(task, last);
            }
            (TryPhase::Condition, Some(last)) => last,
            (TryPhase::Attempt | TryPhase::Entering, _)
            | (TryPhase::Condition | TryPhase::Delay, None) => {
                let running = self.core.running_inside(task, position + 1);
                let caught = caught_around(task, position);
                let failure = match by {
                    Cut::Try | Cut::Attempt => {
                        running.timeout(task, limit, &limit_name(task, id, by), caught)
                    }
                    Cut::Breach(breach) => running.breached(task, conditions, breach, caught),
                    Cut::Loss => running.lost(task, "an attempt", caught),
                };
                self.core.log_failure(task, &failure, Level::FAILURES, false);
                if phase == TryPhase::Entering {
                    self.halt_task(task);
                    return self.try_failed(task, failure);
                }
                self.core.parts().scopes.note_passed(scope, Passed::Failed);
                if let (Cut::Attempt, Some(FrameKind::Try(frame))) =
                    (by, task.frames.get_mut(position).map(|frame| &mut frame.kind))
                {
                    frame.note_attempt_cut();
                }
                failure
            }
        };
        // A half-committed attempt is not repeated. A loss is an exception, as the extent of its
        // commit is unknown, like that of a lost command.
        let is_limit = matches!(by, Cut::Attempt | Cut::Breach(_));
        let is_half_done = is_limit && task.is_committing(position + 1);
        let is_over = *by == Cut::Try || is_half_done;
        let retry = if is_over { Retry::Never } else { Retry::AsUsual };
        let thrown =
            Thrown { failure: Arc::clone(&failure), retry, logged: Logged::Failure, answers: true };
        let after = AfterEmptied::Fail(thrown);
        let mut held = Vec::new();
        self.core.tasks().held_errors(&task.frames[position + 1..], &mut held);
        if let Some(FrameKind::Try(frame)) = task.frames.get_mut(position).map(|it| &mut it.kind)
            && !held.is_empty()
        {
            frame.dropped.insert(DroppedPart::Errors, held);
        }
        self.cut_down(task, position + 1, scope, &failure, after)
    }

    /// Leaves the innermost structure of a canceled task.
    pub(crate) fn leave_cut(&mut self, task: &mut Task) {
        if let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            self.cut_frame(task, frame.kind);
        }
    }

    /// Makes a task wait for nothing. Its child tasks are handled separately.
    pub(crate) fn halt_task(&mut self, task: &mut Task) {
        match std::mem::replace(&mut task.state, TaskState::Ready) {
            TaskState::Query(operation, _)
            | TaskState::Piped(operation)
            | TaskState::CheckingInput(operation)
            | TaskState::Recording(operation, _)
            | TaskState::ReadingOutput(operation, _)
            | TaskState::ListingLeftovers(operation, ..)
            | TaskState::Committing(Committing::Files(operation) | Committing::Filled(operation)) =>
            {
                self.core.abandon(operation);
            }
            TaskState::OpeningView(opening) => self.core.abandon(opening.operation),
            TaskState::Beginning(beginning) => {
                self.core.abandon(beginning.operation);
                Committer::new(self.core).leave_tee(&beginning.transaction.kind);
            }
            TaskState::CommittingFiles(commit) => self.core.abandon(commit.operation),
            // The relay ends with the transaction.
            TaskState::Committing(Committing::Relay(relay)) => {
                self.core.parts().requests.end_operation(relay);
            }
            TaskState::Committing(Committing::Writing(process, _)) => {
                self.core.end_process(process);
            }
            TaskState::Entering(entering) => self.core.abandon(entering.operation),
            TaskState::Opening(opening) => {
                self.core.abandon(opening.operation);
                if let Some(written) = opening.written {
                    written.abandon(&mut task.variables);
                }
            }
            TaskState::Command(command) => {
                self.core.end_process(command.process);
                if let Some(written) = command.written {
                    written.abandon(&mut task.variables);
                }
            }
            TaskState::Remote(remote_branch) => forget_remote(self.core, task.id, remote_branch),
            TaskState::Sleeping(key) => self.core.cancel([key]),
            TaskState::Children | TaskState::Forking => {
                if let Some(process) = halt_flush(task) {
                    self.core.end_process(process);
                }
                GroupedOutput::new(self.core).leave_relay(task.top_join());
                leave_words(self.core, task.top_join());
                leave_gate(self.core, task);
                // The timer ends now. The structure remains while branches clean up, but starts no
                // more branches.
                self.core.cancel(task.top_join().and_then(|join| join.timer()));
            }
            TaskState::Emptying(scope, _) => {
                self.core.parts().scopes.forget_wait(scope);
            }
            TaskState::AwaitingCleanup => {
                if let Some(process) = halt_flush(task) {
                    self.core.end_process(process);
                }
            }
            TaskState::Ready | TaskState::Cleaning => {}
        }
    }

    /// Drops a task with its child tasks.
    pub(crate) fn drop_task(&mut self, task: &mut Task) {
        self.drop_structures(task, 0, (FailureKind::Canceled, 1));
    }
}

impl Tasks {
    /// Creates the failure of a canceled task.
    pub(crate) fn canceled(&self, task: &Task, message: String) -> Arc<Failure> {
        let mut failure = task.thrown(FailureKind::Canceled, 1, message, "").failure;
        Arc::make_mut(&mut failure).branches = self.current_branch_results(task);
        failure
    }
}

/// Cause that cuts a `try` short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The deadline of the `try`.
    Try,
    /// The deadline of the attempt.
    Attempt,
    /// The processes of the attempt.
    Breach(Breach),
    /// The end of the shell that began the attempt.
    Loss,
}

/// Names the limit of a `try` by its clause and line, if the task has several limits.
fn limit_name(task: &Task, id: u64, by: &Cut) -> String {
    let limits = |frame: &TryFrame| {
        usize::from(frame.clauses.time.is_some()) + usize::from(frame.clauses.each.is_some())
    };
    if task.tries().map(limits).sum::<usize>() < 2 {
        return String::new();
    }
    let found = task.placed_tries().find(|(frame, _)| frame.id == id);
    found.map_or_else(String::new, |(frame, source)| {
        let clause = match by {
            Cut::Attempt => "each",
            _ if frame.code.is_limit => "limit",
            _ => "for",
        };
        let place = place(source.name(), frame.code.line, task.program.source.name());
        format!(", by `{clause}` at {place}")
    })
}

/// Returns the failure handled around the structure at a position.
fn caught_around(task: &Task, position: usize) -> Option<Arc<Failure>> {
    task.caught_in(&task.frames[..position]).cloned()
}
