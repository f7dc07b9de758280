//! Expressions, assignments and calls.

use std::sync::Arc;

use super::{expand::Expander, operators};
use crate::core::Core;
use crate::effect::Query;
use crate::event::Reply;
use crate::frames::FrameKind;
use crate::program::Instruction;
use crate::record::{Level, LogEvent};
use crate::size;
use crate::tasks::Task;
use crate::values::{List, Range, Splitter, Suspend, Value};
use crate::variables::{Change, SavedVariable};
use ftsh_syntax::ast::{Name, Word, WordPart};
use ftsh_syntax::slug::Slug;

/// Executes an operator on the operands on the stack.
pub(crate) fn compute(
    core: &mut Core,
    task: &mut Task,
    instruction: &Instruction,
) -> Result<(), Suspend> {
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
        Instruction::Words(word) => Ok(list_item(core, task, word)?),
        Instruction::Assign(name) => return assign(core, task, name),
        Instruction::List { name, values, adds } => {
            return make_list(core, task, name, *values, *adds);
        }
        Instruction::Unset(name) => {
            unset_variable(core, task, name);
            return Ok(());
        }
        Instruction::Shift => return shift(task),
        _ => return Ok(()),
    };
    task.stack.push(result.map_err(Suspend::from)?);
    Ok(())
}

fn shift(task: &mut Task) -> Result<(), Suspend> {
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

/// Returns the words of an item in a loop's list.
fn list_item(core: &Core, task: &Task, word: &Word) -> Result<Value, Suspend> {
    let expander = Expander::new(core, task);
    if let Some(list) = expander.whole_list(word)? {
        return Ok(Value::List(list));
    }
    // A text is split lazily, because it may have millions of words.
    if let [WordPart::Variable(variable)] = &word.parts[..]
        && let Some(value) = expander.plain(variable)
    {
        match value {
            Value::Text(text) => return Ok(Value::Split(Splitter::words(Arc::clone(text)))),
            Value::Buffer(_) => {
                let text = expander.variable(variable)?;
                expander.handle(&text);
                return Ok(Value::Split(Splitter::words(Arc::new(size::copy(&text)?))));
            }
            _ => {}
        }
    }
    expander.words([word]).map(Value::Words)
}

fn assign(core: &mut Core, task: &mut Task, name: &Name) -> Result<(), Suspend> {
    let value = match task.pop()?.settled() {
        Value::Range(range) if range.count() == 1 => Value::Integer(range.get(0)),
        // The words become a single text, which is split again when used.
        value @ (Value::Split(_) | Value::Words(_) | Value::Range(_) | Value::List(_)) => {
            let text = Expander::new(core, task).text(&value)?.into_owned();
            Value::from(text)
        }
        value => value,
    };
    set_variable(core, task, name, value);
    Ok(())
}

/// Gives a variable a value, and logs the assignment.
pub(crate) fn set_variable(core: &mut Core, task: &mut Task, name: &Name, value: Value) {
    core.log(
        task,
        || LogEvent::Assigned { name: name.to_string(), value: value.brief() },
        Level::COMMANDS,
    );
    task.variables.set(name, value);
}

/// Makes a list of the words of the values on top of the stack, or adds them to a list.
fn make_list(
    core: &mut Core,
    task: &mut Task,
    name: &Name,
    values: usize,
    adds: bool,
) -> Result<(), Suspend> {
    let from = task.stack.len().saturating_sub(values);
    let values: Vec<Value> = task.stack.drain(from..).collect();
    let expander = Expander::new(core, task);
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
    core.log(
        task,
        || LogEvent::Assigned { name: name.to_string(), value: value() },
        Level::COMMANDS,
    );
    Ok(())
}

pub(crate) fn unset_variable(core: &mut Core, task: &mut Task, name: &Name) {
    let event = || LogEvent::Assigned { name: name.to_string(), value: None };
    core.log(task, event, Level::COMMANDS);
    task.variables.unset(name);
}

/// Returns the failure of a variable that is used as a list.
pub(crate) fn not_a_list(name: &str) -> Suspend {
    Suspend::expression(Slug::NotAList, format!("the variable `{name}` is not a list"))
}
