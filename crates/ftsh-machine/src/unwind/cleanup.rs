//! Cleanup of canceled tasks. `finally` groups run after all processes of the task have ended, and
//! share half of the kill timeout. The other half is for killing, before and after the groups.
//!
//! All work of a canceled task ends, and so do its child tasks. Tasks with `finally` groups still
//! to run are kept, in the state `AwaitingCleanup`. When the scope is empty, the task unwinds its
//! structures from the inside out, after its child tasks have done the same. Each guard on the way
//! runs its group. Grouped output of branches is written then, too.

use std::sync::Arc;
use std::time::Duration;

use super::{Unwinder, finally::is_group, leaving::keep_group};
use crate::atomic::Committer;
use crate::branches::JoinKind;
use crate::core::Flow;
use crate::effect::ScopeId;
use crate::endings::{Continuation, Logged, Retry, TaskEnding, Thrown};
use crate::frames::{Frame, FrameKind};
use crate::grouped_output::GroupedOutput;
use crate::outcome::{Failure, KindAndCode, Outcome};
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent};
use crate::scheduler::Timer;
use crate::tasks::{AfterEmptied, Cancellation, Task, TaskState};
use crate::time::Deadline;
use crate::transactions::Transaction;

/// Violated invariant: a task that cleans up is canceled.
const NOT_CANCELED: &str = "a task cleans up that is not canceled";

