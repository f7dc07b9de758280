//! Structures left at their end, or by `break`, `continue`, `return` and `exec`.

use super::Unwinder;
use crate::atomic::Committer;
use crate::branches::JoinKind;
use crate::core::{Flow, Step};
use crate::endings::{Continuation, TaskEnding, TaskResidue};
use crate::eval::local;
use crate::frames::{Frame, FrameKind};
use crate::outcome::{FailureKind, shorten};
use crate::program::{Address, Instruction};
use crate::record::{Level, LogEvent};
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use ftsh_syntax::slug::Slug;

impl Unwinder<'_> {
    /// Continues leaving a structure as decided before.
    pub(crate) fn proceed(&mut self, task: &mut Task, then: Continuation) -> Step {
        match then {
            Continuation::To(address) => {
                task.jump(address);
                Ok(Flow::Continue)
            }
            Continuation::JumpOut { frames, to } => Ok(self.jump_out(task, frames, to)),
            Continuation::Return(value) => self.leave_function(task, value),
            Continuation::End(ending) => Ok(Flow::Exiting(ending)),
            Continuation::Throw(thrown) => Ok(Flow::Throw(thrown)),
            Continuation::EndTry(ended) => Ok(self.catch(task, *ended)),
            Continuation::Canceled => Ok(self.continue_cleanup(task)),
        }
    }

    /// Leaves all structures, because another program has replaced the shell. Processes left
    /// running are kept.
    pub(crate) fn leave_all(&mut self, task: &mut Task) {
        while let Some(Frame { height, kind }) = task.frames.pop() {
            task.stack.truncate(height);
            if let FrameKind::Try(frame) = &kind
                && frame.phase.is_scoped()
            {
                self.core.merge(frame.scope, frame.outer_scope);
            }
            let is_kept = matches!(kind, FrameKind::Keep { .. });
            self.abandon_frame(task, kind, is_kept);
        }
    }

    /// Leaves the innermost structure.
    pub(crate) fn leave(&mut self, task: &mut Task) {
        if let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            self.abandon_frame(task, frame.kind, true);
        }
    }

    /// Ends the redirections of a block.
    pub(crate) fn end_redirects(&mut self, task: &mut Task) -> Flow {
        if task.top_transaction().is_some() {
            return Committer::new(self.core).end_transaction(task);
        }
        self.leave(task);
        task.advance();
        Flow::Continue
    }

    /// Leaves the redirections around a command's call, and continues after the call.
    pub(crate) fn leave_redirects_of_call(&mut self, task: &mut Task) -> Flow {
        match task.frames.pop() {
            Some(Frame {
                height,
                kind: kind @ FrameKind::Redirected { around_call: true, .. },
            }) => {
                task.stack.truncate(height);
                self.abandon_frame(task, kind, true);
                Flow::Continue
            }
            Some(Frame { kind: FrameKind::Transaction(transaction), .. })
                if transaction.is_around_call() =>
            {
                let then = Continuation::To(task.at);
                Committer::new(self.core).begin_commit(task, transaction, then)
            }
            other => {
                task.frames.extend(other);
                Flow::Continue
            }
        }
    }

    /// Executes `return`, or the end of a function.
    pub(crate) fn return_(&mut self, task: &mut Task, has_value: bool) -> Step {
        let value = if has_value { Some(task.pop()?.settled()) } else { None };
        self.leave_function(task, value)
    }

    /// Returns to the caller of a function, or ends the script or the branch.
    pub(crate) fn leave_function(&mut self, task: &mut Task, value: Option<Value>) -> Step {
        let before = task.at.checked_sub(1).and_then(|at| task.program.code.get(at));
        let is_computed =
            matches!(before, Some(Instruction::Binary { .. } | Instruction::Call { .. }));
        while let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            let mut call = match frame.kind {
                FrameKind::Call(call) => call,
                FrameKind::Guard(guard) => {
                    return Ok(self.begin_finally(task, *guard, Continuation::Return(value)));
                }
                FrameKind::Transaction(transaction) => {
                    return Ok(Committer::new(self.core).begin_commit(
                        task,
                        transaction,
                        Continuation::Return(value),
                    ));
                }
                kind => {
                    self.abandon_frame(task, kind, true);
                    continue;
                }
            };
            if call.wants_value && value.is_none() {
                let name = call.function.as_deref().unwrap_or("source");
                let message = format!(
                    "the function `{name}` did not return a value; `$({name})` is what it prints"
                );
                task.leave_call(*call);
                return Err(Suspend::expression(Slug::MissingResult, message));
            }
            let (wants_value, return_to) = (call.wants_value, call.return_to);
            let (started, command) = (call.started, call.command.take().unwrap_or_default());
            task.leave_call(*call);
            if !wants_value && let Some(code) = value.as_ref().and_then(exit_code) {
                let mut message = format!("`{}` returned {code}", shorten(&command));
                if is_computed && !command.contains(['\'', '"', '\\']) {
                    let (name, words) = command.split_once(' ').unwrap_or((&command, ""));
                    message += &format!(
                        " as its status; the value is `{name}({})`",
                        words.replace(' ', ", ")
                    );
                }
                let thrown = task.thrown(FailureKind::Exit, code, message, &command);
                return Ok(Flow::Throw(thrown.after(self.core.now() - started)));
            }
            task.jump(return_to);
            match value {
                Some(value) if wants_value => {
                    let text = || LogEvent::Returned(value.brief().unwrap_or_default());
                    self.core.log(task, text, Level::STRUCTURES);
                    task.stack.push(value);
                }
                _ => {
                    let elapsed = self.core.now() - started;
                    self.core.log_success(task, command, elapsed);
                    return Ok(self.leave_redirects_of_call(task));
                }
            }
            return Ok(Flow::Continue);
        }
        if self.core.tasks().is_group_of_with(task) {
            let then = Continuation::Return(value);
            return Ok(self.core.parts().tasks.leave_group(task, then));
        }
        Ok(Flow::Exiting(match value.as_ref().and_then(exit_code) {
            Some(code) => TaskEnding::Exited(FailureKind::Exit.exit_code(code)),
            None => TaskEnding::Succeeded,
        }))
    }

    /// Leaves a number of structures, whose attempts count as successful, and jumps.
    pub(crate) fn jump_out(&mut self, task: &mut Task, frames: usize, to: Address) -> Flow {
        for left in (0..frames).rev() {
            let Some(Frame { height, kind }) = task.frames.pop() else {
                // The group of a `with` is a task of its own, inside of the structures left.
                let then = Continuation::JumpOut { frames: left, to };
                return self.core.parts().tasks.leave_group(task, then);
            };
            task.stack.truncate(height);
            match kind {
                FrameKind::Guard(guard) => {
                    let then = Continuation::JumpOut { frames: left, to };
                    return self.begin_finally(task, *guard, then);
                }
                FrameKind::Transaction(transaction) => {
                    let then = Continuation::JumpOut { frames: left, to };
                    return Committer::new(self.core).begin_commit(task, transaction, then);
                }
                kind => self.abandon_frame(task, kind, true),
            }
        }
        task.jump(to);
        Flow::Continue
    }
}

/// Continues in the state that a child task leaves. A variable that the child made `local` is
/// restored by the call around both tasks.
pub(crate) fn take_over(task: &mut Task, mut residue: TaskResidue) {
    task.args = std::mem::take(&mut residue.args);
    task.directory = std::mem::take(&mut residue.directory);
    task.umask = residue.umask;
    for (name, made) in residue.locals {
        let made = made.or_else(|| task.variables.change(&name));
        local(task, &name, made);
    }
    task.variables.absorb(residue.variables.into_changes());
}

/// Keeps the state of a dropped child task if it is the group of a `with`.
pub(super) fn keep_group(task: &mut Task, child: &mut Task) {
    if let Some(JoinKind::Beside(beside)) = task.top_join().map(|it| &mut it.kind) {
        beside.keep_residue(child.id, child.residue());
    }
}

/// Returns the exit code if a function, called as a command, fails by returning this value.
fn exit_code(value: &Value) -> Option<i32> {
    if let Ok(success) = value.boolean() {
        return (!success).then_some(1);
    }
    let code = value.integer().ok().filter(|code| *code != 0)?;
    Some(code.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}
