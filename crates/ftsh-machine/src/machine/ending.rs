//! Ends that concern several tasks: of branches, and of the whole run.

use std::sync::Arc;

use super::Machine;
use crate::MAIN;
use crate::branches::{JoinFrame, JoinKind};
use crate::core::Flow;
use crate::effect::{Effect, ScopeId, TaskId};
use crate::endings::{Logged, Retry, TaskEnding, TaskResidue, Thrown};
use crate::event::Suspension;
use crate::outcome::{Failure, Outcome, signal_name};
use crate::record::{Level, LogEvent, LogRecord};
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::unwind::Unwinder;

impl Machine {
    /// Handles the end of a child task. Returns the parent and its control flow, unless already
    /// handled.
    pub(super) fn child_ended(
        &mut self,
        (parent, index): (TaskId, usize),
        child: (TaskId, u64),
        ending: TaskEnding,
        residue: TaskResidue,
    ) -> Option<(Box<Task>, Flow)> {
        let mut task = self.core.parts().tasks.take(parent)?;
        let (flow, decided) = self.forker().child_ended(&mut task, index, child, ending, residue);
        let Some(why) = decided else { return Some((task, flow)) };
        self.apply(task, flow);
        self.cancel_children(parent, why);
        None
    }

    /// Handles the failure of a branch, which may end its siblings.
    pub(super) fn branch_failing(&mut self, parent: TaskId, child: TaskId, ending: &TaskEnding) {
        let step =
            self.core.tasks().get(parent).and_then(|task| self.core.branch_step(task, child, 0));
        let Some(task) = self.core.parts().tasks.get_mut(parent) else { return };
        let decided = match task.top_join().map(|join| &mut join.kind) {
            Some(JoinKind::Hedge(_)) => return self.hedge_failing(parent, child, ending),
            Some(JoinKind::Branches { clauses, tally, .. }) => {
                tally.record_result(child, ending, step, clauses)
            }
            Some(JoinKind::Beside(beside)) => {
                if let Some(why) = beside.record_result(child, ending.clone()) {
                    self.cancel_children(parent, why);
                }
                return;
            }
            Some(JoinKind::Stages(_)) | None => {
                return self.resume(parent, |_, task| Flow::broken(task, JoinFrame::MISSING));
            }
        };
        if decided {
            self.cancel_children(parent, ending.reason());
        }
    }

    /// Handles the failure of a branch of a hedged `forany`. The next word need not wait for the
    /// end of the branch.
    pub(super) fn hedge_failing(&mut self, parent: TaskId, branch: TaskId, ending: &TaskEnding) {
        let mut why = None;
        self.resume(parent, |machine, task| {
            why = machine.forker().record_hedge_result(task, branch, ending, None);
            Flow::fork_again(task)
        });
        if let Some(why) = why {
            self.cancel_children(parent, why);
        }
    }

    /// Cancels the branches of a `forall` whose result is decided.
    pub(super) fn cancel_children(&mut self, parent: TaskId, why: &str) {
        for child in self.core.tasks().get(parent).map(Task::children).unwrap_or_default() {
            self.resume(child, |machine, task| {
                // A branch whose success is being recorded keeps its success.
                let is_ending = matches!(
                    task.state,
                    TaskState::Emptying(_, AfterEmptied::End(_))
                        | TaskState::ReadingOutput(_, AfterEmptied::End(_))
                        | TaskState::Recording(..)
                );
                if is_ending || machine.core.tasks().is_being_cut(task, 0) {
                    return Flow::keep_waiting(task);
                }
                let message = format!("canceled: {why}");
                let failure = machine.core.tasks().canceled(task, message);
                let (retry, logged) = (Retry::AsUsual, Logged::Not);
                let thrown = Thrown { failure, retry, logged, answers: true };
                machine.core.log(task, || LogEvent::Canceled, Level::STRUCTURES);
                let (scope, failure) = (task.base_scope(), Arc::clone(&thrown.failure));
                let after = AfterEmptied::End(TaskEnding::Failed(thrown));
                Unwinder::new(&mut machine.core).cut_down(task, 0, scope, &failure, after)
            });
        }
    }

    /// Handles a signal that ends the shell, after everything has ended.
    pub(super) fn interrupted(&mut self, signal: i32) {
        self.core.log_run(LogEvent::Interrupted(signal));
        self.finish_early(Outcome::Interrupted(signal), true);
    }

