//! Parallel tasks: their start, and the continuation of their parent when a task ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    Forker,
    stages::{join_stages, stage_ended},
};
use crate::branches::{Failed, JoinFrame, JoinKind, Tally};
use crate::core::{Flow, ScopeWatch};
use crate::effect::{Effect, ScopeId, TaskId};
use crate::endings::{TaskEnding, TaskResidue, Thrown};
use crate::frames::{Frame, FrameKind};
use crate::invocation::IoTable;
use crate::items::Items;
use crate::program::{Address, Loop};
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent, LogRecord};
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::unwind::{Unwinder, take_over};
use crate::values::Value;
use ftsh_syntax::clauses::ForAllClauses;

impl Forker<'_> {
    /// Creates a child task with a copy of the parent's state.
    pub(crate) fn fork(
        &mut self,
        task: &mut Task,
        index: usize,
        at: Address,
        io: IoTable,
        scope: ScopeId,
    ) -> Box<Task> {
        let id = TaskId(self.core.next_id());
        // A loop may have a hundred thousand branches, so siblings share one context.
        let sibling =
            task.top_join().and_then(|join| self.core.tasks().get(*join.running.first()?));
        let inherited = match sibling {
            Some(sibling) => Arc::clone(&sibling.inherited),
            None => Arc::new(self.core.child_context(task)),
        };
        let child = Box::new(Task {
            id,
            parent: Some((task.id, index)),
            program: Arc::clone(&task.program),
            at,
            stack: Vec::new(),
            frames: Vec::new(),
            variables: task.variables.fork(),
            args: Arc::clone(&task.args),
            directory: task.directory.clone(),
            umask: task.umask,
            slot: task.slot,
            io,
            scope,
            inherited,
            state: TaskState::Ready,
            since: self.core.now(),
            attempts: 0,
            expanded: None,
            progress: None,
            files: None,
            cancellations: Vec::new(),
            locals: Vec::new(),
        });
        // Stages share the scope of their parent, and the group of a `with` is no branch.
        let is_branch = scope != task.scope && index == 0;
        self.core.log_at(&child, task.line(), || SpanEvent::TaskBegan { is_branch }, Level::SPANS);
        child
    }

    /// Continues after all children have ended, of which a success leaves no output to report.
    pub(crate) fn joined(&mut self, task: &mut Task) -> Flow {
        let flow = joined(task);
        if let Flow::Continue = flow {
            self.core.forget_output(task);
        }
        flow
    }

    /// Handles the end of a child task. Returns the parent's control flow, and the reason for
    /// ending the other children if they must end.
    pub(crate) fn child_ended(
        &mut self,
        task: &mut Task,
        index: usize,
        (child, attempts): (TaskId, u64),
        ending: TaskEnding,
        residue: TaskResidue,
    ) -> (Flow, Option<&'static str>) {
        let ended = SpanEvent::TaskEnded(ending.failure().map(|(kind, _)| kind));
        for event in [LogEvent::RetriesEnded(0), ended.into()] {
            if self.core.logs(event.level()) {
                let record = self.core.record(task, task.line(), event);
                self.core.request(Effect::Log(LogRecord { task: Some(child), ..record }));
            }
        }
        let is_root = self.core.remote().is_root(task.id);
        let awaits_cleanup = matches!(task.state, TaskState::AwaitingCleanup);
        let is_good = matches!(ending, TaskEnding::Succeeded);
        let step = if is_good { None } else { self.core.branch_step(task, child, 0) };
        let Some(join) = task.top_join() else {
            return (Flow::broken(task, JoinFrame::MISSING), None);
        };
        join.running.remove(&child);
        if awaits_cleanup {
            // Changes by a canceled task are lost, whether or not it had `finally` groups. The group
            // of a `with` is no branch.
            if let JoinKind::Beside(beside) = &mut join.kind {
                beside.keep_residue(child, residue);
            }
            let is_last = join.running.is_empty();
            self.core.branch_ended(task, (child, attempts), ending.failure());
            let flow = if is_last {
                Unwinder::new(self.core).continue_cleanup(task)
            } else {
                Flow::Wait(TaskState::AwaitingCleanup)
            };
            return (flow, None);
        }
        if is_root {
            self.core.branch_ended(task, (child, attempts), ending.failure());
            return (Unwinder::new(self.core).root_ended(task, &ending, attempts), None);
        }
        match &mut join.kind {
            JoinKind::Stages(_) => {
                let failed = match &ending {
                    _ if is_good || ending.is_broken_pipe() => None,
                    TaskEnding::Failed(thrown) => Some(thrown.clone()),
                    TaskEnding::Exited(code) => Some(task.exited("a stage", *code)),
                    TaskEnding::Succeeded => None,
                };
                let ended = stage_ended(task, ending, residue);
                let Some(JoinKind::Stages(stages)) = task.top_join().map(|it| &mut it.kind) else {
                    return (Flow::broken(task, JoinFrame::MISSING), None);
                };
                match stages.get_mut(index) {
                    Some(slot) => *slot = Some(ended),
                    None => {
                        let broken = task.broken("a stage more than there are");
                        return (Flow::Throw(broken), None);
                    }
                }
                match (self.joined(task), failed) {
                    // The other stages may be servers, which would run without a group for ever.
                    (Flow::Wait(_), Some(thrown)) if self.leave_out_group(task) => {
                        let failure = Arc::clone(&thrown.failure);
                        let after = AfterEmptied::End(TaskEnding::Failed(thrown));
                        let scope = task.base_scope();
                        let mut unwinder = Unwinder::new(self.core);
                        (unwinder.cut_down(task, 0, scope, &failure, after), None)
                    }
                    (flow, _) => (flow, None),
                }
            }
            JoinKind::Branches { clauses, tally, outputs, .. } => {
                if let Some(outputs) = outputs {
                    outputs.end(child);
                }
                let is_decided = tally.record_result(child, &ending, step, clauses);
                let decided = is_decided.then(|| ending.reason());
                self.core.branch_ended(task, (child, attempts), ending.failure());
                (Flow::fork_again(task), decided)
            }
            JoinKind::Beside(beside) => {
                beside.keep_residue(child, residue);
                let (failure, timer) = (ending.failure(), beside.timer.take());
                let decided = beside.record_result(child, ending);
                let decided = decided.filter(|_| !join.running.is_empty());
                self.core.cancel(timer);
                self.core.branch_ended(task, (child, attempts), failure);
                (self.joined(task), decided)
            }
            JoinKind::Hedge(_) => {
                let decided = self.hedge_ended(task, child, &ending, residue);
                self.core.branch_ended(task, (child, attempts), ending.failure());
                (Flow::fork_again(task), decided)
            }
        }
    }
}

