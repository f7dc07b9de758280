//! Runs resumed in another process.
//!
//! No process of the previous start is left. Work that depends on such processes is lost: commands,
//! whole pipelines, attempts with a pass through a channel, and atomic attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Unwinder, cancel::Cut};
use crate::attempts::TryPhase;
use crate::branches::JoinKind;
use crate::core::Flow;
use crate::effect::{OperationId, ScopeId};
use crate::endings::{Logged, Retry, Thrown};
use crate::frames::{Frame, FrameKind};
use crate::record::Level;
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::transactions::{Committing, TransactionKind};

/// Structure of a task that cannot continue.
enum Lost {
    /// The current attempt of the `try` with this id.
    Attempt(u64),
    /// The structure at this index, with its description.
    Structure(usize, &'static str),
}

impl Unwinder<'_> {
    /// Handles the resumption of the run: fails the part of a task that cannot continue without the
    /// previous process. `passes` are the scopes of the attempts that occupied channels, and
    /// `committed` the commits of views that have taken place.
    pub(crate) fn resumed(
        &mut self,
        task: &mut Task,
        passes: &BTreeSet<ScopeId>,
        committed: &[OperationId],
    ) -> Flow {
        let is_cut = self.core.tasks().is_being_cut(task, 0);
        let committed_at = committed_view(task, committed);
        match find_lost(task, passes, is_cut, committed_at) {
            Some(Lost::Attempt(id)) => self.cut(task, id, &Cut::Loss),
            Some(Lost::Structure(at, what)) => self.lose(task, at, what),
            None => Flow::keep_waiting(task),
        }
    }

    /// Fails a structure that cannot continue.
    fn lose(&mut self, task: &mut Task, at: usize, what: &str) -> Flow {
        let scope = scope_inside(task, at);
        let running = self.core.running_inside(task, at);
        let caught = task.caught_in(&task.frames[..at]).cloned();
        let failure = running.lost(task, what, caught);
        let (retry, logged) = (Retry::AsUsual, Logged::Failure);
        let mut thrown = Thrown { failure: Arc::clone(&failure), retry, logged, answers: true };
        let uncaught = self.core.tasks().is_uncaught(task, &thrown);
        thrown.logged = Logged::from_uncaught(uncaught);
        self.core.log_failure(task, &failure, Level::of_failure(uncaught), uncaught);
        self.cut_lost(task, at, scope, &failure, AfterEmptied::Throw(thrown, scope))
    }
}

/// Returns the outermost structure that cannot continue. `passes` are the scopes of the
/// attempts that occupied channels. If `is_cut`, the task continues only in its `finally`
/// groups. The attempt whose transaction is at `committed_at` has succeeded.
fn find_lost(
    task: &Task,
    passes: &BTreeSet<ScopeId>,
    is_cut: bool,
    committed_at: Option<usize>,
) -> Option<Lost> {
    if matches!(task.state, TaskState::AwaitingCleanup) && task.cancellations.is_empty() {
        return None; // dropped together with its parent
    }
    let mut goes_on = !is_cut;
    for (at, frame) in task.frames.iter().enumerate() {
        goes_on &= !task.is_cut_down_to(at);
        match &frame.kind {
            FrameKind::Finally(group) => {
                let is_of = |scope| scope == group.outer_scope;
                let is_spared = group.spared && !group.cut;
                goes_on |= is_spared
                    || task.cancellations.iter().any(|cancellation| is_of(cancellation.scope));
            }
            _ if !goes_on => {}
            FrameKind::Try(frame)
                if frame.phase == TryPhase::Attempt
                    && committed_at != Some(at + 1)
                    && (passes.contains(&frame.scope) || is_atomic(task.frames.get(at + 1))) =>
            {
                return Some(Lost::Attempt(frame.id));
            }
            FrameKind::Transaction(transaction)
                if matches!(transaction.kind, TransactionKind::Catch) =>
            {
                return Some(Lost::Structure(at, "a `catch`"));
            }
            FrameKind::Join(join) => {
                if let JoinKind::Stages(stages) = &join.kind {
                    let what = if stages.len() == 1 { "`$(…)`" } else { "a pipeline" };
                    return Some(Lost::Structure(at, what));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the index of the task's transaction if its view is committed. `committed` are the
/// commits of views whose answers follow.
fn committed_view(task: &Task, committed: &[OperationId]) -> Option<usize> {
    let is_committed = match &task.state {
        TaskState::Committing(Committing::Files(operation)) => committed.contains(operation),
        TaskState::Committing(Committing::Writing(..)) => true,
        _ => false,
    };
    let at = task.frames.len().checked_sub(1)?;
    let has_view = matches!(&task.frames[at].kind,
        FrameKind::Transaction(transaction) if transaction.view().is_some()
    );
    (is_committed && has_view).then_some(at)
}

/// Returns the scope inside the first `keep` structures.
fn scope_inside(task: &Task, keep: usize) -> ScopeId {
    let innermost = task.frames.iter().take(keep).rev().find_map(|frame| match &frame.kind {
        FrameKind::Try(frame) if frame.phase.is_scoped() => Some(frame.scope),
        FrameKind::Try(frame) => Some(frame.outer_scope),
        FrameKind::Finally(group) => Some(group.scope),
        FrameKind::Keep { scope, .. } => Some(*scope),
        _ => None,
    });
    innermost.unwrap_or_else(|| task.base_scope())
}

/// Returns true for an attempt of an atomic `try`.
fn is_atomic(frame: Option<&Frame>) -> bool {
    match frame.map(|frame| &frame.kind) {
        Some(FrameKind::Transaction(it)) => matches!(it.kind, TransactionKind::Attempt { .. }),
        _ => false,
    }
}
