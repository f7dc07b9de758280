//! One instruction after the other.

use std::sync::Arc;

use crate::effect::{Effect, OperationId, Query};
use crate::eval::expand::Expander;
use crate::event::{Refusal, Reply};
use crate::outcome::FailureKind;
use crate::program::code::{Instruction, Program};
use crate::record::{Level, LogEvent};
use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{Frame, FrameKind};
use crate::tasks::halt::Halt;
use crate::tasks::task::{State, Task};
use crate::unwind::ending::Ending;
use crate::values::value::Value;
use crate::{BYTES, Machine};

impl Machine {
    /// Runs a task until it waits, fails, ends or the budget is used up.
    pub(crate) fn run(&mut self, task: &mut Task) -> Flow {
        task.since = self.now;
        let mut program = Arc::clone(&task.program);
        while self.budget > 0 {
            // Counted anew only where a call or a return has led elsewhere.
            if !Arc::ptr_eq(&program, &task.program) {
                program = Arc::clone(&task.program);
            }
            let step = self.step(task, &program);
            let handled = self.handled.take() / BYTES;
            self.budget = self.budget.saturating_sub(1 + handled);
            match step {
                // Effects are carried out before anything that might depend on them.
                Ok(Flow::Continue) if self.effects.is_empty() => {}
                Ok(Flow::Continue) if self.budget > 0 && self.only_tells() => return Flow::Tell,
                Ok(flow) => return flow,
                Err(halt) => return self.halt(task, halt),
            }
        }
        Flow::Continue
    }

    /// Whether nothing but the log waits for what was done.
    fn only_tells(&self) -> bool {
        self.effects.iter().all(|effect| matches!(effect, Effect::Log(_)))
    }

    /// Asks what an instruction needs, or makes it fail.
    pub(crate) fn halt(&mut self, task: &Task, halt: Halt) -> Flow {
        match halt {
            Halt::Need(query) => {
                let operation = self.new_operation(task);
                let directory = task.directory.clone();
                let effect = Effect::Query { operation, directory, query: query.clone() };
                self.effects.push_back(effect);
                Flow::Wait(State::Query(operation, query))
            }
            Halt::Broken(what) => Flow::Throw(task.broken(what)),
            Halt::Fail(kind, message) => Flow::Throw(task.thrown(kind, 1, message, "")),
        }
    }

    pub(crate) fn new_operation(&mut self, task: &Task) -> OperationId {
        let operation = OperationId(self.next_id());
        self.operations.insert(operation, task.id);
        operation
    }

    /// An operation that the task waited for is done.
    pub(crate) fn operation_done(
        &mut self,
        task: &mut Task,
        result: Result<Reply, Refusal>,
    ) -> Flow {
        match (std::mem::replace(&mut task.state, State::Ready), result) {
            (State::Beginning(beginning), result) => self.begun(task, beginning, result),
            (State::Asking(_), result) => self.input_told(task, &result),
            (State::Settling(settling), result) => self.files_settled(task, *settling, result),
            (State::Committing(waited), result) => self.go_on_committing(task, waited, result),
            (State::Telling(_, then), result) => self.output_told(task, then, result),
            (State::Query(_, query), Ok(reply)) => {
                task.progress().answers.push((query, reply));
                Flow::Continue
            }
            (State::Piped(_), Ok(_)) => Flow::Continue,
            (State::Opening(opening), Ok(_)) => {
                task.progress().opened = Some(opening.io);
                if let Some(written) = opening.written {
                    let before = task.variables.keep(&written.name);
                    task.progress().redirects.before.push(before);
                    written.commit(&mut task.variables);
                }
                Flow::Continue
            }
            (
                State::Query(_, Query::Directory(_) | Query::File(_) | Query::Input(..)),
                Err(refusal),
            ) => Flow::Throw(task.thrown(FailureKind::Failure, 1, refusal.message, "")),
            (State::Opening(..) | State::Piped(_), Err(refusal)) => {
                Flow::Throw(task.not_opened(refusal))
            }
            (State::Query(..), Err(refusal)) => {
                Flow::Throw(task.thrown(FailureKind::Expression, 1, refusal.message, ""))
            }
            (
                State::Ready
                | State::Entering(_)
                | State::Command(_)
                | State::Remote(_)
                | State::Sleeping(_)
                | State::Children
                | State::Forking
                | State::Doomed
                | State::Cleaning
                | State::Emptying(..),
                _,
            ) => Flow::Throw(task.broken("an answer that nothing waits for")),
        }
    }

    pub(crate) fn expander<'a>(&'a self, task: &'a Task) -> Expander<'a> {
        Expander { task, config: &self.config, now: self.now, handled: &self.handled }
    }

