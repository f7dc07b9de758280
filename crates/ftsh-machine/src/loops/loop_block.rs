//! The loops `for` and `forany`.

use std::sync::Arc;

use rand::RngExt;

use crate::forall::Forker;
use crate::program::code::{DurationScale, Loop};
use crate::record::{Level, LogEvent};
use crate::tasks::core::Core;
use crate::tasks::flow::{Flow, Step};
use crate::tasks::frame::{ForAnyFrame, Frame, FrameKind};
use crate::tasks::suspend::Suspend;
use crate::tasks::task::Task;
use crate::values::items::Items;
use crate::values::value::Value;
use ftsh_syntax::clauses::ForAnyClauses;

pub fn begin_for(task: &mut Task, code: &Loop) {
    let items = pop_items(task, code.items);
    task.enter(FrameKind::For(items));
}

pub fn end_for_any(task: &mut Task) -> Flow {
    match task.frames.pop() {
        Some(Frame { kind: FrameKind::ForAny(_), .. }) => {
            task.advance();
            Flow::Continue
        }
        _ => Flow::Throw(task.broken("a `forany` ends that has not begun")),
    }
}

impl Core {
    pub(crate) fn next_for(&mut self, task: &mut Task, code: &Loop) -> Flow {
        let next = match task.frames.last_mut() {
            Some(Frame { kind: FrameKind::For(items), .. }) => items.next(),
            _ => return Flow::Throw(task.broken("a `for` goes on that has not begun")),
        };
        if let Some(value) = next {
            self.iterate(task, "for", code, value);
            task.advance();
        } else {
            task.frames.pop();
            task.jump(code.end);
        }
        Flow::Continue
    }

    fn try_item(&mut self, task: &mut Task, frame: &mut ForAnyFrame) {
        if let Some(value) = frame.items.next_round() {
            self.iterate(task, "forany", &frame.code, value);
        }
        task.jump(frame.code.body);
    }

    /// Continues with the next item after a failed body. Returns false if there is no next item.
    pub(crate) fn next_item(&mut self, task: &mut Task, mut frame: Box<ForAnyFrame>) -> bool {
        if frame.is_last() {
            return false;
        }
        frame.tried += 1;
        self.try_item(task, &mut frame);
        task.enter(FrameKind::ForAny(frame));
        true
    }

    /// Sets a loop's variable.
    pub(crate) fn iterate(
        &mut self,
        task: &mut Task,
        kind: &'static str,
        code: &Loop,
        value: Value,
    ) {
        let event = || LogEvent::Iteration {
            kind,
            name: code.variable.to_string(),
            value: value.text().unwrap_or_default().to_string(),
        };
        self.log(task, event, Level::STRUCTURES);
        if let Value::Text(text) = &value {
            self.scheduler.handle(text.len());
        }
        task.variables.set(&code.variable, value);
    }
}

impl Forker<'_> {
    pub(crate) fn for_any(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAnyClauses<DurationScale, ()>,
    ) -> Step {
        if clauses.hedge_after.is_some() {
            return self.hedge(task, code, clauses);
        }
        let items = self.items_of_any(task, code, clauses.in_order)?;
        let mut frame = ForAnyFrame { code: Arc::clone(code), items, tried: 0 };
        self.core.try_item(task, &mut frame);
        task.enter(FrameKind::ForAny(Box::new(frame)));
        Ok(Flow::Continue)
    }

    /// Returns the list of a `forany`, positioned at its first word.
    pub(crate) fn items_of_any(
        &mut self,
        task: &mut Task,
        code: &Loop,
        in_order: bool,
    ) -> Result<Items, Suspend> {
        let mut items = pop_items(task, code.items);
        if items.is_empty() {
            return Err(Suspend::expression("the list of forany is empty"));
        }
        if !in_order {
            let first = self.random.rng().random_range(0..items.len());
            items.rewind(first);
        }
        Ok(items)
    }
}

/// Pops the values of a loop's list.
pub fn pop_items(task: &mut Task, count: usize) -> Items {
    let mut items = Items::default();
    for value in task.stack.split_off(task.stack.len().saturating_sub(count)) {
        items.push(value);
    }
    items
}
