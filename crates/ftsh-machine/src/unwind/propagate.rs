//! Propagation of failures to the containing structure, and endings of tasks.

use std::sync::Arc;

use super::{Unwinder, finally::note_last_attempt, leaving::take_over};
use crate::atomic::Committer;
use crate::branches::JoinKind;
use crate::channels::Passed;
use crate::core::{Core, Flow};
use crate::dropped::DroppedPart;
use crate::effect::{Effect, ScopeId};
use crate::endings::{Continuation, Logged, Retry, TaskEnding, Thrown};
use crate::event::SIGPIPE;
use crate::frames::{Frame, FrameKind};
use crate::grouped_output::GroupedOutput;
use crate::loops::next_item;
use crate::modifiers::{accept_failure, leave_keep};
use crate::outcome::{BranchResults, Failure, FailureKind, Outcome};
use crate::program::Instruction;
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent, LogRecord};
use crate::remote::check_given;
use crate::supply::{leave_words, record_word};
use crate::tasks::{AfterEmptied, Task, TaskState, Tasks};
use crate::values::Value;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::is_name;

impl Unwinder<'_> {
    /// Leaves structures up to the one that contains the failure.
    pub(crate) fn throw(&mut self, task: &mut Task, mut thrown: Thrown) -> Flow {
        let in_probe = self.core.tasks().is_answer(task, &thrown);
        if in_probe && thrown.failure.kind == FailureKind::Exit {
            self.core.log_at(
                task,
                task.line(),
                || SpanEvent::Answered(thrown.failure.code),
                Level::SPANS,
            );
        }
        if !in_probe && thrown.logged == Logged::Not {
            name_both(self.core.tasks(), task, &mut thrown);
            let forgiven = thrown.retry == Retry::BrokenPipe;
            let uncaught = !forgiven && self.core.tasks().is_uncaught(task, &thrown);
            let level = if forgiven { Level::COMMANDS } else { Level::of_failure(uncaught) };
            thrown.add_trace(self.core, task);
            self.core.log_failure(task, &thrown.failure, level, uncaught);
            thrown.logged = Logged::from_uncaught(uncaught);
        }
        while let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            match frame.kind {
                FrameKind::Try(details) => {
                    let scope = details.scope;
                    // Noted first: with the scope, the pass of the attempt returns to its channel.
                    self.core.parts().scopes.note_failed(scope, &thrown);
                    task.enter(FrameKind::Try(details));
                    return self.empty(task, scope, AfterEmptied::Fail(thrown));
                }
                FrameKind::TryHead(code) => return self.head_failed(task, &code, thrown),
                FrameKind::Guard(guard) => {
                    return self.begin_finally(task, *guard, Continuation::Throw(thrown));
                }
                FrameKind::Finally(group) => {
                    let scope = group.scope;
                    task.enter(FrameKind::Finally(group));
                    return self.empty(task, scope, AfterEmptied::EndFinally(thrown));
                }
                FrameKind::ForAny(details) if !thrown.retry.is_for_try_only() => {
                    if next_item(self.core, task, details) {
                        self.core.forget_output(task);
                        return Flow::Continue;
                    }
                }
                FrameKind::Probe(question, answered)
                    if thrown.is_negative_answer(question) && !thrown.retry.is_for_try_only() =>
                {
                    self.core.forget_output(task);
                    task.stack.push(Value::Boolean(false));
                    task.jump(answered);
                    return Flow::Continue;
                }
                FrameKind::Accept(statuses, end) => {
                    if accept_failure(self.core, task, &statuses, end, &thrown) {
                        return Flow::Continue;
                    }
                }
                FrameKind::Keep { scope, outer_scope } => {
                    leave_keep(self.core, task, scope, outer_scope);
                }
                FrameKind::Transaction(transaction)
                    if transaction.is_held() && is_last_word(task, &thrown) =>
                {
                    let then = Continuation::Throw(thrown);
                    return Committer::new(self.core).begin_commit(task, transaction, then);
                }
                // Only the command of a condition answers, and not the calls in its words.
                FrameKind::WordCall(_) => thrown.answers = false,
                FrameKind::Call(call) => {
                    thrown.answers = true;
                    task.leave_call(*call);
                }
                kind => self.abandon_frame(task, kind, false),
            }
        }
        Flow::Exiting(TaskEnding::Failed(thrown))
    }

    /// Leaves a structure early, by a failure or by `return`.
    pub(crate) fn abandon_frame(&mut self, task: &mut Task, kind: FrameKind, succeeded: bool) {
        match kind {
            FrameKind::Call(call) => task.leave_call(*call),
            FrameKind::Redirected { before, .. } => task.io = before,
            FrameKind::In(before) => {
                before.restore_all(&mut task.directory, &mut task.variables);
            }
            FrameKind::Transaction(transaction) => {
                Committer::new(self.core).roll_back(task, *transaction);
            }
            FrameKind::Try(frame) => {
                let failure = (!succeeded).then_some(FailureKind::Canceled);
                let ended = || SpanEvent::TryEnded { id: frame.id, failure };
                self.core.log_at(task, frame.code.line, ended, Level::SPANS);
                if frame.attempt > 1 {
                    let depth = task.frames.len() + 1;
                    self.core.log(task, || LogEvent::RetriesEnded(depth), Level::FAILURES);
                }
                self.core.cancel(frame.deadline_timer);
                self.core.cancel(frame.attempt_timer);
                if frame.phase.is_scoped() && succeeded {
                    self.core.hand_over(frame.scope, frame.outer_scope);
                }
                task.scope = frame.outer_scope;
                note_last_attempt(task, &frame);
                Committer::new(self.core).end_replay(frame.replay);
            }
            FrameKind::Finally(group) => task.scope = group.outer_scope,
            FrameKind::Keep { scope, outer_scope } if succeeded => {
                leave_keep(self.core, task, scope, outer_scope);
            }
            FrameKind::Keep { outer_scope, .. } => task.scope = outer_scope,
            FrameKind::TryHead(_)
            | FrameKind::Catch(..)
            | FrameKind::Guard(_)
            | FrameKind::For(_)
            | FrameKind::ForAny(_)
            | FrameKind::Targets(_)
            | FrameKind::Remote(_)
            | FrameKind::WordCall(_)
            | FrameKind::Accept(..)
            | FrameKind::Probe(..) => {}
            FrameKind::Join(mut join) => {
                self.core.cancel(join.timer());
                if let JoinKind::Beside(beside) = &mut join.kind
                    && let Some(residue) = beside.residue.take()
                {
                    take_over(task, residue);
                }
                GroupedOutput::new(self.core).leave_relay(Some(&mut join));
                leave_words(self.core, Some(&mut join));
                if join.kind.is_grouped()
                    && let Some(outputs) = join.kind.outputs()
                {
                    GroupedOutput::new(self.core).log_groups_ended(task, &outputs.tasks());
                }
            }
        }
    }

    /// Ends a task.
    pub(crate) fn end_task(&mut self, task: &mut Task, ending: TaskEnding) -> Flow {
        let good = matches!(ending, TaskEnding::Succeeded);
        // Scope of the attempt of the outermost `try` left up to now.
        let mut left = None;
        while let Some(Frame { height, kind }) = task.frames.pop() {
            task.stack.truncate(height);
            match (kind, left) {
                // The group runs after the processes of the attempts inside have ended, not beside
                // them.
                (FrameKind::Guard(guard), Some(scope)) if !good => {
                    task.enter(FrameKind::Guard(guard));
                    return self.empty(task, scope, AfterEmptied::Leave(ending));
                }
                (FrameKind::Transaction(transaction), Some(scope))
                    if !good && transaction.is_held() =>
                {
                    task.enter(FrameKind::Transaction(transaction));
                    return self.empty(task, scope, AfterEmptied::Leave(ending));
                }
                // The held standard error is logged first.
                (FrameKind::Try(frame), _)
                    if matches!(ending, TaskEnding::Exited(1..))
                        && frame.dropped.contains_key(&DroppedPart::Errors) =>
                {
                    let scope = frame.scope;
                    self.core.parts().scopes.note_passed(scope, Passed::Failed);
                    task.enter(FrameKind::Try(frame));
                    return self.empty(task, scope, AfterEmptied::Leave(ending));
                }
                (FrameKind::Guard(guard), _) => {
                    return self.begin_finally(task, *guard, Continuation::End(ending));
                }
                (FrameKind::Transaction(transaction), _) if good || transaction.is_held() => {
                    return Committer::new(self.core).begin_commit(
                        task,
                        transaction,
                        Continuation::End(ending),
                    );
                }
                // `exit` ends the command like its own end.
                (FrameKind::Keep { scope, outer_scope }, None) => {
                    leave_keep(self.core, task, scope, outer_scope);
                }
                (kind, _) => {
                    if let FrameKind::Try(frame) = &kind
                        && frame.phase.is_scoped()
                    {
                        left = Some(frame.scope);
                        if matches!(ending, TaskEnding::Exited(_)) {
                            self.core.parts().scopes.note_passed(frame.scope, Passed::Failed);
                        }
                    }
                    self.abandon_frame(task, kind, good);
                }
            }
        }
        let Some((parent, _)) = task.parent else {
            let outcome = match ending {
                TaskEnding::Succeeded => Outcome::Succeeded,
                TaskEnding::Exited(code) => Outcome::Exited(code),
                // The script ends like a program that writes without a reader.
                TaskEnding::Failed(Thrown { retry: Retry::BrokenPipe, .. }) => {
                    Outcome::Interrupted(SIGPIPE)
                }
                TaskEnding::Failed(thrown) => {
                    log_end(self.core, task, &thrown);
                    Outcome::Failed(Box::new(Arc::unwrap_or_clone(thrown.failure)))
                }
            };
            if !good {
                return self.empty(task, task.scope, AfterEmptied::Finish(outcome));
            }
            if task.scope != ScopeId::SCRIPT {
                self.core.hand_over(task.scope, ScopeId::SCRIPT);
                task.scope = ScopeId::SCRIPT;
            }
            if self.core.config().no_leftovers {
                return self.core.end_leftovers(
                    task,
                    ScopeId::SCRIPT,
                    AfterEmptied::Finish(outcome),
                );
            }
            return Flow::Finish(outcome);
        };
        if good && let Some(thrown) = self.core.tasks().companion_ended(task) {
            return Flow::Throw(thrown);
        }
        let is_regular = matches!(task.program.code.get(task.at), Some(Instruction::EndTask));
        if good && !is_regular && self.core.tasks().is_group_of_with(task) {
            // `exit` ends the parent, too.
            self.core.parts().tasks.leave_group(task, Continuation::End(TaskEnding::Succeeded));
        }
        // The stages of a pipeline share the scope of their parent.
        let outer = self.core.tasks().get(parent).map(|parent| parent.scope);
        match outer {
            Some(outer) if outer == task.scope => match left.filter(|_| !good) {
                Some(attempt) => self.empty(task, attempt, AfterEmptied::End(ending)),
                None => Flow::Exited(ending),
            },
            Some(outer) if good => match check_given(self.core, task) {
                Some(operation) => Flow::Wait(TaskState::Recording(operation, None)),
                None if let Some((operation, from)) = record_word(self.core, task) => {
                    Flow::Wait(TaskState::Recording(operation, Some(from)))
                }
                None => {
                    self.core.hand_over(task.scope, outer);
                    Flow::Exited(ending)
                }
            },
            _ => Flow::Failing(ending),
        }
    }
}