impl Unwinder<'_> {
    /// Cancels all but the first `keep` structures of a task, and ends everything in `scope`. Runs
    /// the `finally` groups concerned, then continues with `after`.
    pub(crate) fn cut_down(
        &mut self,
        task: &mut Task,
        keep: usize,
        scope: ScopeId,
        failure: &Arc<Failure>,
        after: AfterEmptied,
    ) -> Flow {
        let share = self.core.config().kill_timeout / 2;
        let cut =
            Cancellation { emptied: Some(scope), ..self.cancellation(keep, scope, failure, after) };
        if !share.is_zero() && self.core.tasks().has_group_in_progress(task, keep) {
            return self.defer_cut(task, cut);
        }
        self.cut_at_once(task, cut)
    }

    /// Returns a cancellation that begins now, of all but the first `keep` structures of a task.
    fn cancellation(
        &self,
        keep: usize,
        scope: ScopeId,
        failure: &Arc<Failure>,
        after: AfterEmptied,
    ) -> Cancellation {
        Cancellation {
            keep,
            after,
            failure: Arc::clone(failure),
            emptied: None,
            scope,
            since: self.core.now(),
            limit: Deadline::NONE,
            signal: self.core.scopes().signal(scope),
            grace: self.core.config().kill_timeout / 2,
            timer: None,
            waits: false,
        }
    }

    /// Executes a cut, also of running `finally` groups.
    pub(crate) fn cut_at_once(&mut self, task: &mut Task, mut cut: Cancellation) -> Flow {
        self.core.cancel(cut.timer.take());
        if cut.waits && cut.emptied.is_none() {
            return self.end_groups(task, &cut);
        }
        let share = self.core.config().kill_timeout / 2;
        let (scope, ends) = (cut.scope, cut.since + self.core.config().kill_timeout);
        let left = ends - self.core.now();
        // Without a kill timeout, no time is left for groups.
        if share.is_zero() || !self.prepare_cleanup(task, cut.keep, cut.reason()) {
            self.drop_structures(task, cut.keep, cut.reason());
            restore(task);
            return self.empty_within(task, scope, left, cut.after);
        }
        cut.limit =
            if std::mem::take(&mut cut.waits) { Deadline::at(ends) } else { Deadline::NONE };
        cut.scope = self.core.scopes().nesting().parent(scope).unwrap_or(ScopeId::SCRIPT);
        self.empty_within(task, scope, left.min(share), AfterEmptied::Clean(Box::new(cut)))
    }

    /// Ends the groups whose time is over before that of other groups inside the same cut.
    fn end_groups(&mut self, task: &mut Task, cut: &Cancellation) -> Flow {
        if self.core.tasks().has_group_in_progress(task, cut.keep) {
            self.core.terminate(cut.scope, self.core.config().kill_timeout / 2);
            self.prepare_cleanup(task, cut.keep, cut.reason());
        }
        self.resume_cut_around(task)
    }

    /// Cancels like `cut_down`, without running `finally` groups.
    pub(crate) fn cut_off(
        &mut self,
        task: &mut Task,
        keep: usize,
        scope: ScopeId,
        failure: &Failure,
        after: AfterEmptied,
    ) -> Flow {
        self.drop_structures(task, keep, failure.reason());
        restore(task);
        self.empty(task, scope, after)
    }

    /// Cancels like `cut_down` where no process runs any more.
    pub(crate) fn cut_lost(
        &mut self,
        task: &mut Task,
        keep: usize,
        scope: ScopeId,
        failure: &Arc<Failure>,
        after: AfterEmptied,
    ) -> Flow {
        let share = self.core.config().kill_timeout / 2;
        let has_groups = !share.is_zero() && self.prepare_cleanup(task, keep, failure.reason());
        if !has_groups {
            self.drop_structures(task, keep, failure.reason());
        }
        self.core.merge_inner(scope);
        if !has_groups {
            return self.emptied(task, after);
        }
        let cancellation = self.cancellation(keep, scope, failure, after);
        self.begin_cleanup(task, cancellation)
    }

    /// Stops a task and its child tasks, and unwinds up to the innermost `finally` group still to
    /// run. Running groups are cut short. Returns false if there is no such group.
    fn prepare_cleanup(&mut self, task: &mut Task, keep: usize, why: KindAndCode) -> bool {
        // Children first: the join that counts them is among the structures left below.
        for id in task.children() {
            if let Some(child) = self.core.parts().tasks.take(id) {
                self.prepare_child_cleanup(task, child, why);
            }
        }
        self.halt_task(task);
        self.drop_cancellations(task, keep);
        for frame in task.frames.iter_mut().skip(keep) {
            match &mut frame.kind {
                FrameKind::Try(frame) => {
                    self.core.cancel(frame.deadline_timer.take());
                    self.core.cancel(frame.attempt_timer.take());
                }
                FrameKind::Finally(group) => group.cut = true,
                _ => {}
            }
        }
        while task.frames.len() > keep {
            match task.frames.last().map(|frame| &frame.kind) {
                _ if is_output_held(task, keep) => return true,
                Some(FrameKind::Guard(_)) => return true,
                Some(FrameKind::Join(join))
                    if !join.running.is_empty() || join.kind.has_unwritten_output() =>
                {
                    return true;
                }
                _ => self.leave_cut(task),
            }
        }
        false
    }

    /// Stops a child task, which is kept only with `finally` groups to run.
    pub(crate) fn prepare_child_cleanup(
        &mut self,
        task: &mut Task,
        mut child: Box<Task>,
        why: KindAndCode,
    ) {
        self.log_canceled(&child);
        let failure = child.cut_short(why);
        if self.prepare_cleanup(&mut child, 0, why) {
            child.state = TaskState::AwaitingCleanup;
            self.core.parts().tasks.put(child);
        } else {
            self.core.branch_ended(task, (child.id, child.attempts), failure);
            keep_group(task, &mut child);
            if let Some(join) = task.top_join() {
                join.running.remove(&child.id);
            }
        }
    }

    /// Begins the cleanup of a canceled task, whose scope is empty.
    pub(crate) fn begin_cleanup(
        &mut self,
        task: &mut Task,
        mut cancellation: Cancellation,
    ) -> Flow {
        let share = self.core.config().kill_timeout / 2;
        cancellation.limit = cancellation.limit.min(Deadline::at(self.core.now() + share));
        cancellation.grace = cancellation.since + self.core.config().kill_timeout
            - cancellation.limit.timer_moment();
        cancellation.scope = self.core.new_scope(Some(cancellation.scope));
        self.core.parts().scopes.set_signal(cancellation.scope, cancellation.signal);
        cancellation.emptied.get_or_insert(cancellation.scope);
        if cancellation.limit.is_past(self.core.now()) {
            self.drop_structures(task, cancellation.keep, cancellation.reason());
            return self.end_cleanup(task, cancellation);
        }
        let timer = Timer::Cleaning { task: task.id, keep: cancellation.keep };
        cancellation.timer = Some(self.core.arm(cancellation.limit.timer_moment(), timer));
        task.cancellations.push(cancellation);
        self.continue_cleanup(task)
    }

    /// Unwinds structures up to the next `finally` group.
    pub(crate) fn continue_cleanup(&mut self, task: &mut Task) -> Flow {
        let keep = match task.cancellations.last() {
            Some(cut) if cut.waits => return self.resume_cut(task),
            Some(cancellation) => cancellation.keep,
            None => return Flow::broken(task, NOT_CANCELED),
        };
        while task.frames.len() > keep {
            if task.top_join().is_some_and(|join| !join.running.is_empty()) {
                self.clean_up_children(task);
                return Flow::Wait(TaskState::AwaitingCleanup);
            }
            if let Some(flow) = GroupedOutput::new(self.core).flush_canceled(task) {
                return flow;
            }
            let is_held = is_output_held(task, keep);
            let Some(frame) = task.frames.pop() else { break };
            task.stack.truncate(frame.height);
            match frame.kind {
                kind if is_held => return self.write_canceled(task, kind),
                FrameKind::Guard(guard) => {
                    return self.begin_finally(task, *guard, Continuation::Canceled);
                }
                kind => self.cut_frame(task, kind),
            }
        }
        match task.cancellations.pop() {
            Some(cancellation) => self.end_cleanup(task, cancellation),
            None => Flow::broken(task, NOT_CANCELED),
        }
    }

    /// Writes the held output of a canceled attempt, after which no other follows.
    fn write_canceled(&mut self, task: &mut Task, kind: FrameKind) -> Flow {
        if let Some(cancellation) = task.cancellations.last() {
            task.scope = cancellation.scope;
        }
        let held = match kind {
            FrameKind::Transaction(held) => Some(held),
            FrameKind::Try(mut frame) => {
                let buffer = frame.held.take();
                task.enter(FrameKind::Try(frame));
                buffer.map(|buffer| Box::new(Transaction::held(buffer, task.io.clone())))
            }
            _ => None,
        };
        match held {
            Some(held) => Committer::new(self.core).write_canceled(task, held),
            None => Flow::Proceed(Continuation::Canceled),
        }
    }

    /// Makes the child tasks of a canceled task clean up first.
    fn clean_up_children(&mut self, task: &Task) {
        let Some(cancellation) = task.cancellations.last() else { return };
        for id in task.children() {
            let Some(child) = self.core.parts().tasks.get_mut(id) else { continue };
            if !matches!(child.state, TaskState::AwaitingCleanup) {
                continue;
            }
            let failure = Arc::clone(&cancellation.failure);
            let thrown = Thrown {
                failure: Arc::clone(&failure),
                retry: Retry::AsUsual,
                logged: Logged::Failure,
                answers: true,
            };
            child.cancellations.push(Cancellation {
                keep: 0,
                after: AfterEmptied::End(TaskEnding::Failed(thrown)),
                failure,
                emptied: None,
                scope: cancellation.scope,
                since: cancellation.since,
                limit: cancellation.limit,
                signal: cancellation.signal,
                grace: cancellation.grace,
                timer: None,
                waits: false,
            });
            child.state = TaskState::Cleaning;
            self.core.queue(id);
        }
    }

    /// Ends a cleanup after all groups have run or their time has passed. Processes left by the
    /// groups are killed.
    fn end_cleanup(&mut self, task: &mut Task, cancellation: Cancellation) -> Flow {
        self.core.cancel(cancellation.timer);
        restore(task);
        let Some(emptied) = cancellation.emptied else {
            return self.emptied(task, cancellation.after);
        };
        // The script's own scope exists again after it was emptied, and contains the scope of the
        // groups.
        let scope = if emptied == ScopeId::SCRIPT { emptied } else { cancellation.scope };
        if matches!(cancellation.after, AfterEmptied::Finish(Outcome::Interrupted(_))) {
            self.core.parts().scopes.interrupt(scope);
        }
        self.empty_within(task, scope, cancellation.grace, cancellation.after)
    }

    /// Forgets inner cleanups, replaced by a new cancellation.
    fn drop_cancellations(&mut self, task: &mut Task, keep: usize) {
        let over = task.cancellations.extract_if(.., |cancellation| cancellation.keep >= keep);
        self.core.cancel(over.filter_map(|cancellation| cancellation.timer));
    }

    /// Hastens the end of the run, skipping the remaining groups; kills at once if `kills`.
    pub(crate) fn hasten(&mut self, main: &mut Task, kills: bool) -> Flow {
        if !main.cancellations.is_empty() {
            // The outermost cancellation covers all others.
            let mut cancellation = main.cancellations.remove(0);
            self.drop_structures(main, cancellation.keep, cancellation.reason());
            if kills {
                cancellation.grace = Duration::ZERO;
            }
            return self.end_cleanup(main, cancellation);
        }
        match std::mem::replace(&mut main.state, TaskState::Ready) {
            TaskState::Emptying(scope, AfterEmptied::Clean(cancellation)) => {
                self.drop_structures(main, cancellation.keep, cancellation.reason());
                if kills {
                    self.core.kill(scope);
                }
                Flow::Wait(TaskState::Emptying(scope, cancellation.after))
            }
            state => Flow::Wait(state),
        }
    }

    /// Drops all but the first `keep` structures of a task, with its child tasks. Each skipped or
    /// interrupted group is logged.
    pub(crate) fn drop_structures(&mut self, task: &mut Task, keep: usize, why: KindAndCode) {
        for child in task.children() {
            if let Some(mut child) = self.core.parts().tasks.take(child) {
                self.log_canceled(&child);
                let failure = child.cut_short(why);
                let ended = || SpanEvent::TaskEnded(failure.map(|(kind, _)| kind));
                self.core.log_at(&child, child.line(), ended, Level::SPANS);
                self.drop_structures(&mut child, 0, why);
                self.core.branch_ended(task, (child.id, child.attempts), failure);
                keep_group(task, &mut child);
            }
        }
        self.halt_task(task);
        self.drop_cancellations(task, keep);
        while task.frames.len() > keep {
            self.leave_cut(task);
        }
    }

    /// Leaves a canceled structure. Results of branches are kept for an enclosing `finally` group,
    /// and a skipped or interrupted group is logged.
    pub(crate) fn cut_frame(&mut self, task: &mut Task, kind: FrameKind) {
        let cut = match &kind {
            FrameKind::Guard(guard) => Some((guard.code.line, false)),
            FrameKind::Finally(group) => Some((group.code.line, true)),
            FrameKind::Join(join) => {
                if let JoinKind::Branches { tally, clauses, .. } = &join.kind {
                    task.note_branches(|| tally.cut(clauses));
                }
                None
            }
            _ => None,
        };
        if let Some((line, begun)) = cut {
            let event = LogEvent::FinallyCut { begun };
            let level = event.level();
            self.core.log_at(task, line, || event, level);
        }
        self.abandon_frame(task, kind, false);
    }

    /// Handles the deadline of the groups.
    pub(crate) fn cleanup_deadline_passed(&mut self, task: &mut Task, keep: usize) -> Flow {
        let at = task.cancellations.iter().position(|cancellation| cancellation.keep == keep);
        let Some(at) = at else { return Flow::keep_waiting(task) };
        let cancellation = task.cancellations.remove(at);
        if cancellation.waits {
            return self.cut_at_once(task, cancellation);
        }
        self.drop_structures(task, keep, cancellation.reason());
        self.end_cleanup(task, cancellation)
    }

    /// Logs the cancellation of a child task, unless already logged.
    fn log_canceled(&mut self, child: &Task) {
        if !matches!(child.state, TaskState::AwaitingCleanup | TaskState::Cleaning)
            && child.cancellations.is_empty()
        {
            self.core.log(child, || LogEvent::Canceled, Level::STRUCTURES);
        }
    }
}

