//! Cuts deferred by running `finally` groups.
//!
//! A limit, a signal or a failing sibling ends everything inside the cut, except for `finally`
//! groups already running. These groups receive the same share of the kill timeout as a new group,
//! counted from the cut. The cut takes place when no such group is left, or after the share.

use std::sync::Arc;

use super::{Unwinder, finally::is_group_in_progress};
use crate::attempts::{TryFrame, TryPhase};
use crate::core::Flow;
use crate::effect::{ScopeId, TaskId};
use crate::endings::{Continuation, Retry, TaskEnding, Thrown};
use crate::frames::FrameKind;
use crate::outcome::KindAndCode;
use crate::record::{Level, LogEvent};
use crate::scheduler::Timer;
use crate::tasks::{AfterEmptied, Cancellation, Task, TaskState, Tasks};
use crate::time::Deadline;

impl Tasks {
    /// Returns true if a `finally` group runs inside all but the first `keep` structures of a task.
    pub(crate) fn has_group_in_progress(&self, task: &Task, keep: usize) -> bool {
        task.frames.iter().skip(keep).any(is_group_in_progress)
            || task
                .children()
                .iter()
                .filter_map(|child| self.get(*child))
                .any(|child| self.has_group_in_progress(child, 0))
    }

    /// Returns true if a cut of all but the first `keep` structures, or of more structures around
    /// them, has begun. The search ends at a running `finally` group, whose inside is not cut with
    /// its surroundings.
    pub(crate) fn is_being_cut(&self, task: &Task, mut keep: usize) -> bool {
        for task in self.and_around(task) {
            let group = task.frames.iter().take(keep).rposition(is_group_in_progress);
            let inside = group.map_or(0, |at| at + 1);
            if task.all_cancellations().any(|cut| (inside..=keep).contains(&cut.keep)) {
                return true;
            }
            if group.is_some() {
                return false;
            }
            keep = usize::MAX;
        }
        false
    }
}

