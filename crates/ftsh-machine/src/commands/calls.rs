//! Calls of functions, and their results.

use std::sync::Arc;

use bstr::BString;

use super::CommandRunner;
use crate::core::{Flow, Step};
use crate::effect::Action;
use crate::eval::Expander;
use crate::frames::{CallFrame, FrameKind};
use crate::invocation::Expanded;
use crate::tasks::Task;
use crate::values::{Suspend, Value};
use crate::variables::SavedVariable;
use crate::{functions, size};
use ftsh_syntax::ast::Name;
use ftsh_syntax::slug::Slug;

/// Environment variable with the secrets that a nested shell must hide, one per line.
const REDACT: &str = "FTSH_REDACT";

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
            if let Value::List(_) | Value::Words(_) = value {
                value.each_word(|word| {
                    args.push(word.into());
                    Ok(())
                })?;
                continue;
            }
            args.push(size::copy(&Expander::new(self.core, task).text(value)?)?);
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

/// Maximum depth of nested calls.
const MAX_CALL_DEPTH: usize = 1000;

impl CommandRunner<'_> {
    /// Calls a function of the language, with its arguments on the stack.
    pub(crate) fn function(&mut self, task: &mut Task, name: &str, count: usize) -> Step {
        let Some(function) = functions::named(name) else {
            return Err(self.definitions.undefined(name));
        };
        if functions::call(function, self.core, self.random, task, count)? {
            task.advance();
        }
        Ok(Flow::Continue)
    }
}

/// Call of a function.
pub(crate) struct FunctionCall {
    /// Name of the function.
    pub name: Name,
    /// Name of the function, followed by the arguments.
    pub args: Vec<BString>,
    /// True if the caller needs a value.
    pub wants_value: bool,
    /// Previous values of the variables set for this call only.
    pub restore: Vec<SavedVariable>,
    /// Command as written, for the log; `None` in an expression, where the value is logged.
    pub command: Option<String>,
}

/// Driver's part of a command.
pub(crate) struct CommandStart {
    /// Action of the driver.
    pub action: Action,
    /// Variables set by `read`.
    pub reads: Vec<Name>,
    /// True if the task ends with the command (`exec`).
    pub last: bool,
}

impl CommandStart {
    /// Creates a command that only performs an action.
    pub(crate) fn new(action: Action) -> Self {
        Self { action, reads: Vec::new(), last: false }
    }
}

/// Returns the action that runs a program.
pub(crate) fn program(task: &Task, command: &Expanded, words: Vec<BString>) -> Action {
    let assignments = command.assignments.iter();
    let mut overrides: Vec<(BString, BString)> =
        assignments.map(|(name, value)| ((&**name).into(), value.clone())).collect();
    if let Some(attempt) = task.attempt() {
        overrides.push(("FTSH_ATTEMPT".into(), attempt.number.to_string().into()));
    }
    let given = words.iter().chain(overrides.iter().map(|(_, value)| value));
    if let Some(values) = task.variables.secrets.for_command(given) {
        overrides.push((REDACT.into(), values));
    }
    let environment = command.environment.clone().unwrap_or_default();
    Action::Program { words, environment, overrides }
}