impl Task {
    /// Returns the deadline of a cleanup in progress, and the number of tries inside its `finally`
    /// group. Writing the output of canceled branches counts as a cleanup.
    pub(crate) fn cleanup_deadline(&self) -> (usize, Option<Deadline>) {
        let writes = |frame: &Frame| match &frame.kind {
            FrameKind::Join(join) => join.kind.outputs().is_some_and(|it| it.scope().is_some()),
            FrameKind::Transaction(held) => held.commit.is_some(),
            _ => false,
        };
        if let Some(cancellation) = self.cancellations.last()
            && self.frames.last().is_some_and(writes)
        {
            return (0, Some(cancellation.limit));
        }
        let mut tries = 0;
        for frame in self.frames.iter().rev() {
            match &frame.kind {
                FrameKind::Try(_) => tries += 1,
                FrameKind::Finally(group) if group.limit.is_some() => return (tries, group.limit),
                _ => {}
            }
        }
        (tries, None)
    }

    /// Returns the number of tries inside the innermost running `finally` group.
    pub(crate) fn tries_in_group(&self) -> Option<usize> {
        let group = self.frames.iter().rposition(is_group)?;
        Some(self.frames[group..].iter().filter(|it| matches!(it.kind, FrameKind::Try(_))).count())
    }

