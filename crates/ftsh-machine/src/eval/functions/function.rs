//! A function of the language: its row, and a call.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::BString;

use crate::core::Core;
use crate::effect::Query;
use crate::eval::expand::Expander;
use crate::event::Reply;
use crate::random::Random;
use crate::size;
use crate::tasks::Task;
use crate::values::{Number, Suspend, Value};
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{self, Signature};

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
    /// Returns the examples as sentences without a period.
    pub fn shown_examples(&self) -> impl Iterator<Item = String> {
        self.examples.iter().map(|(call, words)| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word:?}`")).collect();
            let shown = if words.is_empty() { "an empty list".into() } else { words.join(", ") };
            format!("`{call}` is {shown}")
        })
    }

    pub(super) const fn new(
        name: &str,
        examples: &'static [Example],
        evaluate: fn(&mut FunctionContext) -> Result<Value, Suspend>,
    ) -> Self {
        Self { signature: signature(name), examples, evaluate: Evaluate::AtOnce(evaluate) }
    }

    pub(super) const fn in_steps(
        name: &str,
        examples: &'static [Example],
        evaluate: fn(&mut FunctionContext) -> Result<Option<Value>, Suspend>,
    ) -> Self {
        Self { signature: signature(name), examples, evaluate: Evaluate::InSteps(evaluate) }
    }
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

/// Arguments of a call, and the machine that evaluates it.
pub(super) struct FunctionContext<'m> {
    pub(super) core: &'m Core,
    random: &'m mut Random,
    pub(super) task: &'m mut Task,
    /// Position of the first argument on the task's stack.
    start: usize,
    /// Arguments with the words of lists, once a function takes each as an argument.
    spread: Option<Vec<Value>>,
}

impl FunctionContext<'_> {
    /// Returns the arguments.
    pub(super) fn arguments(&self) -> &[Value] {
        self.spread.as_deref().unwrap_or(&self.task.stack[self.start..])
    }

    /// Makes each word of the lists among the arguments an argument.
    pub(super) fn spread(&mut self) -> Result<(), Suspend> {
        let mut spread = Vec::new();
        for value in self.arguments() {
            let is_list = value.each_word(|word| {
                spread.push(Value::from(BString::from(word)));
                Ok(())
            })?;
            if !is_list {
                spread.push(value.clone());
            }
        }
        self.spread = Some(spread);
        Ok(())
    }

    /// Returns an argument as bytes, which are copied only if necessary.
    pub(super) fn text(&self, at: usize) -> Result<Arc<BString>, Suspend> {
        let value = &self.arguments()[at];
        let text = Expander::new(self.core, self.task).text(value)?;
        self.count(text.len());
        match (value, text) {
            (Value::Text(text), _) => Ok(Arc::clone(text)),
            (_, Cow::Owned(text)) => Ok(Arc::new(text)),
            (_, Cow::Borrowed(text)) => Ok(Arc::new(size::copy(text)?)),
        }
    }

    /// Returns an argument as an integer.
    pub(super) fn integer(&self, at: usize) -> Result<i64, Suspend> {
        self.arguments()[at].integer().map_err(Suspend::from)
    }

    /// Returns an argument as a number.
    pub(super) fn number(&self, at: usize) -> Result<Number, Suspend> {
        let number = match &self.arguments()[at] {
            Value::Buffer(_) => Number::of(&Value::Text(self.text(at)?)),
            value => Number::of(value),
        };
        number.map_err(Suspend::from)
    }

    /// Calls `visit` for each word of the arguments from `first` on.
    pub(super) fn each_word(
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
    pub(super) fn answer(&self, query: &Query) -> Option<&Reply> {
        self.task.answer(query)
    }

    /// Draws a random integer between two bounds, inclusive.
    pub(super) fn draw(&mut self, from: i64, to: i64) -> i64 {
        self.random.draw(from, to)
    }

    /// Adds to the bytes handled in the machine's slice.
    pub(super) fn count(&self, bytes: usize) {
        self.core.scheduler().handle(bytes);
    }
}

/// Calls a function with its arguments on the task's stack, which its value replaces. Returns false
/// while work remains.
pub(crate) fn call(
    function: &Function,
    core: &Core,
    random: &mut Random,
    task: &mut Task,
    count: usize,
) -> Result<bool, Suspend> {
    if !function.signature.takes(count) {
        let message = function.signature.wrong_count(count);
        return Err(Suspend::expression(Slug::ArgumentCount, message));
    }
    let start = task.stack.len().saturating_sub(count);
    let mut context = FunctionContext { core, random, task, start, spread: None };
    let value = match function.evaluate {
        Evaluate::AtOnce(evaluate) => Some(evaluate(&mut context)?),
        Evaluate::InSteps(evaluate) => evaluate(&mut context)?,
    };
    let Some(value) = value else { return Ok(false) };
    task.stack.truncate(start);
    task.stack.push(value);
    Ok(true)
}
