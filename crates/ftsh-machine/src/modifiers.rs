//! Words before a command that change the meaning of its end: `accept 24,3` and `keep`.

use crate::core::{Core, Flow};
use crate::effect::ScopeId;
use crate::endings::{Retry, Thrown};
use crate::frames::{Frame, FrameKind};
use crate::outcome::{Failure, FailureKind};
use crate::program::Address;
use crate::record::{Level, LogEvent};
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use ftsh_syntax::ast::{AcceptedStatuses, Name};
use ftsh_syntax::slug::Slug;

/// Variable with the status of the last command with `accept`.
const STATUS: &str = "status";

/// Begins a command that succeeds also with these statuses.
pub(crate) fn begin_accept(task: &mut Task, statuses: &AcceptedStatuses, end: Address) {
    task.enter(FrameKind::Accept(statuses.clone(), end));
}

/// Ends a successful command with `accept`.
pub(crate) fn end_accept(task: &mut Task) -> Flow {
    let Some(Frame { kind: FrameKind::Accept(..), .. }) = task.frames.pop() else {
        return Flow::broken(task, "an `accept` ends that has not begun");
    };
    set_status(task, 0);
    task.advance();
    Flow::Continue
}

/// Begins a command whose leftover processes belong to the script. An attempt of `atomic in` and
/// the command of a `with` leave no processes.
pub(crate) fn begin_keep(core: &mut Core, task: &mut Task) -> Result<(), Suspend> {
    let place = if task.directory.view.is_some() {
        "an attempt of `atomic in`"
    } else if core.tasks().is_inside_command_of_with(task) {
        "the command of a `with`"
    } else {
        ""
    };
    if !place.is_empty() {
        let message = format!("`keep` is not possible in {place}");
        return Err(Suspend::builtin(Slug::KeepInView, message));
    }
    let outer_scope = task.scope;
    task.scope = core.new_scope(Some(outer_scope));
    task.enter(FrameKind::Keep { scope: task.scope, outer_scope });
    Ok(())
}

/// Ends a successful command with `keep`.
pub(crate) fn end_keep(core: &mut Core, task: &mut Task) -> Flow {
    let Some(Frame { kind: FrameKind::Keep { scope, outer_scope }, .. }) = task.frames.pop() else {
        return Flow::broken(task, "a `keep` ends that has not begun");
    };
    leave_keep(core, task, scope, outer_scope);
    task.advance();
    Flow::Continue
}

/// Moves the processes left by a command with `keep` to the script.
pub(crate) fn leave_keep(core: &mut Core, task: &mut Task, scope: ScopeId, outer_scope: ScopeId) {
    core.merge(scope, ScopeId::SCRIPT);
    task.scope = outer_scope;
}

/// Handles the failure of a command with `accept`. Returns true if the failure is a success.
pub(crate) fn accept_failure(
    core: &mut Core,
    task: &mut Task,
    statuses: &AcceptedStatuses,
    end: Address,
    thrown: &Thrown,
) -> bool {
    if thrown.answers && thrown.failure.kind == FailureKind::Exit {
        set_status(task, thrown.failure.code);
    }
    let accepted = thrown.is_accepted(statuses);
    if accepted {
        let Failure { command, elapsed, code, .. } = &*thrown.failure;
        let (command, elapsed) = (command.clone(), elapsed.unwrap_or_default());
        let event = || LogEvent::CommandSucceeded { command, elapsed, status: *code };
        core.log_at(task, thrown.failure.line, event, Level::COMMANDS);
        core.forget_output(task);
        task.jump(end);
    }
    accepted
}

fn set_status(task: &mut Task, status: i32) {
    task.variables.set(&Name::from(STATUS), Value::Integer(status.into()));
}

impl Task {
    /// Returns true if an `accept` around the current command treats the failure as a success.
    pub(crate) fn accepts(&self, thrown: &Thrown) -> bool {
        let inside = self.frames.iter().rev().map(|frame| &frame.kind);
        let mut inside = inside.take_while(|kind| !kind.is_barrier());
        inside.any(|kind| match kind {
            FrameKind::Accept(statuses, _) => thrown.is_accepted(statuses),
            _ => false,
        })
    }
}

impl Thrown {
    /// Returns true if `accept` with these statuses treats the failure as a success.
    pub(crate) fn is_accepted(&self, statuses: &AcceptedStatuses) -> bool {
        self.answers
            && self.retry == Retry::AsUsual
            && self.failure.kind == FailureKind::Exit
            && statuses.0.iter().any(|status| i32::from(*status) == self.failure.code)
    }
}