    /// Returns true if a cut that keeps exactly `keep` structures is in progress.
    pub(crate) fn is_cut_down_to(&self, keep: usize) -> bool {
        self.all_cancellations().any(|cancellation| cancellation.keep == keep)
    }

    /// Iterates over the cancellations in progress.
    pub(crate) fn all_cancellations(&self) -> impl Iterator<Item = &Cancellation> {
        let begins = match &self.state {
            TaskState::Emptying(_, AfterEmptied::Clean(cancellation)) => Some(&**cancellation),
            _ => None,
        };
        self.cancellations.iter().chain(begins)
    }

    /// Returns the planned outcome of a run that is ending, with the scope being emptied.
    pub(crate) fn finishing(&mut self) -> Option<(ScopeId, &mut Outcome)> {
        if let Some(cancellation) = self.cancellations.first_mut() {
            return finishing(cancellation);
        }
        match &mut self.state {
            TaskState::Emptying(scope, AfterEmptied::Finish(planned)) => Some((*scope, planned)),
            TaskState::Emptying(_, AfterEmptied::Clean(cancellation)) => finishing(cancellation),
            _ => None,
        }
    }
}

impl Cancellation {
    /// Returns the kind and the code of the failure of canceled work.
    pub(crate) fn reason(&self) -> KindAndCode {
        self.failure.reason()
    }
}

/// Returns true if the innermost structure holds output of a `try` or `forany` that a cut down to
/// `keep` structures ends.
fn is_output_held(task: &Task, keep: usize) -> bool {
    let is_owner = |it: &Frame| matches!(it.kind, FrameKind::Try(_) | FrameKind::ForAny(_));
    match task.frames.last().map(|frame| &frame.kind) {
        Some(FrameKind::Transaction(it)) if it.is_held() => {
            task.frames.iter().rposition(is_owner).is_some_and(|owner| owner >= keep)
        }
        Some(FrameKind::Try(frame)) => frame.held.is_some(),
        _ => false,
    }
}

fn finishing(cancellation: &mut Cancellation) -> Option<(ScopeId, &mut Outcome)> {
    match (&mut cancellation.after, cancellation.emptied) {
        (AfterEmptied::Finish(planned), Some(scope)) => Some((scope, planned)),
        _ => None,
    }
}

/// Restores the scope and the stack of the innermost remaining structure.
fn restore(task: &mut Task) {
    if let Some(Frame { height, kind: FrameKind::Try(frame) }) = task.frames.last() {
        let (height, scope) = (*height, frame.scope);
        task.stack.truncate(height);
        task.scope = scope;
    }
}
