//! Functions of the language: a row for each, and their calls.
//!
//! A function's name, parameters and help are its signature in [`vocabulary`], since the parser
//! refuses calls with the wrong number of arguments. Everything else about a function is its row
//! here.

mod format;
mod json;
mod lists;
mod numbers;
mod outside;
mod paths;
mod texts;

use std::borrow::Cow;
use std::sync::Arc;

use bstr::BString;

use crate::commands::CommandRunner;
use crate::commands::command::answer;
use crate::effect::Query;
use crate::event::Reply;
use crate::tasks::flow::{Flow, Step};
use crate::tasks::suspend::Suspend;
use crate::tasks::task::Task;
use crate::values::number::Number;
use crate::values::size;
use crate::values::value::Value;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{self, Signature};

/// Rows in the order of the vocabulary.
const GROUPS: [&[Function]; 8] = [
    lists::SPLITTING,
    json::FUNCTIONS,
    texts::FUNCTIONS,
    lists::JOINING,
    format::FUNCTIONS,
    numbers::FUNCTIONS,
    paths::FUNCTIONS,
    outside::FUNCTIONS,
];

/// A function of the language.
#[derive(Debug)]
pub struct Function {
    /// Name, parameters and help.
    pub signature: &'static Signature,
    /// Expressions with the words of their values, shown in the documentation and evaluated by
    /// `tests/machine/functions.rs`.
    pub examples: &'static [Example],
    evaluate: Evaluate,
}

/// Expression with the words of its value.
pub type Example = (&'static str, &'static [&'static str]);

/// Implementation of a function.
#[derive(Clone, Copy, Debug)]
enum Evaluate {
    AtOnce(fn(&mut FunctionContext) -> Result<Value, Suspend>),
    /// Returns `None` while work remains. Limits can interrupt the work.
    InSteps(fn(&mut FunctionContext) -> Result<Option<Value>, Suspend>),
}

impl Function {
    const fn new(
        name: &str,
        examples: &'static [Example],
        evaluate: fn(&mut FunctionContext) -> Result<Value, Suspend>,
    ) -> Self {
        Self { signature: signature(name), examples, evaluate: Evaluate::AtOnce(evaluate) }
    }

    const fn in_steps(
        name: &str,
        examples: &'static [Example],
        evaluate: fn(&mut FunctionContext) -> Result<Option<Value>, Suspend>,
    ) -> Self {
        Self { signature: signature(name), examples, evaluate: Evaluate::InSteps(evaluate) }
    }
}

/// Returns all functions, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Function> {
    GROUPS.into_iter().flatten()
}

/// Returns the function of the language with this name.
pub fn named(name: &str) -> Option<&'static Function> {
    all().find(|function| function.signature.name == name)
}

/// Returns a function's signature. A row without a signature does not compile.
const fn signature(name: &str) -> &'static Signature {
    let mut at = 0;
    while at < vocabulary::FUNCTIONS.len() {
        if is_same(vocabulary::FUNCTIONS[at].name.as_bytes(), name.as_bytes()) {
            return &vocabulary::FUNCTIONS[at];
        }
        at += 1;
    }
    panic!("a row of `eval/functions/` has no signature in `ftsh_syntax::vocabulary`")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const _: () = {
    let (mut rows, mut at) = (0, 0);
    while at < GROUPS.len() {
        rows += GROUPS[at].len();
        at += 1;
    }
    let signatures = vocabulary::FUNCTIONS.len();
    assert!(
        rows == signatures,
        "a signature of `ftsh_syntax::vocabulary` has no row in `eval/functions/`"
    );
};

/// Arguments of a call, and the machine that evaluates it.
struct FunctionContext<'m, 'c> {
    commands: &'m mut CommandRunner<'c>,
    task: &'m mut Task,
    /// Position of the first argument on the task's stack.
    start: usize,
}

impl FunctionContext<'_, '_> {
    /// Returns the arguments.
    fn arguments(&self) -> &[Value] {
        &self.task.stack[self.start..]
    }

    /// Returns an argument as bytes, which are copied only if necessary.
    fn text(&self, at: usize) -> Result<Arc<BString>, Suspend> {
        let value = &self.arguments()[at];
        let text = self.commands.core.expander(self.task).text(value)?;
        self.count(text.len());
        match (value, text) {
            (Value::Text(text), _) => Ok(Arc::clone(text)),
            (_, Cow::Owned(text)) => Ok(Arc::new(text)),
            (_, Cow::Borrowed(text)) => Ok(Arc::new(size::copy(text)?)),
        }
    }

    /// Returns an argument as an integer.
    fn integer(&self, at: usize) -> Result<i64, Suspend> {
        self.arguments()[at].integer().map_err(Suspend::from)
    }

    /// Returns an argument as a number.
    fn number(&self, at: usize) -> Result<Number, Suspend> {
        let number = match &self.arguments()[at] {
            Value::Buffer(_) => Number::of(&Value::Text(self.text(at)?)),
            value => Number::of(value),
        };
        number.map_err(Suspend::from)
    }

    /// Calls `visit` for each word of the arguments from `first` on.
    fn each_word(
        &self,
        first: usize,
        mut visit: impl FnMut(&[u8]) -> Result<(), Suspend>,
    ) -> Result<(), Suspend> {
        for at in first..self.arguments().len() {
            if !self.arguments()[at].each_word(&mut visit)? {
                visit(&self.text(at)?)?;
            }
        }
        Ok(())
    }

    /// Returns the answer to a query, if already answered.
    fn answer(&self, query: &Query) -> Option<&Reply> {
        answer(self.task, query)
    }

    /// Draws a random integer between two bounds, inclusive.
    fn draw(&mut self, from: i64, to: i64) -> i64 {
        self.commands.random.draw(from, to)
    }

    /// Adds to the bytes handled in the machine's slice.
    fn count(&self, bytes: usize) {
        self.commands.core.scheduler.handle(bytes);
    }
}

impl CommandRunner<'_> {
    /// Calls a function of the language, with its arguments on the stack.
    pub(crate) fn function(&mut self, task: &mut Task, name: &str, count: usize) -> Step {
        let Some(function) = named(name) else { return Err(self.definitions.undefined(name)) };
        if !function.signature.takes(count) {
            return Err(Suspend::expression(
                Slug::ArgumentCount,
                function.signature.wrong_count(count),
            ));
        }
        let start = task.stack.len().saturating_sub(count);
        let mut context = FunctionContext { commands: self, task, start };
        let value = match function.evaluate {
            Evaluate::AtOnce(evaluate) => evaluate(&mut context)?,
            Evaluate::InSteps(evaluate) => match evaluate(&mut context)? {
                Some(value) => value,
                None => return Ok(Flow::Continue),
            },
        };
        task.stack.truncate(start);
        task.stack.push(value);
        task.advance();
        Ok(Flow::Continue)
    }
}