/// Logs that a failure ends the run, unless the log already has the failure as the end. A failure
/// logged earlier might still have been contained: by a `catch` which then passed it on, or by
/// another branch where one success was enough.
fn log_end(core: &mut Core, task: &Task, thrown: &Thrown) {
    if thrown.logged == Logged::End || !core.logs(Level::ENDING) {
        return;
    }
    let (file, line) = (Arc::clone(thrown.failure.file()), thrown.failure.line);
    let event = LogEvent::EndedBy(Box::new(Failure::clone(&thrown.failure)));
    let record = core.record(task, line, event);
    core.request(Effect::Log(LogRecord { file, uncaught: true, ..record }));
}

impl Tasks {
    /// Returns true if a failure of the current command answers a condition or is accepted.
    fn is_answer(&self, task: &Task, thrown: &Thrown) -> bool {
        if task.accepts(thrown) {
            return true;
        }
        match task.barrier() {
            Some(FrameKind::Probe(question, _)) => thrown.is_negative_answer(*question),
            Some(_) => false,
            None => self.parent_of_stage(task).is_some_and(|parent| self.is_answer(parent, thrown)),
        }
    }

    /// Returns true if a failure of the task ends the run, because nothing around the task or its
    /// parents could contain the failure.
    pub(crate) fn is_uncaught(&self, task: &Task, thrown: &Thrown) -> bool {
        let contains = |frame: &Frame| match &frame.kind {
            FrameKind::Try(_) => true,
            FrameKind::TryHead(code) => code.catch.is_some(),
            FrameKind::ForAny(details) => !thrown.retry.is_for_try_only() && !details.is_last(),
            FrameKind::Probe(question, _) => {
                !thrown.retry.is_for_try_only() && thrown.is_negative_answer(*question)
            }
            FrameKind::Accept(statuses, _) => thrown.is_accepted(statuses),
            FrameKind::Finally(group) => group.then.is_failing(),
            FrameKind::Keep { .. }
            | FrameKind::Catch(..)
            | FrameKind::Guard(_)
            | FrameKind::For(_)
            | FrameKind::Call(_)
            | FrameKind::WordCall(_)
            | FrameKind::Redirected { .. }
            | FrameKind::Targets(_)
            | FrameKind::In(_)
            | FrameKind::Remote(_)
            | FrameKind::Transaction(_) => false,
            FrameKind::Join(join) => join.kind.survives_failure(thrown),
        };
        let mut place = Some(task);
        while let Some(task) = place {
            if task.frames.iter().any(contains) {
                return false;
            }
            let Some((parent, index)) = task.parent else { return true };
            place = self.get(parent);
            if place.is_some_and(|parent| parent.has_failed_before(index)) {
                return false;
            }
        }
        false
    }

