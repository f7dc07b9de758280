//! Functions that split a text into the words of a list, and functions of the words of a list.

use bstr::{BString, ByteSlice};

use super::function::{Function, FunctionContext};
use crate::size;
use crate::values::{Splitter, Suspend, Value};

pub(super) const SPLITTING: &[Function] = &[
    Function::new("lines", &[("lines(\"a file.txt\")", &["a file.txt"])], lines),
    Function::new("split", &[("split(\"a b,,c\", \",\")", &["a b", "", "c"])], split),
];

pub(super) const JOINING: &[Function] = &[
    Function::new(
        "join",
        &[
            ("join(\", \", a, \"b c\", d)", &["a, b c, d"]),
            ("join(\":\", lines(\"/bin\"))", &["/bin"]),
        ],
        join,
    ),
    Function::new(
        "count",
        &[("count(a, \"b c\")", &["2"]), ("count(split(\"a,b,c\", \",\"))", &["3"])],
        |context| Ok(count(context)),
    ),
];

fn join(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let separator = context.text(0)?.replace("\\n", "\n").replace("\\t", "\t");
    let (mut joined, mut is_first) = (BString::default(), true);
    context.each_word(1, |word| {
        if !std::mem::take(&mut is_first) {
            size::append(&mut joined, &separator)?;
        }
        size::append(&mut joined, word)
    })?;
    context.count(joined.len());
    Ok(Value::from(joined))
}

fn count(context: &FunctionContext) -> Value {
    let counts = context.arguments().iter().map(|value| match value {
        Value::Words(words) => words.len() as u64,
        Value::Split(pieces) => pieces.count(),
        Value::List(list) => list.len() as u64,
        Value::Range(range) => range.count(),
        _ => 1,
    });
    let count = counts.fold(0, u64::saturating_add);
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn lines(context: &mut FunctionContext) -> Result<Value, Suspend> {
    Ok(Value::Split(Splitter::lines(context.text(0)?)))
}

fn split(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (text, separator) = (context.text(0)?, context.text(1)?);
    Ok(Value::Split(Splitter::split(text, &separator).map_err(Suspend::from)?))
}