/// Continues after all children have ended.
fn joined(task: &mut Task) -> Flow {
    if task.top_join().is_some_and(|join| !join.is_done()) {
        return Flow::Wait(TaskState::Children);
    }
    let Some(Frame { height, kind: FrameKind::Join(join) }) = task.frames.pop() else {
        return Flow::broken(task, JoinFrame::MISSING);
    };
    task.stack.truncate(height);
    let mut what = "a stage";
    let failed = match join.kind {
        JoinKind::Branches { clauses, tally, .. } => {
            task.note_branches(|| tally.cut(&clauses));
            if let Some(failed) = tally.result(&clauses) {
                return Flow::Throw(branches_failed(task, failed));
            }
            None
        }
        JoinKind::Hedge(mut hedge) => {
            if let Some(word) = hedge.take_failed_word() {
                task.variables.set(&hedge.code.variable, word);
            }
            match hedge.result() {
                Some(Ok(residue)) => {
                    take_over(task, residue);
                    None
                }
                Some(Err(thrown)) => return Flow::Throw(thrown),
                None => return Flow::broken(task, "a hedged `forany` ends without a word"),
            }
        }
        JoinKind::Beside(mut beside) => {
            let then = beside.leaves.take();
            if let Some(residue) = beside.residue.take() {
                take_over(task, residue);
            }
            match (beside.result(), then) {
                (Some((false, TaskEnding::Succeeded)), Some(then)) => return Flow::Proceed(then),
                (Some((false, TaskEnding::Succeeded)), None) => {}
                (Some((_, TaskEnding::Failed(thrown))), _) => return Flow::Throw(thrown),
                (Some((true, TaskEnding::Exited(code))), _) => {
                    return Flow::Throw(task.exited("command", code));
                }
                (Some((false, ending @ TaskEnding::Exited(_))), _) => return Flow::Exiting(ending),
                _ => return Flow::broken(task, "a `with` ends without its group"),
            }
            None
        }
        JoinKind::Stages(stages) => {
            if stages.len() == 1 {
                what = "`$(…)`";
            }
            join_stages(task, stages)
        }
    };
    match failed {
        Some(TaskEnding::Failed(thrown)) => Flow::Throw(thrown),
        Some(TaskEnding::Exited(code)) => Flow::Throw(task.exited(what, code)),
        Some(TaskEnding::Succeeded) | None => {
            task.jump(join.end);
            Flow::Continue
        }
    }
}

