//! Cutting things short: limits, failing siblings, signals.

use std::sync::Arc;

use crate::Machine;
use crate::atomic::transaction::Committing;
use crate::channels::Passed;
use crate::commands::command::signal_name;
use crate::effect::{Effect, OperationId, TaskId};
use crate::event::Suspension;
use crate::grouped_output::let_out::halt_letting_out;
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::record::{Level, LogEvent, Record};
use crate::resume::loss::lost;
use crate::tasks::flow::Flow;
use crate::tasks::frame::{FrameKind, TryPhase};
use crate::tasks::join::{children, top_join};
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::tries::try_block::{NO_TRY, timeout};
use crate::unwind::ending::{Ending, Logged, Retry, Thrown};

impl Machine {
    /// The time limit of a `try` passed.
    pub(crate) fn deadline_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.cut(task, id, Cut::Try));
    }

    /// The limit of a single attempt passed.
    pub(crate) fn attempt_limit_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.cut(task, id, Cut::Attempt));
    }

    /// Ends whatever runs inside a `try`, and then the `try` or only its attempt.
    pub(crate) fn cut(&mut self, task: &mut Task, id: u64, by: Cut) -> Flow {
        let position = task
            .frames
            .iter()
            .position(|frame| matches!(&frame.kind, FrameKind::Try(frame) if frame.id == id));
        let Some(position) = position else { return Flow::keep_waiting(task) };
        let innermost = position + 1 == task.frames.len();
        if self.is_being_cut(task, position + 1) {
            return Flow::keep_waiting(task);
        }
        // An attempt that has failed by itself keeps its failure; there is nothing left to cut.
        if innermost && matches!(task.state, State::Emptying(..) | State::Telling(..)) {
            return Flow::keep_waiting(task);
        }
        let Some(FrameKind::Try(frame)) = task.frames.get(position).map(|frame| &frame.kind) else {
            return Flow::Throw(task.broken(NO_TRY));
        };
        let (scope, phase, last) = (frame.scope, frame.phase, frame.failure.clone());
        let limit = match by {
            Cut::Try => frame.clauses.time,
            Cut::Attempt => frame.clauses.each,
            Cut::Loss => None,
        };
        let failure = match (phase, last) {
            (TryPhase::Delay, Some(last)) => {
                self.halt_task(task);
                return self.try_failed(task, last);
            }
            (TryPhase::Condition, Some(last)) => last,
            (TryPhase::Attempt | TryPhase::Entering, _)
            | (TryPhase::Condition | TryPhase::Delay, None) => {
                let running = self.running_inside(task, position + 1);
                let caught = caught_around(task, position);
                let failure = match by {
                    Cut::Try | Cut::Attempt => timeout(task, limit, running, caught),
                    Cut::Loss => lost(task, "an attempt", running, caught),
                };
                self.log_failure(task, &failure, Level::FAILURES, false);
                if phase == TryPhase::Entering {
                    self.halt_task(task);
                    return self.try_failed(task, failure);
                }
                self.note_passed(scope, Passed::Failed);
                failure
            }
        };
        // A half-committed attempt is not repeated. A loss is an exception, as the extent of its
        // commit is unknown, like that of a lost command.
        let is_half_done = by == Cut::Attempt && task.is_committing(position + 1);
        let is_over = by == Cut::Try || is_half_done;
        let retry = if is_over { Retry::Never } else { Retry::AsUsual };
        let thrown = Thrown { failure: Arc::clone(&failure), retry, logged: Logged::Failure };
        let after = AfterEmptied::Fail(thrown);
        self.cut_down(task, position + 1, scope, &failure, after)
    }

    /// Leaves the innermost structure of what is cut short.
    pub(crate) fn leave_cut(&mut self, task: &mut Task) {
        if let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            self.cut_frame(task, frame.kind);
        }
    }

    /// Stops a task from waiting for anything. Those that it waits for are somebody else's matter.
    pub(crate) fn halt_task(&mut self, task: &mut Task) {
        match std::mem::replace(&mut task.state, State::Ready) {
            State::Query(operation, _)
            | State::Piped(operation)
            | State::Asking(operation)
            | State::Telling(operation, _)
            | State::Committing(Committing::Files(operation) | Committing::Filled(operation)) => {
                self.abandon(operation);
            }
            State::Beginning(beginning) => {
                self.abandon(beginning.operation);
                self.leave_tee(&beginning.transaction.kind);
            }
            State::Settling(settling) => self.abandon(settling.operation),
            // It is left with its transaction.
            State::Committing(Committing::Relay(relay)) => {
                self.operations.remove(&relay);
            }
            State::Committing(Committing::LettingOut(process, _)) => {
                self.processes.remove(&process);
            }
            State::Entering(entering) => self.abandon(entering.operation),
            State::Opening(opening) => {
                self.abandon(opening.operation);
                if let Some(written) = opening.written {
                    written.abandon(&mut task.variables);
                }
            }
            State::Command(command) => {
                self.processes.remove(&command.process);
                if let Some(written) = command.written {
                    written.abandon(&mut task.variables);
                }
            }
            State::Remote(remote_branch) => self.forget_remote(task.id, remote_branch),
            State::Sleeping(key) => self.timers.cancel([key]),
            State::Children | State::Forking => {
                if let Some(process) = halt_letting_out(task) {
                    self.processes.remove(&process);
                }
                self.leave_relay(top_join(task));
                // It stays while branches clean up, and begins no more.
                self.timers.cancel(top_join(task).and_then(|join| join.timer()));
            }
            State::Emptying(scope, _) => {
                self.emptying.remove(&scope);
            }
            State::Doomed => {
                if let Some(process) = halt_letting_out(task) {
                    self.processes.remove(&process);
                }
            }
            State::Ready | State::Cleaning => {}
        }
    }

    pub(crate) fn abandon(&mut self, operation: OperationId) {
        self.operations.remove(&operation);
        self.effects.push_back(Effect::Abandon(operation));
    }

    /// Forgets a task and those it waits for.
    pub(crate) fn drop_task(&mut self, task: &mut Task) {
        self.drop_structures(task, 0, (FailureKind::Cancelled, 1));
    }

    /// Cancels the branches of a `forall` that is decided.
    pub(crate) fn cancel_children(&mut self, parent: TaskId, why: &str) {
        for child in self.tasks.get(&parent).map(|parent| children(parent)).unwrap_or_default() {
            self.resume(child, |machine, task| {
                if matches!(task.state, State::Emptying(_, AfterEmptied::End(_)))
                    || machine.is_being_cut(task, 0)
                {
                    return Flow::keep_waiting(task);
                }
                let message = format!("cancelled: {why}");
                let failure = machine.cancelled(task, message);
                let (retry, logged) = (Retry::AsUsual, Logged::Not);
                let thrown = Thrown { failure, retry, logged };
                machine.log(task, || LogEvent::Cancelled, Level::STRUCTURES);
                let (scope, failure) = (task.base_scope(), Arc::clone(&thrown.failure));
                let after = AfterEmptied::End(Ending::Failed(thrown));
                machine.cut_down(task, 0, scope, &failure, after)
            });
        }
    }

    /// The shell was told to end: ends everything first.
    pub(crate) fn interrupted(&mut self, signal: i32) {
        self.log_run(LogEvent::Interrupted(signal));
        self.finish_early(Outcome::Interrupted(signal), true);
    }

    /// The shell ends, but not the run: its `finally` groups are to run at its end.
    pub(crate) fn suspended(&mut self, reason: Suspension) {
        let outcome = match reason {
            Suspension::Signal(signal) => {
                self.log_run(LogEvent::Suspended(Some(signal)));
                Outcome::Interrupted(signal)
            }
            Suspension::Deadline => {
                self.log_run(LogEvent::Suspended(None));
                let Some(main) = self.tasks.get(&crate::MAIN) else { return };
                let running = self.running(main);
                let failure = timeout(main, None, running, main.caught().cloned());
                Outcome::Failed(Box::new(Failure::clone(&failure)))
            }
        };
        self.finish_early(outcome, false);
    }

    /// The limit that the run lives under passed.
    pub(crate) fn run_deadline_passed(&mut self) {
        let Some(main) = self.tasks.remove(&crate::MAIN) else { return };
        let running = self.running(&main);
        let failure = timeout(&main, None, running, main.caught().cloned());
        let level = Level::of_failure(true);
        if self.config.log_level >= level {
            let event = LogEvent::Failed(Box::new(Failure::clone(&failure)));
            let record = self.record(&main, failure.line, event);
            self.effects.push_back(Effect::Log(Record { level, uncaught: true, ..record }));
        }
        self.tasks.insert(crate::MAIN, main);
        self.finish_early(Outcome::Failed(Box::new(Failure::clone(&failure))), true);
    }

    /// Ends everything, and first what is to be cleaned up, if it `cleans`.
    fn finish_early(&mut self, outcome: Outcome, cleans: bool) {
        self.resume(crate::MAIN, |machine, main| {
            let scope = Self::scope_to_end(main, &outcome);
            if matches!(outcome, Outcome::Interrupted(_)) {
                machine.interrupted = Some(scope);
            }
            let is_signal = matches!(outcome, Outcome::Interrupted(_));
            let is_killed = machine.is_killed(scope);
            if let Some((emptied, planned)) = main.finishing()
                && emptied == scope
            {
                // A second signal is impatience. A first one, as from the shell whose deadline
                // this one shares, finds commands that have just been told to end.
                let was_signal = matches!(planned, Outcome::Interrupted(_));
                if !is_signal {
                    if cleans {
                        return Flow::keep_waiting(main);
                    }
                    if !was_signal {
                        *planned = outcome;
                    }
                    return machine.hasten(main, false);
                }
                // What ends a session isn't taken back by what cancels a statement.
                if !Self::is_cancelling(&outcome) || !was_signal {
                    *planned = outcome;
                }
                let is_cleaning = main.cancelling().next().is_some();
                if is_cleaning && (was_signal || !cleans) {
                    return machine.hasten(main, was_signal);
                }
                if !is_cleaning && (was_signal || is_killed) {
                    machine.kill(scope);
                }
                return Flow::keep_waiting(main);
            }
            let failure = match &outcome {
                Outcome::Failed(failure) => Arc::new(Failure::clone(failure)),
                Outcome::Interrupted(signal) => {
                    machine.cancelled(main, format!("cancelled by {}", signal_name(*signal)))
                }
                Outcome::Succeeded | Outcome::Exited(_) => {
                    machine.cancelled(main, "cancelled".into())
                }
            };
            let after = AfterEmptied::Finish(outcome);
            if cleans {
                machine.cut_down(main, 0, scope, &failure, after)
            } else {
                let before = machine.effects.len();
                let flow = machine.cut_off(main, 0, scope, &failure, after);
                machine.tell_nothing_since(before);
                flow
            }
        });
    }

    /// Returns the failure of a task that is cancelled.
    fn cancelled(&self, task: &Task, message: String) -> Arc<Failure> {
        let mut failure = task.thrown(FailureKind::Cancelled, 1, message, "").failure;
        Arc::make_mut(&mut failure).branches = self.branches_under_way(task);
        failure
    }

    /// Takes back what the log would be told of what goes on later.
    fn tell_nothing_since(&mut self, before: usize) {
        let asked = self.effects.split_off(before);
        self.effects.extend(asked.into_iter().filter(|it| !matches!(it, Effect::Log(_))));
    }
}

/// What a `try` is cut short by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its limit.
    Try,
    /// The limit of the attempt.
    Attempt,
    /// The end of the shell that had begun the attempt.
    Loss,
}

/// What is being handled around the structure at a position.
fn caught_around(task: &Task, position: usize) -> Option<Arc<Failure>> {
    task.caught_in(&task.frames[..position]).cloned()
}