    fn step(&mut self, task: &mut Task, program: &Program) -> Step {
        let Some(instruction) = program.code.get(task.at) else {
            return Ok(Flow::Throw(task.broken("the code has no end")));
        };
        match instruction {
            Instruction::Push(value) => task.stack.push(value.clone()),
            Instruction::Operand(word) => {
                let value = self.expander(task).operand(word)?;
                task.stack.push(value);
            }
            Instruction::SingleWord(word) => {
                let value = self.expander(task).single_value(word)?;
                task.stack.push(value);
            }
            Instruction::Words(word) => {
                let value = self.list_item(task, word)?;
                task.stack.push(value);
            }
            Instruction::Not
            | Instruction::Test(_)
            | Instruction::Binary(_)
            | Instruction::Range { .. }
            | Instruction::Boolean => Self::compute(task, instruction)?,
            Instruction::Decided(value, address) => {
                let top = task.pop()?;
                if top.boolean().map_err(Halt::expression)? == *value {
                    task.stack.push(top);
                    task.jump(*address);
                    return Ok(Flow::Continue);
                }
            }
            Instruction::Call { name, arguments } => {
                return self.call_in_expression(task, name, *arguments);
            }
            Instruction::Question(no) => task.enter(FrameKind::Question(*no)),
            Instruction::Answer => match task.frames.pop() {
                Some(Frame { kind: FrameKind::Question(_), .. }) => {
                    task.stack.push(Value::Boolean(true));
                }
                _ => return Ok(Flow::Throw(task.broken("an answer without a question"))),
            },
            Instruction::Command(command) => return self.command(task, command),
            Instruction::Pipeline { stages, end } => return Ok(self.pipeline(task, stages, *end)),
            Instruction::Redirect(redirects) => return self.redirect_block(task, redirects),
            Instruction::EndRedirect => return Ok(self.end_redirects(task)),
            Instruction::Local(name) => {
                let made = task.variables.change(name);
                Self::local(task, name, made);
            }
            Instruction::Assign(name) => self.assign(task, name)?,
            Instruction::Channel(code) => self.declare(task, code)?,
            Instruction::Unset(name) => self.unset(task, name),
            Instruction::Shift => Self::shift(task)?,
            Instruction::Return { value } => return self.return_(task, *value),
            Instruction::Jump(address) => {
                task.jump(*address);
                return Ok(Flow::Continue);
            }
            Instruction::JumpOut { frames, to } => return Ok(self.jump_out(task, *frames, *to)),
            Instruction::Unless(address) => {
                let value = task.pop()?.boolean().map_err(Halt::expression)?;
                self.log(task, || LogEvent::Condition(value), Level::STRUCTURES);
                if !value {
                    task.jump(*address);
                    return Ok(Flow::Continue);
                }
            }
            Instruction::For(code) => Self::begin_for(task, code),
            Instruction::NextFor(code) => return Ok(self.next_for(task, code)),
            Instruction::ForAny { code, clauses } => return self.for_any(task, code, clauses),
            Instruction::EndForAny => return Ok(Self::end_for_any(task)),
            Instruction::ForAll { code, clauses, dispatch } => {
                return self.for_all(task, code, clauses, *dispatch);
            }
            Instruction::Dispatch => return Ok(self.dispatch(task)),
            Instruction::EndTask => return Ok(Flow::End(Ending::Succeeded)),
            Instruction::Guard(code) => Self::guard(task, code),
            Instruction::EndGuard => return Ok(self.end_guard(task)),
            Instruction::EndFinally => return self.end_finally(task),
            Instruction::TryHead(code) => task.enter(FrameKind::TryHead(Arc::clone(code))),
            Instruction::Try(code) => return self.begin_try(task, code),
            Instruction::TryAgain => return self.try_again(task),
            Instruction::Targets(redirects) => self.find_targets(task, redirects)?,
            Instruction::Atomic { attempt } => return Ok(self.begin_atomic(task, *attempt)),
            Instruction::Tee => return Ok(self.begin_tee(task)),
            Instruction::EndAtomic => return Ok(self.end_transaction(task)),
            Instruction::EndTry => return Ok(self.try_succeeded(task)),
            Instruction::EndCatch => match task.frames.pop() {
                Some(Frame { kind: FrameKind::Catch(_), .. }) => {}
                _ => return Ok(Flow::Throw(task.broken("a `catch` ends that has not begun"))),
            },
        }
        task.advance();
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::effect::Environment;
    use crate::outcome::Outcome;
    use crate::{Config, MAIN, Output};

    /// What becomes of a machine that a script's own code can't bring about.
    fn run(code: Vec<Instruction>) -> Result<Output, String> {
        let script = ftsh_syntax::parse("script", "").expect("a script");
        let config = Config::default();
        let mut machine = Machine::new(&script, Vec::new(), Environment::default(), config, 0);
        let main = machine.tasks.get_mut(&MAIN).expect("the script's task");
        let program = Arc::get_mut(&mut main.program).expect("nobody else's");
        (program.lines, program.code) = (vec![1; code.len()], code);
        let poll = catch_unwind(AssertUnwindSafe(|| machine.poll_output()));
        poll.map_err(|panic| panic.downcast_ref().cloned().unwrap_or_default())
    }

    #[test]
    fn what_cannot_be_says_so_and_ends() {
        let cases = [
            (vec![Instruction::Not], "a value is missing"),
            (vec![Instruction::EndTry], "the innermost structure is no `try`"),
            (vec![Instruction::EndCatch], "a `catch` ends that has not begun"),
            (vec![Instruction::Answer], "an answer without a question"),
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
