//! Events and timers, on their way to the tasks that wait for them.

use bstr::BString;

use crate::Machine;
use crate::commands::command::command_lost;
use crate::effect::{OperationId, ProcessId, ScopeId, TaskId};
use crate::event::{Refusal, Reply, Returned, SpawnError, Status};
use crate::forany::hedging::next_word_is_due;
use crate::grouped_output::let_out::{NOT_WRITTEN, Refused};
use crate::record::LogEvent;
use crate::remote::dispatch::engine_of;
use crate::tasks::flow::Flow;
use crate::tasks::frame::TryPhase;
use crate::tasks::join::fork_again;
use crate::tasks::task::{State, Task};
use crate::time::Time;
use crate::unwind::cancel::Cut;

impl Machine {
    /// A program runs, so its redirections are set up. The driver logs it.
    pub(super) fn spawned(&mut self, process: ProcessId) {
        let Some(task) = self.core.requests.awaits_process(process) else { return };
        self.resume(task, |machine, task| {
            if let State::Command(command) = &mut task.state {
                if let Some(written) = &mut command.written {
                    written.waits = false;
                }
                if command.replaces_shell {
                    machine.core.unwinder().leave_all(task);
                }
            }
            Flow::keep_waiting(task)
        });
    }

    pub(super) fn spawn_failed(&mut self, process: ProcessId, error: SpawnError) {
        if let Some(task) = self.core.requests.end_process(process) {
            if self.core.tasks.lets_out(task, process) {
                return self.let_out_done(task, Refused::by(Err(error)));
            }
            if self.core.tasks.commits(task, process) {
                return self.stream_let_out(task, Refused::by(Err(error)));
            }
            self.resume(task, |machine, task| machine.commands().command_refused(task, error));
        }
    }

    pub(super) fn exited(
        &mut self,
        process: ProcessId,
        status: Status,
        line: Option<BString>,
        unread: bool,
    ) {
        if let Some(task) = self.core.requests.end_process(process) {
            if self.core.tasks.lets_out(task, process) {
                return self.let_out_done(task, Refused::by(Ok(status)));
            }
            if self.core.tasks.commits(task, process) {
                return self.stream_let_out(task, Refused::by(Ok(status)));
            }
            self.resume(task, |machine, task| {
                machine.commands().command_ended(task, status, line, unread)
            });
        }
    }

    /// A branch that was sent begins, on this machine.
    pub(super) fn placed(&mut self, process: ProcessId, node: &str) {
        let Some(task) = self.core.requests.awaits_process(process) else { return };
        let mut engine = None;
        self.resume(task, |machine, task| {
            engine = machine.dispatcher().placed(task, node);
            Flow::keep_waiting(task)
        });
        if let Some(engine) = engine {
            self.core.remote.engine(engine).placed(process, node);
            self.core.wake_waiting(engine);
        }
    }

    /// A branch that was sent is over, or didn't begin; nothing of it is left.
    pub(super) fn returned(&mut self, process: ProcessId, returned: Returned) {
        let Some(task) = self.core.requests.end_process(process) else { return };
        let mut engine = None;
        self.resume(task, |machine, task| {
            engine = engine_of(task);
            machine.dispatcher().returned(task, process, returned)
        });
        if let Some(engine) = engine {
            self.core.wake_waiting(engine);
        }
    }

    /// The channel can't take an attempt at once.
    pub(super) fn queued(&mut self, operation: OperationId) {
        let Some(task) = self.core.requests.awaits_operation(operation) else { return };
        self.resume(task, |machine, task| {
            machine.tries().queued(task);
            Flow::keep_waiting(task)
        });
    }

    pub(super) fn done(&mut self, operation: OperationId, result: Result<Reply, Refusal>) {
        if let Some(task) = self.core.requests.end_operation(operation) {
            if self.core.tasks.is_relayed_by(task, operation) {
                return self.relay_done(task, result);
            }
            self.resume(task, |machine, task| match &task.state {
                State::Entering(_) => machine.tries().entered(task, result),
                _ => machine.operation_done(task, result),
            });
        }
    }

