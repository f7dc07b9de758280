//! The loops `for` and `forany`.

use bstr::BString;

use crate::core::{Core, Flow, Step};
use crate::effect::{Effect, Query};
use crate::event::Reply;
use crate::frames::{ForAnyFrame, Frame, FrameKind};
use crate::items::{Incoming, Items};
use crate::program::{Instruction, Loop};
use crate::record::{Level, LogEvent};
use crate::tasks::{Task, Tasks};
use crate::values::{Suspend, Value};
use ftsh_syntax::slug::Slug;

pub(crate) fn begin_for(task: &mut Task, code: &Loop) -> Result<(), Suspend> {
    let items = pop_items(task, code)?;
    task.enter(FrameKind::For(items));
    Ok(())
}

pub(crate) fn end_for_any(task: &mut Task) -> Flow {
    match task.frames.pop() {
        Some(Frame { kind: FrameKind::ForAny(_), .. }) => {
            task.advance();
            Flow::Continue
        }
        _ => Flow::broken(task, "a `forany` ends that has not begun"),
    }
}

pub(crate) fn next_for(state: &mut Core, task: &mut Task, code: &Loop) -> Step {
    let io = task.io.id();
    let query = match task.frames.last().map(|frame| &frame.kind) {
        // Words after a `break` are left to the next reader.
        Some(FrameKind::For(items))
            if code.ends_early && !state.tasks().ends_with_loop(task, code) =>
        {
            let end = items.end_of_words().cloned();
            end.map_or(Query::InputPart(io), |end| Query::InputWord(io, end))
        }
        _ => Query::InputPart(io),
    };
    let part = take_answer(task, &query);
    let next = match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::For(items), .. }) => {
            if let Some(part) = part {
                items.feed(&part);
            }
            if items.needs_input() {
                return Err(Suspend::Pending(query));
            }
            items.next()
        }
        _ => return Ok(Flow::broken(task, "a `for` goes on that has not begun")),
    };
    if let Some(value) = next {
        iterate(state, task, None, "for", code, value);
        task.advance();
    } else {
        task.frames.pop();
        task.jump(code.end);
    }
    Ok(Flow::Continue)
}

pub(crate) fn try_item(state: &mut Core, task: &mut Task, frame: &mut ForAnyFrame) {
    if let Some(value) = frame.items.next_round() {
        iterate(state, task, None, "forany", &frame.code, value);
    }
    task.jump(frame.code.body);
}

/// Continues with the next item after a failed body. Returns false if there is no next item.
pub(crate) fn next_item(state: &mut Core, task: &mut Task, mut frame: Box<ForAnyFrame>) -> bool {
    if frame.is_last() {
        return false;
    }
    frame.tried += 1;
    try_item(state, task, &mut frame);
    task.enter(FrameKind::ForAny(frame));
    true
}

/// Sets a loop's variable, in the loop's task or in a branch that the loop's task begins.
pub(crate) fn iterate(
    state: &mut Core,
    task: &mut Task,
    begun_by: Option<&Task>,
    kind: &'static str,
    code: &Loop,
    value: Value,
) {
    if state.logs(Level::STRUCTURES) {
        let name = code.variable.to_string();
        let text = value.text().unwrap_or_default().to_string();
        let event = LogEvent::Iteration { kind, name, value: text };
        let mut record = state.record(task, task.line(), event);
        if let Some(parent) = begun_by {
            record = state.inside_branch(record, parent, &code.variable, &value);
        }
        state.request(Effect::Log(record));
    }
    if let Value::Text(text) = &value {
        state.scheduler().handle(text.len());
    }
    task.variables.set(&code.variable, value);
}

impl Tasks {
    /// True if a loop is a whole stage that reads the stage before it, so that nothing reads the input
    /// after the loop.
    fn ends_with_loop(&self, task: &Task, code: &Loop) -> bool {
        let is_after_another = task.parent.is_some_and(|(_, index)| index > 0);
        let is_last = matches!(task.program.code.get(code.end), Some(Instruction::EndTask));
        is_after_another
            && is_last
            && task.frames.len() == 1
            && self.parent_of_stage(task).is_some()
    }
}

/// Pops the values of a loop's list, or the text that ends the words of its input.
pub(crate) fn pop_items(task: &mut Task, code: &Loop) -> Result<Items, Suspend> {
    let values = task.stack.split_off(task.stack.len().saturating_sub(code.items));
    if code.is_input {
        let incoming = match values.first() {
            None => Incoming::lines(),
            Some(by) => {
                let by = by.text().unwrap_or_default();
                Incoming::ending_with(&by).ok_or_else(|| {
                    Suspend::expression(Slug::EmptySeparator, "the text after `by` is empty")
                })?
            }
        };
        return Ok(Items::of_input(incoming));
    }
    let mut items = Items::default();
    for value in values {
        items.push(value);
    }
    Ok(items)
}

/// Takes the answer to a query, which may be asked again.
pub(crate) fn take_answer(task: &mut Task, query: &Query) -> Option<BString> {
    let answers = &mut task.progress.as_mut()?.answers;
    let at = answers.iter().position(|(asked, _)| asked == query)?;
    match answers.remove(at) {
        (_, Reply::Text(part)) => Some(part),
        _ => None,
    }
}
