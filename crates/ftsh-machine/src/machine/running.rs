//! Turns of tasks, and the control flow after each step.

use std::sync::Arc;

use bstr::{BString, join};

use super::Machine;
use crate::arguments::read_arguments;
use crate::atomic::{Committer, output_received};
use crate::commands::begin_in;
use crate::core::{Flow, Step, end_word_call};
use crate::effect::{Query, TaskId};
use crate::endings::TaskEnding;
use crate::eval::{Expander, compute, local};
use crate::event::{Refusal, Reply};
use crate::frames::{Frame, FrameKind};
use crate::loops::{begin_for, end_for_any, next_for};
use crate::modifiers::{begin_accept, begin_keep, end_accept, end_keep};
use crate::outcome::FailureKind;
use crate::program::{Instruction, Program};
use crate::record::spans::SpanEvent;
use crate::record::{Level, LogEvent};
use crate::remote::begin_files;
use crate::supply::word_recorded;
use crate::tasks::{AfterEmptied, Task, TaskState};
use crate::tries::take_back;
use crate::unwind::{Unwinder, guard};
use crate::values::{Suspend, Value};
use ftsh_syntax::slug::Slug;

impl Machine {
    /// Runs ready tasks, until an effect is queued or the clock must be read.
    pub(super) fn run_slice(&mut self) {
        while self.core.requests().is_empty()
            && self.outcome.is_none()
            && let Some(id) = self.core.parts().scheduler.next()
        {
            match self.core.tasks().get(id).map(|task| &task.state) {
                Some(TaskState::Ready) => self.resume(id, Self::run),
                Some(TaskState::Forking) => {
                    let mut decided = None;
                    self.resume(id, |machine, task| {
                        machine.forker().more_branches(task, &mut decided)
                    });
                    if let Some(why) = decided {
                        self.cancel_children(id, why);
                    }
                }
                Some(TaskState::Cleaning) => {
                    self.resume(id, |machine, task| {
                        Unwinder::new(&mut machine.core).continue_cleanup(task)
                    });
                }
                // A task cut short since it was queued now waits for something else.
                _ => {}
            }
        }
    }

    /// Takes a task out, applies a step, and applies the resulting control flow.
    pub(super) fn resume(&mut self, id: TaskId, step: impl FnOnce(&mut Self, &mut Task) -> Flow) {
        let Some(mut task) = self.core.parts().tasks.take(id) else { return };
        let flow = step(self, &mut task);
        self.apply(task, flow);
    }

    pub(super) fn apply(&mut self, mut task: Box<Task>, mut flow: Flow) {
        loop {
            match flow {
                Flow::Continue | Flow::YieldFirst | Flow::SpawnMore => {
                    let parts = self.core.parts();
                    match flow {
                        Flow::YieldFirst => parts.scheduler.queue_first(task.id),
                        _ => parts.scheduler.queue(task.id),
                    }
                    task.state = match flow {
                        Flow::SpawnMore => TaskState::Forking,
                        _ => TaskState::Ready,
                    };
                    parts.tasks.put(task);
                    return;
                }
                Flow::Wait(state) => {
                    if let TaskState::Emptying(scope, _) = &state {
                        self.core.parts().scopes.await_end(*scope, task.id);
                    }
                    let begins = matches!(state, TaskState::Sleeping(_) | TaskState::Entering(_));
                    let id = task.id;
                    task.state = state;
                    self.core.parts().tasks.put(task);
                    if begins {
                        self.forker().companion_began(id);
                    }
                    return;
                }
                Flow::AttemptFailed(_) | Flow::Empty(..) | Flow::Emptied(_) | Flow::Proceed(_) => {
                    flow = self.follow(&mut task, flow);
                }
                Flow::Failing(ending) => {
                    if let Some((parent, _)) = task.parent {
                        self.branch_failing(parent, task.id, &ending);
                    }
                    let (scope, after) = (task.scope, AfterEmptied::End(ending));
                    flow = Unwinder::new(&mut self.core).empty(&mut task, scope, after);
                }
                Flow::Finish(outcome) => {
                    self.core.log_at(&task, 0, || SpanEvent::TaskEnded(None), Level::SPANS);
                    self.outcome = Some(outcome);
                    flow = Flow::Wait(TaskState::Ready);
                }
                Flow::Throw(thrown) => {
                    flow = Unwinder::new(&mut self.core).throw(&mut task, thrown);
                }
                Flow::Exiting(ending) => {
                    flow = Unwinder::new(&mut self.core).end_task(&mut task, ending);
                }
                Flow::Exited(ending) => {
                    Unwinder::new(&mut self.core).drop_task(&mut task);
                    let Some(place) = task.parent else { return };
                    let (child, residue) = ((task.id, task.attempts), task.residue());
                    drop(task);
                    if matches!(ending, TaskEnding::Succeeded) || ending.is_broken_pipe() {
                        self.forker().companion_began_at(child.0, Some(place));
                    }
                    let Some(next) = self.child_ended(place, child, ending, residue) else {
                        return;
                    };
                    (task, flow) = next;
                }
            }
        }
    }

