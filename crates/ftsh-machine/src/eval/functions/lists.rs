//! Functions that split a text into the words of a list.

use super::{Function, FunctionContext};
use crate::tasks::suspend::Suspend;
use crate::values::splitter::Splitter;
use crate::values::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("lines", &[("lines(\"a file.txt\")", &["a file.txt"])], lines),
    Function::new("split", &[("split(\"a b,,c\", \",\")", &["a b", "", "c"])], split),
];

fn lines(context: &mut FunctionContext) -> Result<Value, Suspend> {
    Ok(Value::Split(Splitter::lines(context.text(0)?)))
}

fn split(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (text, separator) = (context.text(0)?, context.text(1)?);
    Ok(Value::Split(Splitter::split(text, &separator).map_err(Suspend::from)?))
}
