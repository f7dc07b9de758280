//! Execution of `output tagged`: a relay forwards each whole line of a branch at once, with the
//! branch's word before it.

use std::sync::Arc;

use super::{GroupedOutput, flush::WriteError};
use crate::branches::{JoinFrame, JoinKind};
use crate::core::Core;
use crate::effect::{Effect, FdChange, FdSource, IoId, OperationId, TaskId};
use crate::event::{Refusal, Reply, SIGPIPE};
use crate::outputs::{OutputRelay, escape_field};
use crate::tasks::{Task, TaskState, Tasks};
use crate::values::Value;

impl GroupedOutput<'_> {
    /// Begins a relay to the descriptors shared by all branches.
    pub(crate) fn begin_relay(&mut self, task: &Task, io: IoId) -> OutputRelay {
        let operation = self.core.new_operation(task);
        self.core.request(Effect::Relay { operation, io });
        OutputRelay::new(operation)
    }

    /// Finishes the relay once no branch runs and none will begin.
    pub(crate) fn finish_relay(&mut self, task: &mut Task) {
        let is_over = |join: &&mut JoinFrame| join.running.is_empty() && !join.kind.awaits_words();
        let join = task.top_join().filter(is_over);
        if let Some(relay) = top_relay(join)
            && relay.finish()
        {
            self.core.request(Effect::FinishRelay(relay.operation));
        }
    }

    /// Abandons a relay, which continues by itself until its input ends.
    pub(crate) fn leave_relay(&mut self, join: Option<&mut JoinFrame>) {
        if let Some(relay) = top_relay(join)
            && relay.end()
        {
            self.core.abandon(relay.operation);
        }
    }
}

/// Sends the output of a branch through its loop's relay, if there is one.
pub(crate) fn tag_output(core: &mut Core, task: &mut Task, branch: &mut Task, word: &Value) {
    let Some(relay) = top_relay(task.top_join()).map(|relay| relay.operation) else { return };
    let word = word.text().unwrap_or_default();
    let tag = Arc::new(escape_field(&core.config().secrets.hide_bytes(&word)).into());
    let source = FdSource::Relay { relay, tag };
    let changes = [1, 2].map(|descriptor| FdChange { descriptor, source: source.clone() });
    let operation;
    (operation, branch.io) = core.open_io(&branch.io, branch, changes.into());
    branch.state = TaskState::Piped(operation);
}

impl Tasks {
    /// Returns true if a task waits for this relay.
    pub(crate) fn is_relayed_by(&mut self, task: TaskId, operation: OperationId) -> bool {
        let join = self.get_mut(task).and_then(|task| task.top_join());
        top_relay(join).is_some_and(|relay| relay.operation == operation)
    }
}

impl GroupedOutput<'_> {
    /// Handles the end of a relay. Returns true if the loop fails.
    pub(crate) fn relay_done(&mut self, task: &mut Task, result: Result<Reply, Refusal>) -> bool {
        let refused = match result {
            Ok(Reply::Truth(true)) => None,
            Ok(_) => Some(WriteError::BrokenPipe(SIGPIPE)),
            Err(refusal) => Some(WriteError::Error(refusal)),
        };
        if let Some(relay) = top_relay(task.top_join()) {
            relay.end();
        }
        let io = task.top_join().and_then(|join| match &join.kind {
            JoinKind::Branches { io, .. } => Some(io.clone()),
            JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
        });
        match (refused, io) {
            (Some(refused), Some(io)) => self.write_failed(task, &io, refused),
            _ => false,
        }
    }
}

fn top_relay(join: Option<&mut JoinFrame>) -> Option<&mut OutputRelay> {
    match &mut join?.kind {
        JoinKind::Branches { relay, .. } => relay.as_mut(),
        JoinKind::Hedge(_) | JoinKind::Beside(_) | JoinKind::Stages(_) => None,
    }
}
