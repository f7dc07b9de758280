//! Events and timers, dispatched to the waiting tasks.

use std::sync::Arc;

use bstr::BString;

use super::Machine;
use crate::atomic::Committer;
use crate::attempts::TryPhase;
use crate::commands::command_lost;
use crate::core::{Breach, Flow};
use crate::effect::{Effect, OperationId, ProcessId, ScopeId, TaskId, Watch};
use crate::endings::{Logged, Retry, TaskEnding, Thrown};
use crate::event::{CommandStatus, Refusal, Reply, Returned, SpawnError};
use crate::grouped_output::{GroupedOutput, NOT_WRITTEN, WriteError};
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent};
use crate::remote::{engine_of, wake_waiting};
use crate::supply::{resources_known, words_came};
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::time::Time;
use crate::unwind::{Cut, Unwinder};

impl Machine {
    /// Handles the start of a program, whose redirections are now set up. The driver logs the
    /// start.
    pub(super) fn spawned(&mut self, process: ProcessId, pid: i32) {
        let Some(task) = self.core.requests().awaits_process(process) else { return };
        self.resume(task, |machine, task| {
            machine.core.log_at(task, task.line(), || SpanEvent::ProgramRunning(pid), Level::SPANS);
            if let TaskState::Command(command) = &mut task.state {
                if let Some(written) = &mut command.written {
                    written.waits = false;
                }
                if command.replaces_shell {
                    Unwinder::new(&mut machine.core).leave_all(task);
                }
            }
            Flow::keep_waiting(task)
        });
        self.forker().companion_began(task);
    }

    pub(super) fn spawn_failed(&mut self, process: ProcessId, error: SpawnError) {
        if let Some(task) = self.core.end_process(process) {
            if self.core.tasks().is_flushed_by(task, process) {
                return self.flush_done(task, WriteError::by(Err(error)));
            }
            if self.core.tasks().commits(task, process) {
                return self.stream_written(task, WriteError::by(Err(error)));
            }
            self.resume(task, |machine, task| machine.commands().command_refused(task, error));
        }
    }

    pub(super) fn exited(
        &mut self,
        process: ProcessId,
        status: CommandStatus,
        line: Option<BString>,
        reader_gone: bool,
    ) {
        if let Some(task) = self.core.end_process(process) {
            if self.core.tasks().is_flushed_by(task, process) {
                return self.flush_done(task, WriteError::by(Ok(status)));
            }
            if self.core.tasks().commits(task, process) {
                return self.stream_written(task, WriteError::by(Ok(status)));
            }
            self.resume(task, |machine, task| {
                machine.commands().command_ended(task, status, line, reader_gone)
            });
        }
    }

    /// Handles the start of a remote branch on a node.
    pub(super) fn placed(&mut self, process: ProcessId, node: &str) {
        let Some(task) = self.core.requests().awaits_process(process) else { return };
        let mut engine = None;
        self.resume(task, |machine, task| {
            engine = machine.dispatcher().placed(task, node);
            Flow::keep_waiting(task)
        });
        self.forker().companion_began(task);
        if let Some(engine) = engine {
            self.core.engine(engine).record_beginning(process, node);
            wake_waiting(&mut self.core, engine);
        }
    }

    /// Handles the end or the return of a remote branch, of which nothing is left.
    pub(super) fn returned(&mut self, process: ProcessId, returned: Returned) {
        let Some(task) = self.core.end_process(process) else { return };
        let mut engine = None;
        self.resume(task, |machine, task| {
            engine = engine_of(task);
            machine.dispatcher().returned(task, process, returned)
        });
        if let Some(engine) = engine {
            wake_waiting(&mut self.core, engine);
        }
    }

    /// Handles an attempt that has to wait for a channel.
    pub(super) fn queued(&mut self, operation: OperationId) {
        let Some(task) = self.core.requests().awaits_operation(operation) else { return };
        self.resume(task, |machine, task| {
            machine.tries().queued(task);
            Flow::keep_waiting(task)
        });
    }

    pub(super) fn done(&mut self, operation: OperationId, result: Result<Reply, Refusal>) {
        if let Some(task) = self.core.parts().requests.end_operation(operation) {
            let tasks = self.core.parts().tasks;
            if tasks.is_relayed_by(task, operation) {
                return self.relay_done(task, result);
            }
            if tasks.is_fed_by(task, operation) {
                return self.words_came(task, result);
            }
            if tasks.is_gated_by(task, operation) {
                return self.resume(task, |machine, task| {
                    resources_known(&mut machine.core, task, &result);
                    Flow::fork_again(task)
                });
            }
            self.resume(task, |machine, task| match &task.state {
                TaskState::Entering(_) => machine.tries().entered(task, result),
                _ => machine.operation_done(task, result),
            });
        }
    }

    /// Handles the end of a scope.
    pub(super) fn scope_emptied(&mut self, scope: ScopeId) {
        let owner = self.core.parts().scopes.end(scope);
        self.core.forget_scope(scope);
        let waits =
            |task: &Task| matches!(task.state, TaskState::Emptying(waited, _) if waited == scope);
        let Some(owner) = owner else { return };
        if !self.core.tasks().get(owner).is_some_and(waits) {
            return;
        }
        self.resume(owner, |machine, task| {
            match std::mem::replace(&mut task.state, TaskState::Ready) {
                TaskState::Emptying(_, after) => {
                    Unwinder::new(&mut machine.core).emptied(task, after)
                }
                _ => Flow::broken(task, "a scope is empty that nothing waits for"),
            }
        });
    }

