//! Expressions, assignments and calls.

use std::sync::Arc;

use bstr::BString;

use crate::commands::CommandRunner;
use crate::commands::invocation::FunctionCall;
use crate::effect::Query;
use crate::eval::operators;
use crate::event::Reply;
use crate::outcome::{FailureKind, shorten};
use crate::program::code::Instruction;
use crate::record::{Level, LogEvent};
use crate::tasks::core::Core;
use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{CallFrame, FrameKind};
use crate::tasks::suspend::Suspend;
use crate::tasks::task::Task;
use crate::unwind::Unwinder;
use crate::unwind::continuation::Continuation;
use crate::unwind::ending::TaskEnding;
use crate::values::list::List;
use crate::values::size;
use crate::values::splitter::Splitter;
use crate::values::value::{Range, Value};
use crate::values::variables::{Change, SavedVariable};
use ftsh_syntax::ast::{Name, Word, WordPart};
use ftsh_syntax::slug::Slug;

/// Maximum depth of nested calls.
const MAX_CALL_DEPTH: usize = 1000;

/// Executes an operator on the operands on the stack.
pub(crate) fn compute(task: &mut Task, instruction: &Instruction) -> Result<(), Suspend> {
    let result = match instruction {
        Instruction::Test(test) => {
            // The operand stays on the stack until the query is answered.
            if let Some(error) = task.stack.last().and_then(Value::not_text) {
                return Err(error.into());
            }
            let path = task.stack.last().and_then(Value::text).unwrap_or_default().into_owned();
            let query = Query::Test(*test, path);
            let answer = task.answers().iter().find(|(asked, _)| *asked == query);
            let Some((_, reply)) = answer else { return Err(Suspend::Pending(query)) };
            let truth = *reply == Reply::Truth(true);
            task.stack.pop();
            Ok(Value::Boolean(truth))
        }
        Instruction::Not => task.pop()?.boolean().map(|value| Value::Boolean(!value)),
        Instruction::Boolean => task.pop()?.boolean().map(Value::Boolean),
        Instruction::Binary { operator, is_symbol } => {
            let right = task.pop()?;
            operators::binary(*operator, &task.pop()?, &right)
                .map_err(|error| error.written(*is_symbol))
        }
        Instruction::Range { step } => {
            let step = if *step { task.pop()?.integer() } else { Ok(1) };
            let to = task.pop()?.integer();
            let from = task.pop()?.integer();
            from.and_then(|from| Range::new(from, to?, step?)).map(Value::Range)
        }
        _ => return Ok(()),
    };
    task.stack.push(result.map_err(Suspend::from)?);
    Ok(())
}

pub(crate) fn shift(task: &mut Task) -> Result<(), Suspend> {
    let by = task.pop()?.integer().map_err(Suspend::from)?;
    let count = task.args.len().saturating_sub(1);
    match usize::try_from(by) {
        Ok(by) if by <= count => {
            Arc::make_mut(&mut task.args).drain(1..=by);
            Ok(())
        }
        Ok(by) => Err(Suspend::expression(
            Slug::OutOfRange,
            format!("can't shift by {by}: there are {count} arguments"),
        )),
        Err(_) => Err(Suspend::expression(Slug::OutOfRange, format!("can't shift by {by}"))),
    }
}

/// Makes the innermost call restore a variable at its end. `made` is the variable's earlier state,
/// if the task itself or a taken-over branch had changed the variable. The copy of a branch or a
/// stage ends with the task, so no call needs to restore it.
pub(crate) fn local(task: &mut Task, name: &Name, made: Option<Change>) {
    let call = task.frames.iter_mut().rev().find_map(|frame| match &mut frame.kind {
        FrameKind::Call(call) if call.function.is_some() => Some(call),
        _ => None,
    });
    match call {
        Some(call) if call.restore.iter().all(|kept| kept.name != *name) => {
            call.restore.push(match made {
                Some(variable) => SavedVariable { name: Arc::clone(name), variable, changed: true },
                None => task.variables.keep(name),
            });
        }
        None if task.locals.iter().all(|(known, _)| known != name) => {
            task.locals.push((Arc::clone(name), made));
        }
        _ => {}
    }
}