    /// Returns the current results of the outermost `forall` for which a task waits.
    pub(crate) fn current_branch_results(&self, task: &Task) -> Option<Arc<BranchResults>> {
        let FrameKind::Join(join) = &task.frames.last()?.kind else { return None };
        match &join.kind {
            JoinKind::Branches { tally, clauses, .. } => Some(tally.cut(clauses)),
            JoinKind::Stages(_) | JoinKind::Hedge(_) | JoinKind::Beside(_) => {
                let tasks = join.running.iter().filter_map(|id| self.get(*id));
                tasks.into_iter().find_map(|task| self.current_branch_results(task))
            }
        }
    }
}

impl Unwinder<'_> {
    /// Handles the end of the branch. The run ends with the same result, after all processes have
    /// ended. No enclosing scope exists here to which processes could be handed over.
    pub(crate) fn root_ended(
        &mut self,
        task: &mut Task,
        ending: &TaskEnding,
        attempts: u64,
    ) -> Flow {
        let outcome = match ending {
            TaskEnding::Succeeded => Outcome::Succeeded,
            TaskEnding::Exited(code) => Outcome::Exited(*code),
            TaskEnding::Failed(thrown) => {
                Outcome::Failed(Box::new(Failure::clone(&thrown.failure)))
            }
        };
        if let Some(root) = self.core.parts().remote.root_mut() {
            (root.ending, root.attempts) = (Some(ending.clone()), attempts);
        }
        task.frames.clear();
        task.stack.clear();
        self.empty(task, task.scope, AfterEmptied::Finish(outcome))
    }
}