    /// Follows control flow that leads on at once. The rooms of the statements return it, because
    /// unwinding and attempts are above them.
    fn follow(&mut self, task: &mut Task, mut flow: Flow) -> Flow {
        loop {
            flow = match flow {
                Flow::AttemptFailed(thrown) => self.tries().attempt_failed(task, thrown),
                Flow::Empty(scope, after) => {
                    Unwinder::new(&mut self.core).empty(task, scope, after)
                }
                Flow::Emptied(after) => Unwinder::new(&mut self.core).emptied(task, after),
                Flow::Proceed(then) => {
                    let step = Unwinder::new(&mut self.core).proceed(task, then);
                    step.unwrap_or_else(|suspend| self.core.suspend(task, suspend))
                }
                flow => return flow,
            };
        }
    }

    /// Runs a task until it waits, fails, ends or the budget is used up.
    fn run(&mut self, task: &mut Task) -> Flow {
        task.since = self.core.now();
        let mut program = Arc::clone(&task.program);
        while self.core.scheduler().has_budget() {
            // The reference count changes only after a call or a return.
            if !Arc::ptr_eq(&program, &task.program) {
                program = Arc::clone(&task.program);
            }
            let mut step = self.step(task, &program);
            if let Ok(
                flow @ (Flow::AttemptFailed(_)
                | Flow::Empty(..)
                | Flow::Emptied(_)
                | Flow::Proceed(_)),
            ) = step
            {
                step = Ok(self.follow(task, flow));
            }
            self.core.parts().scheduler.count_instruction();
            // Effects are performed before anything that may depend on them.
            if matches!(step, Ok(Flow::Continue)) && self.core.requests().is_empty() {
                // Most instructions end here, with nothing to drop. The compiler does not see that:
                // a loop of assignments is 8 % slower with the drop, and one of calls 4 %.
                std::mem::forget(step);
                continue;
            }
            match step {
                Ok(Flow::Continue)
                    if self.core.scheduler().has_budget() && self.core.requests().only_logs() =>
                {
                    return Flow::YieldFirst;
                }
                Ok(flow) => return flow,
                Err(suspend) => return self.core.suspend(task, suspend),
            }
        }
        Flow::Continue
    }