/// Restores the caller's position, arguments and variables.
pub(crate) fn leave_call(task: &mut Task, call: CallFrame) {
    task.program = call.program;
    task.at = call.return_to - 1;
    if call.function.is_some() {
        task.args = call.args;
    }
    let kept = call.restore.into_iter().rev();
    kept.for_each(|kept| task.variables.put_back(kept));
}

impl Core {
    /// Returns true if any pattern of a `when` matches the value on top of the stack.
    pub(crate) fn matches_any(&self, task: &Task, patterns: &[Word]) -> Result<bool, Suspend> {
        let expander = self.expander(task);
        let value = task.stack.last().ok_or(Suspend::Broken("a value is missing"))?;
        let value = expander.text(value)?;
        for pattern in patterns {
            if expander.is_match(pattern, &value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the words of an item in a loop's list.
    pub(crate) fn list_item(&self, task: &Task, word: &Word) -> Result<Value, Suspend> {
        let expander = self.expander(task);
        if let Some(variable) = word.all_of_list() {
            return expander.list(variable).map(Value::List);
        }
        // A text is split lazily, because it may have millions of words.
        if let [WordPart::Variable(variable)] = &word.parts[..]
            && let Some(value) = expander.plain(variable)
        {
            match value {
                Value::Text(text) => return Ok(Value::Split(Splitter::words(Arc::clone(text)))),
                Value::Buffer(_) | Value::List(_) => {
                    let text = expander.variable(variable)?;
                    expander.handle(&text);
                    return Ok(Value::Split(Splitter::words(Arc::new(size::copy(&text)?))));
                }
                _ => {}
            }
        }
        expander.words([word]).map(Value::Words)
    }

    pub(crate) fn assign(&mut self, task: &mut Task, name: &Name) -> Result<(), Suspend> {
        let value = match task.pop()? {
            Value::Range(range) if range.count() == 1 => Value::Integer(range.get(0)),
            // The words become a single text, which is split again when used.
            value @ (Value::Split(_) | Value::Words(_) | Value::Range(_) | Value::List(_)) => {
                let text = self.expander(task).text(&value)?.into_owned();
                Value::from(text)
            }
            value => value,
        };
        self.set(task, name, value);
        Ok(())
    }

    /// Gives a variable a value, and logs the assignment.
    pub(crate) fn set(&mut self, task: &mut Task, name: &Name, value: Value) {
        self.log(
            task,
            || LogEvent::Assigned { name: name.to_string(), value: value.brief() },
            Level::COMMANDS,
        );
        task.variables.set(name, value);
    }

    /// Makes a list of the words of the values on top of the stack, or adds them to a list.
    pub(crate) fn make_list(
        &mut self,
        task: &mut Task,
        name: &Name,
        values: usize,
        adds: bool,
    ) -> Result<(), Suspend> {
        let from = task.stack.len().saturating_sub(values);
        let values: Vec<Value> = task.stack.drain(from..).collect();
        let expander = self.expander(task);
        let mut words = List::default();
        for value in &values {
            if !value.each_word(|word| words.push(word))? {
                words.push(&expander.text(value)?)?;
            }
        }
        expander.handled.set(expander.handled.get() + words.text_len());
        if adds {
            let added = task.variables.change_list(name, |list| list.extend(&words));
            added.ok_or_else(|| not_a_list(name))??;
        } else {
            words.shrink();
            task.variables.set_list(name, Arc::new(words));
        }
        let value = || task.variables.get(name).and_then(|variable| variable.value.brief());
        self.log(
            task,
            || LogEvent::Assigned { name: name.to_string(), value: value() },
            Level::COMMANDS,
        );
        Ok(())
    }

    pub(crate) fn unset(&mut self, task: &mut Task, name: &Name) {
        let event = || LogEvent::Assigned { name: name.to_string(), value: None };
        self.log(task, event, Level::COMMANDS);
        task.variables.unset(name);
    }
}

impl CommandRunner<'_> {
    pub(crate) fn call_in_expression(
        &mut self,
        task: &mut Task,
        name: &Name,
        arguments: usize,
    ) -> Step {
        if self.definitions.function(name).is_none() {
            return self.function(task, name, arguments);
        }
        let mut args = Vec::with_capacity(1 + arguments);
        args.push(BString::from(&**name));
        let from = task.stack.len().saturating_sub(arguments);
        for value in &task.stack[from..] {
            if let Value::List(list) = value {
                args.extend(list.iter().map(ToOwned::to_owned));
                continue;
            }
            args.push(size::copy(&self.core.expander(task).text(value)?)?);
        }
        task.stack.truncate(from);
        let (name, restore) = (Arc::clone(name), Vec::new());
        self.call(task, FunctionCall { name, args, wants_value: true, restore, command: None })
    }

    /// Enters a function.
    pub(crate) fn call(&mut self, task: &mut Task, call: FunctionCall) -> Step {
        let Some((_, (program, address))) = self.definitions.function(&call.name) else {
            return Err(self.definitions.undefined(&call.name));
        };
        let depth = task.depth() + 1;
        if depth > MAX_CALL_DEPTH {
            return Err(Suspend::expression(
                Slug::Recursion,
                format!(
                    "`{}` calls itself too often: calls are nested {MAX_CALL_DEPTH} deep",
                    call.name
                ),
            ));
        }
        let frame = CallFrame {
            function: Some(call.name),
            wants_value: call.wants_value,
            program: std::mem::replace(&mut task.program, Arc::clone(program)),
            return_to: task.at + 1,
            args: std::mem::replace(&mut task.args, Arc::new(call.args)),
            restore: call.restore,
            started: self.core.now(),
            command: call.command,
            depth,
        };
        task.enter(FrameKind::Call(Box::new(frame)));
        task.jump(*address);
        Ok(Flow::Continue)
    }
}

impl Unwinder<'_> {
    /// Executes `return`, or the end of a function.
    pub(crate) fn return_(&mut self, task: &mut Task, has_value: bool) -> Step {
        let value = if has_value { Some(task.pop()?) } else { None };
        self.leave_function(task, value)
    }

    /// Returns to the caller of a function, or ends the script or the branch.
    pub(crate) fn leave_function(&mut self, task: &mut Task, value: Option<Value>) -> Step {
        while let Some(frame) = task.frames.pop() {
            task.stack.truncate(frame.height);
            let mut call = match frame.kind {
                FrameKind::Call(call) => call,
                FrameKind::Guard(guard) => {
                    return Ok(self.begin_finally(task, *guard, Continuation::Return(value)));
                }
                FrameKind::Transaction(transaction) => {
                    return Ok(self.core.committer().begin_commit(
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
                let message = format!("the function `{name}` did not return a value");
                leave_call(task, *call);
                return Err(Suspend::expression(Slug::MissingResult, message));
            }
            let (wants_value, return_to) = (call.wants_value, call.return_to);
            let (started, command) = (call.started, call.command.take().unwrap_or_default());
            leave_call(task, *call);
            if !wants_value && let Some(code) = value.as_ref().and_then(exit_code) {
                let message = format!("`{}` returned {code}", shorten(&command));
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
        Ok(Flow::Exiting(match value.as_ref().and_then(exit_code) {
            Some(code) => TaskEnding::Exited(FailureKind::Exit.exit_code(code)),
            None => TaskEnding::Succeeded,
        }))
    }
}

/// Returns the failure of a variable that is used as a list.
pub(crate) fn not_a_list(name: &str) -> Suspend {
    Suspend::expression(Slug::NotAList, format!("the variable `{name}` is not a list"))
}

/// Returns the exit code if a function, called as a command, fails by returning this value.
fn exit_code(value: &Value) -> Option<i32> {
    let code = value.integer().ok().filter(|code| *code != 0)?;
    Some(code.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}