    /// Handles the end of a delay or a `sleep`.
    pub(super) fn wake(&mut self, task: TaskId) {
        let now = self.core.now();
        let is_remote =
            self.core.tasks().get(task).is_some_and(|it| matches!(it.state, TaskState::Remote(_)));
        self.resume(task, |machine, task| match task.top_try() {
            None if is_remote => Flow::Continue,
            // Time was reported late, as after a suspension of the machine. The deadline that has
            // passed meanwhile cuts the delay at the same moment.
            Some(frame) if frame.phase == TryPhase::Delay && frame.deadline.is_past(now) => {
                Flow::keep_waiting(task)
            }
            Some(frame) if frame.phase == TryPhase::Delay => machine.tries().begin_attempt(task),
            _ => {
                task.advance();
                Flow::Continue
            }
        });
    }

    /// Handles the time at which a task may start another branch, as `note` notes.
    pub(super) fn branch_due(&mut self, task: TaskId, note: fn(&mut Task)) {
        self.resume(task, |_, task| {
            note(task);
            Flow::fork_again(task)
        });
    }

    /// Handles a condition that the processes of a scope met.
    pub(super) fn scope_breached(&mut self, scope: ScopeId, breach: Breach) {
        let Some(watch) = self.core.scopes().watch(scope) else { return };
        let (owner, attempt, conditions) = (watch.owner, watch.attempt, watch.conditions);
        self.resume(owner, |machine, task| match attempt {
            Some(id) => Unwinder::new(&mut machine.core).cut(task, id, &Cut::Breach(breach)),
            None => machine.branch_breached(task, conditions, &breach),
        });
    }

    /// Fails the branch for which the machine was created.
    fn branch_breached(&mut self, task: &mut Task, conditions: Watch, breach: &Breach) -> Flow {
        if self.core.tasks().is_being_cut(task, 0) {
            return Flow::keep_waiting(task);
        }
        let running = self.core.running_inside(task, 0);
        let failure = running.breached(task, conditions, breach, None);
        self.core.log_failure(task, &failure, Level::FAILURES, false);
        let (retry, logged) = (Retry::AsUsual, Logged::Failure);
        let thrown = Thrown { failure: Arc::clone(&failure), retry, logged, answers: true };
        let (scope, after) = (task.base_scope(), AfterEmptied::End(TaskEnding::Failed(thrown)));
        Unwinder::new(&mut self.core).cut_down(task, 0, scope, &failure, after)
    }

    /// Handles the end of writing grouped output.
    pub(super) fn flush_done(&mut self, task: TaskId, result: Result<(), WriteError>) {
        let mut failed = false;
        self.resume(task, |machine, task| {
            failed = GroupedOutput::new(&mut machine.core).part_flushed(task, result);
            match task.state {
                TaskState::AwaitingCleanup => {
                    Unwinder::new(&mut machine.core).continue_cleanup(task)
                }
                _ => Flow::fork_again(task),
            }
        });
        if failed {
            self.cancel_children(task, NOT_WRITTEN);
        }
    }

    /// Handles the end of a relay.
    pub(super) fn relay_done(&mut self, task: TaskId, result: Result<Reply, Refusal>) {
        let mut failed = false;
        self.resume(task, |machine, task| {
            failed = GroupedOutput::new(&mut machine.core).relay_done(task, result);
            Flow::fork_again(task)
        });
        if failed {
            self.cancel_children(task, NOT_WRITTEN);
        }
    }

    /// Words of a task's branches have come, or can't be read.
    pub(super) fn words_came(&mut self, task: TaskId, result: Result<Reply, Refusal>) {
        let mut failed = None;
        self.resume(task, |_, task| {
            failed = words_came(task, result);
            Flow::fork_again(task)
        });
        if let Some(why) = failed {
            self.cancel_children(task, why);
        }
    }

    /// Handles the end of writing a stream of a commit.
    pub(super) fn stream_written(&mut self, task: TaskId, result: Result<(), WriteError>) {
        self.resume(task, |machine, task| {
            Committer::new(&mut machine.core).stream_written(task, result)
        });
    }

    /// Handles the resumption of the run in another process, with commands whose results are
    /// unknown, and commits of views that have taken place.
    pub(super) fn resumed(&mut self, now: Time, lost: Vec<ProcessId>, committed: &[OperationId]) {
        self.core.parts().scheduler.advance(now);
        self.core.log_run(LogEvent::Resumed { lost: lost.len() });
        // Passes ended with the previous shell, so they are not returned.
        let passes = self.core.parts().scopes.lose_passes();
        self.pass_time(now);
        for (scope, watch) in self.core.scopes().watched() {
            self.core.request(Effect::Watch { scope, watch });
        }
        // Parents precede their children.
        for id in self.core.tasks().ids() {
            self.resume(id, |machine, task| {
                task.forget_durations();
                Unwinder::new(&mut machine.core).resumed(task, &passes, committed)
            });
        }
        for process in lost {
            self.command_result_lost(process);
        }
        self.core.parts().requests.drop_unawaited();
    }

    /// Handles a command whose result is unknown.
    fn command_result_lost(&mut self, process: ProcessId) {
        let Some(task) = self.core.end_process(process) else { return };
        if self.core.tasks().is_flushed_by(task, process) {
            return self.flush_done(task, Err(WriteError::Lost));
        }
        if self.core.tasks().commits(task, process) {
            return self
                .resume(task, |machine, task| Committer::new(&mut machine.core).stream_lost(task));
        }
        self.resume(task, |machine, task| match task.state {
            TaskState::Remote(_) => machine.dispatcher().sender_lost(task, process),
            _ => command_lost(task),
        });
    }
}