    /// Handles the answer to an operation of a task.
    pub(super) fn operation_done(
        &mut self,
        task: &mut Task,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        match (std::mem::replace(&mut task.state, TaskState::Ready), result) {
            (TaskState::OpeningView(opening), result) => {
                Committer::new(&mut self.core).view_opened(task, opening, result)
            }
            (TaskState::Beginning(beginning), result) => {
                Committer::new(&mut self.core).begun(task, beginning, result)
            }
            (TaskState::CheckingInput(_), result) => self.tries().input_checked(task, &result),
            (TaskState::CommittingFiles(commit), result) => {
                self.commands().files_committed(task, *commit, result)
            }
            (TaskState::Committing(waited), result) => {
                Committer::new(&mut self.core).continue_commit(task, waited, result)
            }
            (TaskState::ListingLeftovers(_, scope, then), result) => {
                if let Ok(Reply::Words(names)) = result
                    && !names.is_empty()
                {
                    let note = format!("no leftovers: ends {}", BString::from(join(", ", names)));
                    self.core.log_note(task, task.line(), Level::ENDING, note);
                }
                Flow::Empty(scope, then)
            }
            (TaskState::ReadingOutput(_, then), result) => {
                output_received(&mut self.core, task, then, result)
            }
            (TaskState::Query(_, query), Ok(reply)) => {
                task.progress().answers.push((query, reply));
                Flow::Continue
            }
            (TaskState::Piped(_), Ok(_)) => Flow::Continue,
            (TaskState::Recording(_, Some(from)), result) => {
                word_recorded(&mut self.core, task, from, result)
            }
            (TaskState::Recording(_, None), Ok(_)) => Flow::Exiting(TaskEnding::Succeeded),
            (TaskState::Recording(_, None), Err(refusal)) => {
                Flow::Throw(task.refused(FailureKind::Io, refusal).named(Slug::BranchFile))
            }
            (TaskState::Opening(opening), Ok(_)) => {
                task.progress().opened = Some(opening.io);
                if let Some(written) = opening.written {
                    let before = task.variables.keep(&written.name);
                    task.progress().redirects.before.push(before);
                    written.commit(&mut task.variables);
                }
                Flow::Continue
            }
            (TaskState::Opening(..) | TaskState::Piped(_), Err(refusal)) => {
                Flow::Throw(task.not_opened(refusal))
            }
            // Without durations, the bounds after `or` hold.
            (TaskState::Query(_, query @ Query::Durations(_)), Err(_)) => {
                task.progress().answers.push((query, Reply::Text("".into())));
                Flow::Continue
            }
            (TaskState::Query(_, query), Err(refusal)) => {
                let (kind, slug) = refused(&query);
                Flow::Throw(task.refused(kind, refusal).named(slug))
            }
            (
                TaskState::Ready
                | TaskState::Entering(_)
                | TaskState::Command(_)
                | TaskState::Remote(_)
                | TaskState::Sleeping(_)
                | TaskState::Children
                | TaskState::Forking
                | TaskState::AwaitingCleanup
                | TaskState::Cleaning
                | TaskState::Emptying(..),
                _,
            ) => Flow::broken(task, "an answer that nothing waits for"),
        }
    }

