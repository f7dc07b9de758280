//! Propagation of failures to the containing structure, and endings of tasks.

use std::sync::Arc;
use std::time::Duration;

use crate::channels::Passed;
use crate::effect::ScopeId;
use crate::eval::expression::leave_call;
use crate::event::SIGPIPE;
use crate::outcome::{BranchResults, Failure, FailureKind, Outcome, TrySummary};
use crate::pipelines::stages::has_failed_before;
use crate::record::{Level, LogEvent};
use crate::tasks::core::Core;
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind, JoinKind};
use crate::tasks::join::{children, survives_failure};
use crate::tasks::table::Tasks;
use crate::tasks::task::{AfterEmptied, Task, TaskState};
use crate::tasks::trace_walk::TraceWalk;
use crate::unwind::Unwinder;
use crate::unwind::continuation::Continuation;
use crate::unwind::ending::{Logged, Retry, TaskEnding, Thrown};
use crate::values::value::Value;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;

impl Unwinder<'_> {
    /// Leaves structures up to the one that contains the failure.
    pub(crate) fn throw(&mut self, task: &mut Task, mut thrown: Thrown) -> Flow {
        let in_probe = self.core.tasks.is_answer(task, &thrown);
        if !in_probe && thrown.logged == Logged::Not {
            let forgiven = thrown.retry == Retry::BrokenPipe;
            let uncaught = !forgiven && self.core.tasks.is_uncaught(task, &thrown);
            let level = if forgiven { Level::COMMANDS } else { Level::of_failure(uncaught) };
            self.core.add_trace(task, &mut thrown);
            self.core.log_failure(task, &thrown.failure, level, uncaught);
            thrown.logged = Logged::from_uncaught(uncaught);
        }
        while let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            match frame.kind {
                FrameKind::Try(details) => {
                    let scope = details.scope;
                    self.core.scopes.note_failed(scope, &thrown);
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
                    if self.core.next_item(task, details) {
                        self.core.requests.forget_output(task);
                        return Flow::Continue;
                    }
                }
                FrameKind::Probe(question, answered)
                    if thrown.is_negative_answer(question) && !thrown.retry.is_for_try_only() =>
                {
                    self.core.requests.forget_output(task);
                    task.stack.push(Value::Boolean(false));
                    task.jump(answered);
                    return Flow::Continue;
                }
                FrameKind::Accept(statuses, end) => {
                    if self.core.accept(task, &statuses, end, &thrown) {
                        return Flow::Continue;
                    }
                }
                FrameKind::Keep { scope, outer_scope } => {
                    self.core.leave_keep(task, scope, outer_scope);
                }
                // Only the command of a condition answers, and not the calls in its words.
                FrameKind::WordCall(_) => thrown.answers = false,
                FrameKind::Call(call) => {
                    thrown.answers = true;
                    leave_call(task, *call);
                }
                kind => self.abandon_frame(task, kind, false),
            }
        }
        Flow::Exiting(TaskEnding::Failed(thrown))
    }

    /// Leaves a structure early, by a failure or by `return`.
    pub(crate) fn abandon_frame(&mut self, task: &mut Task, kind: FrameKind, succeeded: bool) {
        match kind {
            FrameKind::Call(call) => leave_call(task, *call),
            FrameKind::Redirected { before, .. } => task.io = before,
            FrameKind::Transaction(transaction) => {
                self.core.committer().roll_back(task, *transaction);
            }
            FrameKind::Try(frame) => {
                if frame.attempt > 1 {
                    let depth = task.frames.len() + 1;
                    self.core.log(task, || LogEvent::RetriesEnded(depth), Level::FAILURES);
                }
                self.core.scheduler.cancel(frame.deadline_timer);
                self.core.scheduler.cancel(frame.attempt_timer);
                if frame.phase.is_scoped() && succeeded {
                    self.core.hand_over(frame.scope, frame.outer_scope);
                }
                task.scope = frame.outer_scope;
                self.core.requests.end_replay(frame.replay);
            }
            FrameKind::Finally(group) => task.scope = group.outer_scope,
            FrameKind::Keep { scope, outer_scope } if succeeded => {
                self.core.leave_keep(task, scope, outer_scope);
            }
            FrameKind::Keep { outer_scope, .. } => task.scope = outer_scope,
            FrameKind::TryHead(_)
            | FrameKind::Catch(_)
            | FrameKind::Guard(_)
            | FrameKind::For(_)
            | FrameKind::ForAny(_)
            | FrameKind::Targets(_)
            | FrameKind::Remote(_)
            | FrameKind::WordCall(_)
            | FrameKind::Accept(..)
            | FrameKind::Probe(..) => {}
            FrameKind::Join(mut join) => {
                self.core.scheduler.cancel(join.timer());
                self.core.requests.leave_relay(Some(&mut join));
                self.core.requests.leave_words(Some(&mut join));
                if join.kind.is_grouped()
                    && let Some(outputs) = join.kind.outputs()
                {
                    self.core.grouped_output().log_groups_ended(task, &outputs.tasks());
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
                (FrameKind::Guard(guard), Some(scope)) if !good => {
                    task.enter(FrameKind::Guard(guard));
                    return self.empty(task, scope, AfterEmptied::Leave(ending));
                }
                (FrameKind::Guard(guard), _) => {
                    return self.begin_finally(task, *guard, Continuation::End(ending));
                }
                (FrameKind::Transaction(transaction), _) if good => {
                    return self.core.committer().begin_commit(
                        task,
                        transaction,
                        Continuation::End(ending),
                    );
                }
                // `exit` ends the command like its own end.
                (FrameKind::Keep { scope, outer_scope }, None) => {
                    self.core.leave_keep(task, scope, outer_scope);
                }
                (kind, _) => {
                    if let FrameKind::Try(frame) = &kind
                        && frame.phase.is_scoped()
                    {
                        left = Some(frame.scope);
                        if matches!(ending, TaskEnding::Exited(_)) {
                            self.core.scopes.note_passed(frame.scope, Passed::Failed);
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
                    self.core.log_end(task, &thrown);
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
            return Flow::Finish(outcome);
        };
        // The stages of a pipeline share the scope of their parent.
        let outer = self.core.tasks.get(parent).map(|parent| parent.scope);
        match outer {
            Some(outer) if outer == task.scope => match left.filter(|_| !good) {
                Some(attempt) => self.empty(task, attempt, AfterEmptied::End(ending)),
                None => Flow::Exited(ending),
            },
            Some(outer) if good => match self.core.record_word(task) {
                Some((operation, from)) => Flow::Wait(TaskState::Recording(operation, from)),
                None => {
                    self.core.hand_over(task.scope, outer);
                    Flow::Exited(ending)
                }
            },
            _ => Flow::Failing(ending),
        }
    }
}

impl Core {
    /// Adds the surroundings of a task to the trace of its failure.
    fn add_trace(&self, task: &Task, thrown: &mut Thrown) {
        let failure = Arc::make_mut(&mut thrown.failure);
        let trace = std::mem::take(&mut failure.trace);
        let mut walk = TraceWalk { trace, tries: failure.tries.len() };
        self.walk_out(task, &mut walk);
        failure.trace = walk.trace;
    }

    /// Returns the current activity of a task, or of its first child task.
    pub(crate) fn running(&self, task: &Task) -> RunningWork {
        let mut running = self.running_below(task);
        self.walk_out_of_branch(task, &mut running.walk);
        running.branches = self.tasks.current_branch_results(task);
        running
    }

    /// Returns the current activity of a task, without the surroundings of the task.
    fn running_below(&self, task: &Task) -> RunningWork {
        let mut running = match &task.state {
            TaskState::Command(command) => RunningWork {
                command: command.text.clone(),
                elapsed: Some(self.now() - command.started),
                place: Some((Arc::clone(&task.program.source), task.line())),
                ..RunningWork::default()
            },
            TaskState::Entering(entering) => RunningWork {
                waits_for: Some(Arc::clone(&entering.channel)),
                place: task
                    .tries()
                    .next()
                    .map(|frame| (Arc::clone(&task.program.source), frame.code.line)),
                ..RunningWork::default()
            },
            TaskState::Children | TaskState::Forking | TaskState::AwaitingCleanup => {
                let first = children(task).into_iter().find_map(|child| self.tasks.get(child));
                first.map_or_else(RunningWork::default, |child| {
                    let mut running = self.running_below(child);
                    running.walk.leave_branch(self, task, child.id);
                    running
                })
            }
            _ => RunningWork::default(),
        };
        running.place.get_or_insert_with(|| (Arc::clone(&task.program.source), task.line()));
        running.walk.leave_structures(task);
        let tries = task.placed_tries();
        running.tries.extend(tries.map(|(frame, source)| frame.tried(source, self.now())));
        // An earlier limit explains nothing, but its own cause may.
        let earlier = |failure: &Arc<Failure>| match failure.kind {
            kind if kind.is_limit() => failure.earlier.clone(),
            _ => Some(Arc::clone(failure)),
        };
        let remote_branch = task.frames.last().and_then(|frame| match &frame.kind {
            FrameKind::Remote(remote_branch) => remote_branch.failure.clone(),
            _ => None,
        });
        running.earlier = running.earlier.or(remote_branch);
        let earlier = || task.tries().find_map(|frame| frame.failure.as_ref().and_then(earlier));
        running.earlier = running.earlier.or_else(earlier);
        running
    }

    /// Returns the current activity inside the first `keep` structures. Tries among those
    /// structures are omitted, because they continue.
    pub(crate) fn running_inside(&self, task: &Task, keep: usize) -> RunningWork {
        let mut running = self.running(task);
        let around = task.frames.iter().take(keep);
        let around = around.filter(|frame| matches!(frame.kind, FrameKind::Try(_))).count();
        running.tries.truncate(running.tries.len() - around);
        running
    }
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
            | FrameKind::Catch(_)
            | FrameKind::Guard(_)
            | FrameKind::For(_)
            | FrameKind::Call(_)
            | FrameKind::WordCall(_)
            | FrameKind::Redirected { .. }
            | FrameKind::Targets(_)
            | FrameKind::Remote(_)
            | FrameKind::Transaction(_) => false,
            FrameKind::Join(join) => survives_failure(&join.kind, thrown),
        };
        let mut place = Some(task);
        while let Some(task) = place {
            if task.frames.iter().any(contains) {
                return false;
            }
            let Some((parent, index)) = task.parent else { return true };
            place = self.get(parent);
            if place.is_some_and(|parent| has_failed_before(parent, index)) {
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
            JoinKind::Stages(_) | JoinKind::Hedge(_) => {
                let tasks = join.running.iter().filter_map(|id| self.get(*id));
                tasks.into_iter().find_map(|task| self.current_branch_results(task))
            }
        }
    }
}

/// Activity that is cut short by a limit.
#[derive(Debug, Default)]
pub(crate) struct RunningWork {
    /// Running command, if any.
    pub command: String,
    /// Duration of the command.
    pub elapsed: Option<Duration>,
    /// Channel for which an attempt waits.
    pub waits_for: Option<Name>,
    /// Source text and line.
    pub place: Option<(Arc<Source>, u32)>,
    /// Enclosing tries, innermost first.
    pub tries: Vec<TrySummary>,
    /// Enclosing calls and branches.
    pub walk: TraceWalk,
    /// Failure of the innermost `try` that has failed before.
    pub earlier: Option<Arc<Failure>>,
    /// Results of the branches of the outermost `forall`.
    pub branches: Option<Arc<BranchResults>>,
}

impl RunningWork {
    /// Creates the failure of this work. `caught` is the failure that a `catch` around it handles.
    pub(crate) fn failure(
        self,
        task: &Task,
        kind: FailureKind,
        code: i32,
        message: String,
        caught: Option<Arc<Failure>>,
    ) -> Arc<Failure> {
        let (source, line) =
            self.place.unwrap_or_else(|| (Arc::clone(&task.program.source), task.line()));
        Arc::new(Failure {
            kind,
            code,
            errno: None,
            slug: kind.slug(),
            message,
            command: self.command,
            elapsed: self.elapsed,
            source,
            line,
            tries: self.tries,
            trace: self.walk.trace,
            earlier: self.earlier.or(caught),
            branches: self.branches,
            printed: None,
            output: None,
        })
    }
}