    /// Handles a suspension: the shell ends, but not the run. Its `finally` groups run at the end
    /// of the run.
    pub(super) fn suspended(&mut self, reason: Suspension) {
        let outcome = match reason {
            Suspension::Signal(signal) => {
                self.core.log_run(LogEvent::Suspended(Some(signal)));
                Outcome::Interrupted(signal)
            }
            Suspension::Deadline => {
                self.core.log_run(LogEvent::Suspended(None));
                let Some(main) = self.core.tasks().get(MAIN) else { return };
                let running = self.core.running(main);
                let failure = running.timeout(main, None, "", main.caught().cloned());
                Outcome::Failed(Box::new(Failure::clone(&failure)))
            }
        };
        self.finish_early(outcome, false);
    }

    /// Handles the deadline of the whole run.
    pub(super) fn run_deadline_passed(&mut self) {
        let Some(main) = self.core.parts().tasks.take(MAIN) else { return };
        let running = self.core.running(&main);
        let failure = running.timeout(&main, None, "", main.caught().cloned());
        let level = Level::of_failure(true);
        if self.core.logs(level) {
            let event = LogEvent::Failed(Box::new(Failure::clone(&failure)));
            let record = self.core.record(&main, failure.line, event);
            self.core.request(Effect::Log(LogRecord { level, uncaught: true, ..record }));
        }
        self.core.parts().tasks.put(main);
        self.finish_early(Outcome::Failed(Box::new(Failure::clone(&failure))), true);
    }

    /// Ends everything. If `cleans`, `finally` groups run first.
    fn finish_early(&mut self, outcome: Outcome, cleans: bool) {
        self.resume(MAIN, |machine, main| {
            let scope = scope_to_end(main, &outcome);
            if matches!(outcome, Outcome::Interrupted(_)) {
                machine.core.parts().scopes.interrupt(scope);
            }
            let is_signal = matches!(outcome, Outcome::Interrupted(_));
            let is_killed = machine.core.scopes().is_killed(scope);
            if let Some((emptied, planned)) = main.finishing()
                && emptied == scope
            {
                // A second signal hastens the end. The first signal does not, because it may come
                // from a parent shell with the same deadline, whose commands have just been
                // terminated.
                let was_signal = matches!(planned, Outcome::Interrupted(_));
                if !is_signal {
                    if cleans {
                        return Flow::keep_waiting(main);
                    }
                    if !was_signal {
                        *planned = outcome;
                    }
                    return Unwinder::new(&mut machine.core).hasten(main, false);
                }
                // A signal that only cancels a statement does not revoke the end of the session.
                if !is_cancelling(&outcome) || !was_signal {
                    *planned = outcome;
                }
                let is_cleaning = main.all_cancellations().next().is_some();
                if is_cleaning && (was_signal || !cleans) {
                    return Unwinder::new(&mut machine.core).hasten(main, was_signal);
                }
                if !is_cleaning && (was_signal || is_killed) {
                    machine.core.kill(scope);
                }
                return Flow::keep_waiting(main);
            }
            let failure = match &outcome {
                Outcome::Failed(failure) => Arc::new(Failure::clone(failure)),
                Outcome::Interrupted(signal) => {
                    let message = format!("canceled by {}", signal_name(*signal));
                    let mut failure = machine.core.tasks().canceled(main, message);
                    Arc::make_mut(&mut failure).code = outcome.exit_code().into();
                    failure
                }
                Outcome::Succeeded | Outcome::Exited(_) => {
                    machine.core.tasks().canceled(main, "canceled".into())
                }
            };
            let after = AfterEmptied::Finish(outcome);
            if cleans {
                Unwinder::new(&mut machine.core).cut_down(main, 0, scope, &failure, after)
            } else {
                let before = machine.core.requests().count();
                let flow =
                    Unwinder::new(&mut machine.core).cut_off(main, 0, scope, &failure, after);
                machine.core.parts().requests.drop_logs_since(before);
                flow
            }
        });
    }
}

/// Signals by which a person at a terminal cancels a statement: SIGINT and SIGQUIT.
const CANCELLING: [i32; 2] = [2, 3];

/// Returns true for a signal that cancels only the current statement of a session.
fn is_cancelling(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Interrupted(signal) if CANCELLING.contains(signal))
}

/// Returns the scope to end for an early end of the run: the canceled statement, or the whole
/// script.
fn scope_to_end(main: &mut Task, outcome: &Outcome) -> ScopeId {
    if !is_cancelling(outcome) {
        return ScopeId::SCRIPT;
    }
    // A scope that is already ending is kept, because it may be the whole script.
    let finishing = main.finishing().map(|(scope, _)| scope);
    finishing.unwrap_or_else(|| main.base_scope())
}