/// Creates the failure of a `forall`.
pub(crate) fn branches_failed(task: &Task, failed: Failed) -> Thrown {
    let (kind, code) = failed.kind();
    let errno = failed.errno();
    let mut thrown = match (failed.message, failed.first) {
        (Some(message), _) => {
            Thrown { retry: failed.retry, ..task.thrown(kind, code, message, "").caused_by(errno) }
        }
        (None, Some(TaskEnding::Failed(thrown))) => thrown,
        (None, Some(TaskEnding::Exited(code))) => task.exited("a branch", code).inside(failed.step),
        (None, Some(TaskEnding::Succeeded) | None) => task.broken("a `forall` fails for no reason"),
    };
    Arc::make_mut(&mut thrown.failure).branches = Some(failed.branches);
    thrown
}

impl Forker<'_> {
    /// Begins the single branch of a machine that runs a branch of another machine's run.
    pub(crate) fn begin_root(&mut self, task: &mut Task, code: &Arc<Loop>, word: Value) {
        let mut items = Items::default();
        items.push(word.clone());
        let io = task.io.clone();
        let kind = JoinKind::Branches {
            code: Arc::clone(code),
            clauses: Box::new(ForAllClauses::default()),
            io: io.clone(),
            tally: Box::new(Tally::new(items, None, self.core.now())),
            outputs: None,
            relay: None,
            elsewhere: None,
            gate: None,
        };
        let running = BTreeSet::new();
        task.enter(FrameKind::Join(Box::new(JoinFrame { end: code.end, running, kind })));
        let slot = task.slot;
        let (branch, _) = self.begin_branch(task, "forall", code, (word.clone(), slot), io);
        // The files were checked before the branch was dispatched.
        if let Some(branch) = self.core.parts().tasks.get_mut(branch) {
            (branch.at, branch.files) = (code.body, task.files.take());
        }
        let now = self.core.now();
        if let Some(JoinKind::Branches { tally, .. }) = task.top_join().map(|it| &mut it.kind) {
            tally.next();
            tally.began(branch, word, slot, now);
        }
        let conditions = self.core.remote().root().map(|root| root.around.conditions);
        if let (Some(begun), Some(conditions)) = (self.core.tasks().get(branch), conditions) {
            let (scope, watch) =
                (begun.scope, ScopeWatch { conditions, owner: branch, attempt: None });
            self.core.parts().scopes.set_watch(scope, watch);
        }
    }
}
