//! Cutting things short: limits, failing siblings, signals.

use super::Machine;
use super::effect::{Effect, OperationId, TaskId};
use super::ending::{Ending, Thrown};
use super::flow::Flow;
use super::frame::{FrameKind, TryPhase};
use super::join::{children, letting_out};
use super::outcome::{Failure, FailureKind, Outcome};
use super::record::{Level, LogEvent, Record};
use super::task::{AfterEmptied, State, Task};
use super::try_block::{NO_TRY, timeout};

impl Machine {
    /// The time limit of a `try` passed.
    pub(super) fn deadline_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.cut(task, id, true));
    }

    /// The limit of a single attempt passed.
    pub(super) fn attempt_limit_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.cut(task, id, false));
    }

    /// Ends whatever runs inside a `try`, and then the `try` or only its attempt.
    fn cut(&mut self, task: &mut Task, id: u64, whole: bool) -> Flow {
        let position = task
            .frames
            .iter()
            .position(|frame| matches!(&frame.kind, FrameKind::Try(frame) if frame.id == id));
        let Some(position) = position else { return Flow::keep_waiting(task) };
        let innermost = position + 1 == task.frames.len();
        // An attempt that has failed by itself keeps its failure; there is nothing left to cut.
        if innermost && matches!(task.state, State::Emptying(..)) {
            return Flow::keep_waiting(task);
        }
        let mut running = self.running(task);
        self.halt_task(task);
        while task.frames.len() > position + 1 {
            self.leave_cut(task);
        }
        let Some(frame) = task.top_try() else { return Flow::Throw(task.broken(NO_TRY)) };
        let (scope, phase, last) = (frame.scope, frame.phase, frame.failure.clone());
        let limit = if whole { frame.clauses.time } else { frame.clauses.each };
        let mut fresh = false;
        let failure = match (phase, last) {
            (TryPhase::Delay, Some(last)) => return self.try_failed(task, last),
            (TryPhase::Condition, Some(last)) => last,
            (TryPhase::Attempt, _) | (TryPhase::Condition | TryPhase::Delay, None) => {
                // Of those around this one nothing is known yet.
                let around = task.tries().count();
                running.tries.truncate(running.tries.len() - around);
                fresh = true;
                timeout(task, limit, running)
            }
        };
        if fresh {
            self.log_failure(task, &failure, Level::FAILURES, false);
        }
        task.scope = scope;
        let height = task.frames.last().map_or(0, |frame| frame.height);
        task.stack.truncate(height);
        let after = if whole {
            AfterEmptied::EndTry(failure)
        } else {
            AfterEmptied::Fail(Thrown { failure, fatal: false, logged: true })
        };
        self.empty(task, scope, after)
    }

    fn leave_cut(&mut self, task: &mut Task) {
        if let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            self.abandon_frame(task, frame.kind, false);
        }
    }

    /// Stops a task from waiting for anything, and ends the tasks it waits for.
    fn halt_task(&mut self, task: &mut Task) {
        match std::mem::replace(&mut task.state, State::Ready) {
            State::Query(operation, _) | State::Piped(operation) => self.abandon(operation),
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
            State::Sleeping(key) => self.timers.cancel([key]),
            State::Children | State::Forking => {
                if let Some(process) = letting_out(task) {
                    self.processes.remove(&process);
                }
                for child in children(task) {
                    if let Some(mut child) = self.tasks.remove(&child) {
                        self.log(&child, || LogEvent::Cancelled, Level::STRUCTURES);
                        self.drop_task(&mut child);
                    }
                }
            }
            State::Emptying(scope, _) => {
                self.emptying.remove(&scope);
            }
            State::Ready => {}
        }
    }

    fn abandon(&mut self, operation: OperationId) {
        self.operations.remove(&operation);
        self.effects.push_back(Effect::Abandon(operation));
    }

    /// Forgets a task and those it waits for.
    pub(super) fn drop_task(&mut self, task: &mut Task) {
        self.halt_task(task);
        while let Some(frame) = task.frames.pop() {
            self.abandon_frame(task, frame.kind, false);
        }
    }

    /// Cancels the branches of a `forall` that is decided.
    pub(super) fn cancel_children(&mut self, parent: TaskId, why: &str) {
        for child in self.tasks.get(&parent).map(|parent| children(parent)).unwrap_or_default() {
            self.resume(child, |machine, task| {
                if matches!(task.state, State::Emptying(_, AfterEmptied::End(_))) {
                    return Flow::keep_waiting(task);
                }
                let message = format!("cancelled: {why}");
                let thrown = task.thrown(FailureKind::Cancelled, 1, message, "");
                machine.log(task, || LogEvent::Cancelled, Level::STRUCTURES);
                machine.drop_task(task);
                machine.empty(task, task.scope, AfterEmptied::End(Ending::Failed(thrown)))
            });
        }
    }

    /// The shell was told to end: ends everything first.
    pub(super) fn interrupted(&mut self, signal: i32) {
        if let Some(main) = self.tasks.get(&super::MAIN)
            && self.config.log_level >= Level::FAILURES
        {
            let record = self.record(main, 0, LogEvent::Interrupted(signal));
            let record = Record { task: None, attempt: None, ..record };
            self.effects.push_back(Effect::Log(record));
        }
        self.finish_early(Outcome::Interrupted(signal));
    }

    /// The limit that the run lives under passed.
    pub(super) fn run_deadline_passed(&mut self) {
        let Some(main) = self.tasks.remove(&super::MAIN) else { return };
        let running = self.running(&main);
        let failure = timeout(&main, None, running);
        if self.config.log_level >= Level::FAILURES {
            let event = LogEvent::Failed(Box::new(Failure::clone(&failure)));
            let record = self.record(&main, failure.line, event);
            self.effects.push_back(Effect::Log(Record { uncaught: true, ..record }));
        }
        self.tasks.insert(super::MAIN, main);
        self.finish_early(Outcome::Failed(Box::new(Failure::clone(&failure))));
    }

    fn finish_early(&mut self, outcome: Outcome) {
        self.resume(super::MAIN, |machine, main| {
            let scope = Self::scope_to_end(main, &outcome);
            if matches!(outcome, Outcome::Interrupted(_)) {
                machine.interrupted = Some(scope);
            }
            if let State::Emptying(emptied, AfterEmptied::Finish(planned)) = &mut main.state
                && *emptied == scope
            {
                // A second signal is impatience. A first one, as from the shell whose deadline
                // this one shares, finds commands that have just been told to end.
                if matches!(outcome, Outcome::Interrupted(_)) {
                    if matches!(planned, Outcome::Interrupted(_)) || machine.is_killed(scope) {
                        machine.kill(scope);
                    }
                    // What ends a session isn't taken back by what cancels a statement.
                    if !Self::is_cancelling(&outcome) || !matches!(planned, Outcome::Interrupted(_))
                    {
                        *planned = outcome;
                    }
                }
                return Flow::keep_waiting(main);
            }
            machine.drop_task(main);
            machine.empty(main, scope, AfterEmptied::Finish(outcome))
        });
    }
}
