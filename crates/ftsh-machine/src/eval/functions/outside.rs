//! Functions with values from outside the script.

use super::{Function, FunctionContext};
use crate::effect::Query;
use crate::event::Reply;
use crate::tasks::suspend::Suspend;
use crate::values::value::Value;
use crate::values::value_error::ValueError;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("now", &[("now() .gt. 0", &["true"])], now),
    Function::new("random", &[("random(6, 6)", &["6"])], random),
];

fn now(context: &mut FunctionContext) -> Result<Value, Suspend> {
    match context.answer(&Query::Clock) {
        Some(Reply::Text(now)) => Ok(Value::from(now.clone())),
        _ => Err(Suspend::Pending(Query::Clock)),
    }
}

fn random(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (from, to) = (context.integer(0)?, context.integer(1)?);
    if from > to {
        return Err(Suspend::from(ValueError::NoneBetween(from, to)));
    }
    Ok(Value::Integer(context.draw(from, to)))
}