    /// The driver says that nothing is left of a scope.
    pub(super) fn scope_emptied(&mut self, scope: ScopeId) {
        let owner = self.core.scopes.end(scope);
        self.core.forget_scope(scope);
        let waits =
            |task: &Task| matches!(task.state, State::Emptying(waited, _) if waited == scope);
        let Some(owner) = owner else { return };
        if !self.core.tasks.get(owner).is_some_and(waits) {
            return;
        }
        self.resume(owner, |machine, task| {
            match std::mem::replace(&mut task.state, State::Ready) {
                State::Emptying(_, after) => machine.core.unwinder().emptied(task, after),
                _ => Flow::Throw(task.broken("a scope is empty that nothing waits for")),
            }
        });
    }

    /// A delay or a `sleep` is over.
    pub(super) fn wake(&mut self, task: TaskId) {
        let now = self.core.now();
        let is_remote =
            self.core.tasks.get(task).is_some_and(|it| matches!(it.state, State::Remote(_)));
        self.resume(task, |machine, task| match task.top_try() {
            None if is_remote => Flow::Continue,
            // The machine was told of the time too late, as after a suspension: the limit that has
            // passed meanwhile cuts the delay at this same moment.
            Some(frame) if frame.phase == TryPhase::Delay && now >= frame.deadline => {
                Flow::keep_waiting(task)
            }
            Some(frame) if frame.phase == TryPhase::Delay => machine.tries().begin_attempt(task),
            _ => {
                task.advance();
                Flow::Continue
            }
        });
    }

    /// The next word is to begin beside those that run.
    pub(super) fn hedge_due(&mut self, task: TaskId) {
        self.resume(task, |_, task| {
            next_word_is_due(task);
            fork_again(task)
        });
    }

    /// The time limit of a `try` passed.
    pub(super) fn deadline_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.core.unwinder().cut(task, id, Cut::Try));
    }

    /// The limit of a single attempt passed.
    pub(super) fn attempt_limit_passed(&mut self, task: TaskId, id: u64) {
        self.resume(task, |machine, task| machine.core.unwinder().cut(task, id, Cut::Attempt));
    }

    /// The time of the groups is over.
    pub(super) fn cleaning_time_passed(&mut self, task: TaskId, keep: usize) {
        self.resume(task, |machine, task| machine.core.unwinder().cleaning_time_passed(task, keep));
    }

    /// What a task let out for its branches is written, or can't be.
    pub(super) fn let_out_done(&mut self, task: TaskId, result: Result<(), Refused>) {
        let mut failed = false;
        self.resume(task, |machine, task| {
            failed = machine.core.grouped_output().output_done(task, result);
            match task.state {
                State::Doomed => machine.core.unwinder().clean(task),
                _ => fork_again(task),
            }
        });
        if failed {
            self.cancel_children(task, NOT_WRITTEN);
        }
    }

    /// All that the branches of a task have printed is written, or it can't be.
    pub(super) fn relay_done(&mut self, task: TaskId, result: Result<Reply, Refusal>) {
        let mut failed = false;
        self.resume(task, |machine, task| {
            failed = machine.core.grouped_output().relay_done(task, result);
            fork_again(task)
        });
        if failed {
            self.cancel_children(task, NOT_WRITTEN);
        }
    }

    /// Something that was held is let out, or can't be.
    pub(super) fn stream_let_out(&mut self, task: TaskId, result: Result<(), Refused>) {
        self.resume(task, |machine, task| machine.core.committer().stream_let_out(task, result));
    }

    /// The run goes on in another process: of these commands nobody knows what came of them.
    pub(super) fn resumed(&mut self, now: Time, lost: Vec<ProcessId>) {
        self.core.scheduler.advance(now);
        self.core.log_run(LogEvent::Resumed { lost: lost.len() });
        // They went with the shell that had them: nothing is given back.
        let passes = self.core.scopes.lose_passes();
        self.handle_timeout(now);
        // Those that wait for others come before these.
        for id in self.core.tasks.ids() {
            self.resume(id, |machine, task| machine.core.unwinder().resumed(task, &passes));
        }
        for process in lost {
            self.lose_command(process);
        }
        self.core.requests.drop_unawaited();
    }

    /// Nobody knows what came of a command.
    fn lose_command(&mut self, process: ProcessId) {
        let Some(task) = self.core.requests.end_process(process) else { return };
        if self.core.tasks.lets_out(task, process) {
            return self.let_out_done(task, Err(Refused::Lost));
        }
        if self.core.tasks.commits(task, process) {
            return self.stream_let_out(task, Err(Refused::Lost));
        }
        self.resume(task, |machine, task| match task.state {
            State::Remote(_) => machine.dispatcher().sender_lost(task, process),
            _ => command_lost(task),
        });
    }
}
