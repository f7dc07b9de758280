//! Runs that go on in another process.
//!
//! Nothing of what the shell before had started is left. What can't go on without it is lost: commands,
//! whole pipelines, and attempts that had a place in a channel or that were to be all or nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::atomic::transaction::Kind;
use crate::effect::ScopeId;
use crate::record::Level;
use crate::resume::loss::lost;
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind, JoinKind, TryPhase};
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::unwind::Unwinder;
use crate::unwind::cancel::Cut;
use crate::unwind::ending::{Logged, Retry, Thrown};

/// A structure of a task that can't go on.
enum Lost {
    /// The attempt of this `try`.
    Attempt(u64),
    /// The structure at this place, and what it is.
    Structure(usize, &'static str),
}

impl Unwinder<'_> {
    /// The run goes on in another process: a task loses what can't go on without the one before.
    /// `passes` are the scopes of the attempts that had gone through channels.
    pub(crate) fn resumed(&mut self, task: &mut Task, passes: &BTreeSet<ScopeId>) -> Flow {
        let is_cut = self.core.tasks.is_being_cut(task, 0);
        match task.what_is_lost(passes, is_cut) {
            Some(Lost::Attempt(id)) => self.cut(task, id, Cut::Loss),
            Some(Lost::Structure(at, what)) => self.lose(task, at, what),
            None => Flow::keep_waiting(task),
        }
    }

    /// A structure can't go on, which fails by that.
    fn lose(&mut self, task: &mut Task, at: usize, what: &str) -> Flow {
        let scope = task.scope_inside(at);
        let running = self.core.running_inside(task, at);
        let caught = task.caught_in(&task.frames[..at]).cloned();
        let failure = lost(task, what, running, caught);
        let (retry, logged) = (Retry::AsUsual, Logged::Failure);
        let mut thrown = Thrown { failure: Arc::clone(&failure), retry, logged };
        let uncaught = self.core.tasks.is_uncaught(task, &thrown);
        thrown.logged = Logged::as_told(uncaught);
        self.core.log_failure(task, &failure, Level::of_failure(uncaught), uncaught);
        self.cut_dead(task, at, scope, &failure, AfterEmptied::Throw(thrown, scope))
    }
}

impl Task {
    /// The outermost of its structures that can't go on, if any; `passes` are the scopes of the attempts
    /// that had gone through channels. A task that `is_cut` goes on only in its `finally` groups.
    fn what_is_lost(&self, passes: &BTreeSet<ScopeId>, is_cut: bool) -> Option<Lost> {
        if matches!(self.state, State::Doomed) && self.cleaning.is_empty() {
            return None; // it goes with the task that waits for it
        }
        let mut goes_on = !is_cut;
        for (at, frame) in self.frames.iter().enumerate() {
            goes_on &= !self.is_cut_down_to(at);
            match &frame.kind {
                FrameKind::Finally(group) => {
                    let is_of = |scope| scope == group.outer_scope;
                    goes_on |=
                        group.spared || self.cleaning.iter().any(|cleaning| is_of(cleaning.scope));
                }
                _ if !goes_on => {}
                FrameKind::Try(frame)
                    if frame.phase == TryPhase::Attempt
                        && (passes.contains(&frame.scope)
                            || is_atomic(self.frames.get(at + 1))) =>
                {
                    return Some(Lost::Attempt(frame.id));
                }
                FrameKind::Transaction(transaction) if matches!(transaction.kind, Kind::Catch) => {
                    return Some(Lost::Structure(at, "a `catch`"));
                }
                FrameKind::Join(join) if matches!(join.kind, JoinKind::Stages(_)) => {
                    return Some(Lost::Structure(at, "a pipeline"));
                }
                _ => {}
            }
        }
        None
    }

    /// The scope of what is inside so many of its structures.
    fn scope_inside(&self, keep: usize) -> ScopeId {
        let innermost = self.frames.iter().take(keep).rev().find_map(|frame| match &frame.kind {
            FrameKind::Try(frame) if frame.phase.is_scoped() => Some(frame.scope),
            FrameKind::Try(frame) => Some(frame.outer_scope),
            FrameKind::Finally(group) => Some(group.scope),
            _ => None,
        });
        innermost.unwrap_or_else(|| self.base_scope())
    }
}

/// Whether this is an attempt of an atomic `try`.
fn is_atomic(frame: Option<&Frame>) -> bool {
    match frame.map(|frame| &frame.kind) {
        Some(FrameKind::Transaction(it)) => matches!(it.kind, Kind::Attempt { .. }),
        _ => false,
    }
}