    fn step(&mut self, task: &mut Task, program: &Program) -> Step {
        let Some(instruction) = program.code.get(task.at) else {
            return Ok(Flow::broken(task, "the code has no end"));
        };
        match instruction {
            Instruction::Push(value) => task.stack.push(value.clone()),
            Instruction::Operand(word) => {
                let value = Expander::new(&self.core, task).operand(word)?;
                task.stack.push(value);
            }
            Instruction::Argument(word) => {
                let value = Expander::new(&self.core, task).argument(word)?;
                task.stack.push(value);
            }
            Instruction::Not
            | Instruction::Test(_)
            | Instruction::Binary { .. }
            | Instruction::Range { .. }
            | Instruction::Boolean
            | Instruction::Words(_)
            | Instruction::Assign(_)
            | Instruction::List { .. }
            | Instruction::Unset(_)
            | Instruction::Shift => compute(&mut self.core, task, instruction)?,
            Instruction::ShortCircuit(value, address) => {
                let top = task.pop()?;
                if top.boolean().map_err(Suspend::from)? == *value {
                    task.stack.push(top);
                    task.jump(*address);
                    return Ok(Flow::Continue);
                }
            }
            Instruction::Call { name, arguments } => {
                return self.commands().call_in_expression(task, name, *arguments);
            }
            Instruction::EndCall => return end_word_call(task),
            Instruction::BeginProbe(question, otherwise) => {
                task.enter(FrameKind::Probe(*question, *otherwise));
            }
            Instruction::EndProbe => match task.frames.pop() {
                Some(Frame { kind: FrameKind::Probe(..), .. }) => {
                    task.stack.push(Value::Boolean(true));
                }
                _ => return Ok(Flow::broken(task, "a probe ends that has not begun")),
            },
            Instruction::BeginOutput => return Ok(self.commands().begin_output(task)),
            Instruction::OutputText => self.commands().output_text(task)?,
            Instruction::Command(command) => return self.commands().command(task, command),
            Instruction::Accept(statuses, end) => begin_accept(task, statuses, *end),
            Instruction::EndAccept => return Ok(end_accept(task)),
            Instruction::Keep => begin_keep(&mut self.core, task)?,
            Instruction::EndKeep => return Ok(end_keep(&mut self.core, task)),
            Instruction::Pipeline { stages, end } => {
                return Ok(self.forker().pipeline(task, stages, *end));
            }
            Instruction::Redirect(redirects) => {
                return self.commands().redirect_block(task, redirects);
            }
            Instruction::EndRedirect => {
                return Ok(Unwinder::new(&mut self.core).end_redirects(task));
            }
            Instruction::In => begin_in(&self.core, task)?,
            Instruction::EndIn => Unwinder::new(&mut self.core).leave(task),
            Instruction::Local(name) => {
                let made = task.variables.change(name);
                local(task, name, made);
            }
            Instruction::Export(name) => task.variables.export(name),
            Instruction::Channel(code) => self.tries().declare(task, code)?,
            Instruction::Use(file) => {
                if let Some(file) = file {
                    return Ok(self.commands().use_file(task, file));
                }
            }
            Instruction::Args(declaration) => read_arguments(&mut self.core, task, declaration)?,
            Instruction::Return { value } => {
                return Unwinder::new(&mut self.core).return_(task, *value);
            }
            Instruction::Jump(address) => {
                task.jump(*address);
                return Ok(Flow::Continue);
            }
            Instruction::JumpOut { frames, to } => {
                return Ok(Unwinder::new(&mut self.core).jump_out(task, *frames, *to));
            }
            Instruction::Unless(address) => {
                let value = task.pop()?.boolean().map_err(Suspend::from)?;
                self.core.log(task, || LogEvent::Condition(value), Level::STRUCTURES);
                if !value {
                    task.jump(*address);
                    return Ok(Flow::Continue);
                }
            }
            Instruction::When { patterns, otherwise } => {
                let is_match = Expander::new(&self.core, task).matches_any(patterns)?;
                self.core.log(task, || LogEvent::Condition(is_match), Level::STRUCTURES);
                if !is_match {
                    task.jump(*otherwise);
                    return Ok(Flow::Continue);
                }
                task.pop()?;
            }
            Instruction::Unmatched => _ = task.pop()?,
            Instruction::For(code) => begin_for(task, code)?,
            Instruction::NextFor(code) => return next_for(&mut self.core, task, code),
            Instruction::ForAny { code, clauses } => {
                return self.forker().for_any(task, code, clauses);
            }
            Instruction::EndForAny => return Ok(end_for_any(task)),
            Instruction::ForAll { code, clauses, dispatch } => {
                return self.forker().for_all(task, code, clauses, *dispatch);
            }
            Instruction::Files { takes, gives } => {
                return begin_files(&mut self.core, task, *takes, *gives);
            }
            Instruction::Dispatch => return Ok(self.dispatcher().dispatch(task)),
            Instruction::With { name, stages, body, end } => {
                return Ok(self.forker().with(task, (name, *stages), (*body, *end)));
            }
            Instruction::EndTask => return Ok(Flow::Exiting(TaskEnding::Succeeded)),
            Instruction::BeginFinally(code) => guard(task, code),
            Instruction::RunFinally => return Ok(Unwinder::new(&mut self.core).run_finally(task)),
            Instruction::EndFinally => return Unwinder::new(&mut self.core).end_finally(task),
            Instruction::TryHead(code) => task.enter(FrameKind::TryHead(Arc::clone(code))),
            Instruction::Try(code) => return self.tries().begin_try(task, code),
            Instruction::TryAgain => return self.tries().try_again(task),
            Instruction::Targets(redirects) => {
                Committer::new(&mut self.core).find_targets(task, redirects)?;
            }
            Instruction::Atomic { attempt } => {
                return Ok(Committer::new(&mut self.core).begin_atomic(task, *attempt));
            }
            Instruction::Tee => return Ok(Committer::new(&mut self.core).begin_tee(task)),
            Instruction::SameInput => {
                return Ok(Committer::new(&mut self.core).begin_same_input(task));
            }
            Instruction::TakeBack => take_back(&mut self.core, task)?,
            Instruction::Hold => return Ok(Committer::new(&mut self.core).begin_hold(task)),
            Instruction::NoLeftovers => Committer::new(&mut self.core).begin_no_leftovers(task),
            Instruction::EndAtomic => {
                return Ok(Committer::new(&mut self.core).end_transaction(task));
            }
            Instruction::EndTry => return Ok(self.tries().try_succeeded(task)),
            Instruction::Durations(of) => self.core.read_durations(task, of)?,
            Instruction::EndCatch => match task.frames.pop() {
                Some(Frame { kind: FrameKind::Catch(..), .. }) => {}
                _ => return Ok(Flow::broken(task, "a `catch` ends that has not begun")),
            },
        }
        task.advance();
        Ok(Flow::Continue)
    }
}

