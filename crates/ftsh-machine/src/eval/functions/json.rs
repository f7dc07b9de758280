//! The function `json`.

use super::function::{Function, FunctionContext};
use crate::effect::{FilterCall, Query};
use crate::event::Reply;
use crate::values::{Suspend, Value};

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "json",
    &[
        (
            "json('{\"items\": [{\"name\": \"a b\"}, {\"name\": \"c\"}]}', \".items[].name\")",
            &["a b", "c"],
        ),
        ("json('{\"a\": [1, null]}', .a)", &["[1,null]"]),
    ],
    json,
)];

fn json(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (text, filter) = (context.text(0)?, context.text(1)?);
    let query = Query::Filter(Box::new(FilterCall { text, filter }));
    match context.answer(&query) {
        None => Err(Suspend::Pending(query)),
        Some(Reply::Words(words)) => Ok(Value::Words(words.clone())),
        Some(Reply::Failed(slug, message)) => Err(Suspend::expression(*slug, message)),
        Some(_) => Ok(Value::Words(Vec::new())),
    }
}