impl Unwinder<'_> {
    /// Ends everything inside a cut except for running `finally` groups, which receive their share
    /// of time.
    pub(crate) fn defer_cut(&mut self, task: &mut Task, mut cut: Cancellation) -> Flow {
        let limit = Deadline::at(cut.since + self.core.config().kill_timeout / 2);
        let limit = self.supersede(task, cut.keep).map_or(limit, |inner| inner.limit.min(limit));
        cut.waits = true;
        cut.limit = limit;
        cut.timer = Some(
            self.core.arm(limit.timer_moment(), Timer::Cleaning { task: task.id, keep: cut.keep }),
        );
        let (keep, scope, why) = (cut.keep, cut.scope, cut.reason());
        // From the outside in: the last cancellation is always the innermost.
        let place = task.cancellations.partition_point(|cancellation| cancellation.keep < keep);
        task.cancellations.insert(place, cut);
        let mut spared = Vec::new();
        self.spare_groups(task, keep, (limit, why), &mut spared);
        self.core.terminate_beside(scope, &spared);
        Flow::keep_waiting(task)
    }

    /// Executes a deferred cut, unless a group is still running.
    pub(crate) fn resume_cut(&mut self, task: &mut Task) -> Flow {
        match task.cancellations.pop_if(|cut| cut.waits) {
            Some(cut) if self.core.tasks().has_group_in_progress(task, cut.keep) => {
                task.cancellations.push(cut);
                Flow::Wait(TaskState::AwaitingCleanup)
            }
            Some(cut) => self.cut_at_once(task, cut),
            None => Flow::Wait(TaskState::AwaitingCleanup),
        }
    }

    /// Handles the end of a group that deferred a cut. The cut takes place after the last group.
    /// `failure` is the failure with which the task would have continued.
    pub(crate) fn spared_group_ended(&mut self, task: &mut Task, failure: Option<Thrown>) -> Flow {
        if let Some(mut cut) = task.cancellations.pop_if(|cut| cut.waits) {
            // A failure that already happened, with nothing left to cut, is kept.
            if let Some(thrown) = failure.filter(|_| task.frames.len() == cut.keep) {
                cut.after = cut.after.with_failure(thrown);
            }
            return self.cut_at_once(task, cut);
        }
        self.resume_cut_around(task)
    }

    /// Resumes the deferred cut around a task whose group has ended.
    pub(super) fn resume_cut_around(&mut self, task: &Task) -> Flow {
        let mut next = task.parent;
        while let Some((id, _)) = next {
            let Some(owner) = self.core.parts().tasks.get_mut(id) else { break };
            next = owner.parent;
            if owner.cancellations.last().is_some_and(|cut| cut.waits) {
                owner.state = TaskState::Cleaning;
                self.core.queue(id);
                break;
            }
        }
        Flow::Wait(TaskState::AwaitingCleanup)
    }

    /// Removes the inner cuts that concern the same groups. Returns the one with the earliest limit.
    fn supersede(&mut self, task: &mut Task, keep: usize) -> Option<Cancellation> {
        let inside =
            task.frames.iter().skip(keep).position(is_group_in_progress).map(|at| keep + at);
        let concerns =
            |cut: &mut Cancellation| cut.keep >= keep && inside.is_none_or(|at| cut.keep <= at);
        let over: Vec<Cancellation> = task.cancellations.extract_if(.., concerns).collect();
        self.core.cancel(over.iter().filter_map(|cut| cut.timer));
        over.into_iter().min_by_key(|cut| cut.limit)
    }

    /// Stops all work inside all but the first `keep` structures of a task, except for running
    /// groups, which must end by the limit. Appends the scopes of the groups to `spared`.
    fn spare_groups(
        &mut self,
        task: &mut Task,
        keep: usize,
        (limit, why): (Deadline, KindAndCode),
        spared: &mut Vec<ScopeId>,
    ) {
        if let Some(at) = task.frames.iter().skip(keep).position(is_group_in_progress) {
            return spared.extend(self.limit_group(task, keep + at, limit));
        }
        for id in task.children() {
            let Some(mut child) = self.core.parts().tasks.take(id) else { continue };
            if self.core.tasks().has_group_in_progress(&child, 0) {
                let inner = self.supersede(&mut child, 0).filter(|inner| inner.limit < limit);
                let limit = inner.as_ref().map_or(limit, |inner| inner.limit);
                self.spare_groups(&mut child, 0, (limit, why), spared);
                if let Some(inner) = inner {
                    let timer = Timer::Cleaning { task: id, keep: 0 };
                    let timer = Some(self.core.arm(limit.timer_moment(), timer));
                    let ends_groups =
                        Cancellation { keep: 0, emptied: None, timer, waits: true, ..inner };
                    child.cancellations.insert(0, ends_groups);
                }
                self.core.parts().tasks.put(child);
            } else {
                self.prepare_child_cleanup(task, child, why);
            }
        }
        self.halt_task(task);
        task.state = TaskState::AwaitingCleanup;
    }

    /// Sets the limit of the group at index `at`, and of everything inside. Returns the group's
    /// scope.
    fn limit_group(&mut self, task: &mut Task, at: usize, limit: Deadline) -> Option<ScopeId> {
        let FrameKind::Finally(group) = &mut task.frames.get_mut(at)?.kind else { return None };
        let is_news = !std::mem::replace(&mut group.spared, true);
        let limit = group.limit.map_or(limit, |before| before.min(limit));
        group.limit = Some(limit);
        let (scope, line) = (group.scope, group.code.line);
        if is_news && let Some(time) = limit.remaining(self.core.now()) {
            let event = || LogEvent::FinallyContinues { time };
            self.core.log_at(task, line, event, Level::FAILURES);
        }
        self.limit_tries(task, at + 1, limit);
        Some(scope)
    }

    /// Sets another enclosing limit for the tries from frame `from` on, and for those of the child
    /// tasks.
    fn limit_tries(&mut self, task: &mut Task, from: usize, mut around: Deadline) {
        let id = task.id;
        for frame in task.frames.iter_mut().skip(from) {
            match &mut frame.kind {
                FrameKind::Try(frame) => around = self.limit_try(id, frame, around),
                FrameKind::Finally(group) => around = group.limit.unwrap_or(around),
                _ => {}
            }
        }
        let mut inherited = None;
        for child in task.children() {
            let Some(mut child) = self.core.parts().tasks.take(child) else { continue };
            let inherited =
                inherited.get_or_insert_with(|| Arc::new(self.core.child_context(task)));
            child.inherited = Arc::clone(inherited);
            self.limit_tries(&mut child, 0, around);
            self.core.parts().tasks.put(child);
        }
    }

    /// Sets another enclosing limit for a `try`. Returns the limit inside the `try`.
    fn limit_try(&mut self, task: TaskId, frame: &mut TryFrame, around: Deadline) -> Deadline {
        let own = Deadline::of_limit(frame.started, frame.clauses.time);
        frame.deadline = own.min(around);
        if own >= around {
            self.core.cancel(frame.deadline_timer.take());
        } else if frame.deadline_timer.is_none() {
            let timer = Timer::Deadline { task, id: frame.id };
            frame.deadline_timer = Some(self.core.arm(own.timer_moment(), timer));
        }
        if frame.phase != TryPhase::Attempt {
            return frame.present_deadline();
        }
        let each = Deadline::of_limit(frame.attempt_started, frame.clauses.each);
        frame.attempt_deadline = each.min(frame.deadline);
        if each >= frame.deadline {
            self.core.cancel(frame.attempt_timer.take());
        } else if frame.attempt_timer.is_none() {
            let timer = Timer::EachAttempt { task, id: frame.id };
            frame.attempt_timer = Some(self.core.arm(each.timer_moment(), timer));
        }
        frame.present_deadline()
    }
}

impl Continuation {
    /// Returns the failure with which the task continues.
    pub(crate) fn failure(self) -> Option<Thrown> {
        match self {
            Self::Throw(thrown) | Self::End(TaskEnding::Failed(thrown)) => Some(thrown),
            Self::EndTry(ended) => Some(ended.thrown),
            Self::To(_)
            | Self::JumpOut { .. }
            | Self::Return(_)
            | Self::End(_)
            | Self::Canceled => None,
        }
    }
}

impl AfterEmptied {
    /// Replaces the failure of a cut, unless the cut ends the run.
    fn with_failure(self, thrown: Thrown) -> Self {
        match self {
            Self::Fail(Thrown { retry: retry @ Retry::Never, .. }) => {
                Self::Fail(Thrown { retry, ..thrown })
            }
            Self::Fail(_) => Self::Fail(thrown),
            Self::End(TaskEnding::Failed(_)) => Self::End(TaskEnding::Failed(thrown)),
            other => other,
        }
    }
}