/// Returns the kind and the slug of the failure of an unanswered query.
fn refused(query: &Query) -> (FailureKind, Slug) {
    match query {
        Query::Directory(_) => (FailureKind::Io, Slug::Directory),
        Query::File(_) => (FailureKind::Io, Slug::SourcedFile),
        Query::Input(..) | Query::InputPart(_) | Query::InputWord(..) => {
            (FailureKind::Io, Slug::Input)
        }
        Query::RecordedWords(_) => (FailureKind::Io, Slug::OnceFile),
        Query::BranchFiles { .. } => (FailureKind::Io, Slug::BranchFile),
        Query::TakeBack(_) => (FailureKind::Redirect, Slug::Redirect),
        Query::Filter(_) => (FailureKind::Expression, Slug::Filter),
        Query::Home(_) => (FailureKind::Expression, Slug::UnknownUser),
        _ => (FailureKind::Expression, Slug::Expression),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::config::Config;
    use crate::effect::{Effect, Environment};
    use crate::outcome::Outcome;
    use crate::{MAIN, Output};

    /// Invariants of the machine that no script can violate.
    fn run(code: Vec<Instruction>) -> Result<Output, String> {
        let script = ftsh_syntax::parse("script", "").expect("a script");
        let config = Config::default();
        let mut machine = Machine::new(&script, Vec::new(), Environment::default(), config, 0);
        let main = machine.core.parts().tasks.get_mut(MAIN).expect("the script's task");
        let program = Arc::get_mut(&mut main.program).expect("nobody else's");
        (program.lines, program.code) = (vec![1; code.len()], code);
        let poll = catch_unwind(AssertUnwindSafe(|| machine.poll_output()));
        poll.map_err(|panic| panic.downcast_ref().cloned().unwrap_or_default())
    }

    #[test]
    fn violated_invariants_end_the_run() {
        let cases = [
            (vec![Instruction::Not], "a value is missing"),
            (vec![Instruction::EndTry], "the innermost structure is no `try`"),
            (vec![Instruction::EndCatch], "a `catch` ends that has not begun"),
            (
                vec![Instruction::Push(Value::Integer(1)), Instruction::EndCall],
                "a call in a word ends that has not begun",
            ),
            (vec![Instruction::EndProbe], "a probe ends that has not begun"),
            (Vec::new(), "the code has no end"),
        ];
        for (code, message) in cases {
            match run(code) {
                Err(panic) => assert!(cfg!(debug_assertions) && panic.contains(message), "{panic}"),
                Ok(Output::Effect(Effect::Log(record))) => {
                    let failure = record.event.failure().expect("a failure");
                    assert_eq!(failure.kind, FailureKind::Internal);
                    assert_eq!(failure.message, format!("{message}: an internal error of ftsh"));
                }
                Ok(Output::Finished(Outcome::Failed(failure))) => {
                    assert_eq!(failure.kind, FailureKind::Internal);
                }
                other => panic!("{message}: {other:?}"),
            }
        }
    }
}