/// Returns true if a failure ends the `forany` that is the innermost structure.
fn is_last_word(task: &Task, thrown: &Thrown) -> bool {
    match task.frames.last().map(|frame| &frame.kind) {
        Some(FrameKind::ForAny(details)) => details.is_last() || thrown.retry.is_for_try_only(),
        _ => false,
    }
}

/// Names both readings of a `$(name)`, the commands of the task, that is neither a variable nor a
/// command.
fn name_both(tasks: &Tasks, task: &Task, thrown: &mut Thrown) {
    let around = tasks.parent_of_stage(task).map_or(&[][..], |parent| &parent.frames);
    let start = around.iter().rev().find_map(|frame| match &frame.kind {
        FrameKind::WordCall(call) => Some(call.start),
        _ => None,
    });
    let text = task.program.source.text();
    let Some((before, after)) = start.and_then(|start| text.split_at_checked(start)) else {
        return;
    };
    let name = after.split(')').next().unwrap_or_default();
    let is_form = before.ends_with("$(") && is_name(name) && thrown.failure.command == name;
    if is_form && thrown.failure.kind == FailureKind::NotFound {
        let failure = Arc::make_mut(&mut thrown.failure);
        failure.kind = FailureKind::Expression;
        failure.slug = Slug::UnsetVariable;
        failure.message =
            format!("`$({name})`: no variable `{name}` is set, and no command `{name}` was found");
    }
}
