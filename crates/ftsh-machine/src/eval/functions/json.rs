//! The function `json`.

use bstr::ByteSlice;

use super::{Function, FunctionContext};
use crate::eval::filter::{self, Filtered};
use crate::tasks::suspend::Suspend;
use crate::values::value::Value;
use ftsh_syntax::slug::Slug;

/// Number of steps of a filter before the first check of the limits, and at most.
const FIRST_STEPS: u64 = 500_000;
const MAX_STEPS: u64 = 128_000_000;
/// Handling this many bytes takes as long as a step.
const STEP_BYTES: u64 = 64;

pub(super) const FUNCTIONS: &[Function] = &[Function::in_steps(
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

/// Executes a filter from its beginning with a growing number of steps, since jaq cannot be
/// interrupted and continued. Limits are checked between two executions.
fn json(context: &mut FunctionContext) -> Result<Option<Value>, Suspend> {
    let (text, filter) = (context.text(0)?, context.text(1)?);
    let steps = context.task.progress().filter_steps.unwrap_or(FIRST_STEPS);
    match filter::run(&text, filter.as_bstr(), steps)? {
        Filtered::Words(words) => Ok(Some(Value::Words(words))),
        Filtered::OutOfSteps if steps < MAX_STEPS => {
            context.task.progress().filter_steps = Some(4 * steps);
            context.count(usize::try_from(STEP_BYTES * steps).unwrap_or(usize::MAX));
            Ok(None)
        }
        Filtered::OutOfSteps => {
            let message = format!("the filter of `json` takes more than {MAX_STEPS} steps");
            Err(Suspend::expression(Slug::Filter, message))
        }
    }
}
