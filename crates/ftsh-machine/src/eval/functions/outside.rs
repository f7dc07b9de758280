//! Functions with values from outside the script.

use std::borrow::Cow;

use bstr::{BString, ByteSlice};

use super::function::{Function, FunctionContext};
use crate::effect::{LocalTime, Query};
use crate::eval::expand::Expander;
use crate::event::Reply;
use crate::values::{Number, Suspend, Value, ValueError};
use ftsh_syntax::ast::Parameter;
use ftsh_syntax::duration;
use ftsh_syntax::slug::Slug;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("now", &[("now() .matches. '^[0-9.]+$'", &["true"])], now),
    Function::new("files", &[("files(\"/no/such/*.txt\")", &[])], files),
    Function::new("time", &[("time(\"%Y\", 500000000)", &["1985"])], time),
    Function::new(
        "seconds",
        &[("seconds(\"5 min\")", &["300"]), ("seconds(500ms)", &["0.5"])],
        seconds,
    ),
    Function::new("random", &[("random(6, 6)", &["6"])], random),
];

fn now(context: &mut FunctionContext) -> Result<Value, Suspend> {
    match context.answer(&Query::Clock) {
        Some(Reply::Text(now)) => Ok(Value::from(now.clone())),
        _ => Err(Suspend::Pending(Query::Clock)),
    }
}

fn files(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let query = Query::Files(BString::clone(&*context.text(0)?));
    let Some(reply) = context.answer(&query) else { return Err(Suspend::Pending(query)) };
    let Reply::Words(names) = reply else { return Ok(Value::Words(Vec::new())) };
    // A name must not be taken for an option.
    let safe = |name: &BString| match name.first() {
        Some(b'-') => [b"./", name.as_slice()].concat().into(),
        _ => name.clone(),
    };
    Ok(Value::Words(names.iter().map(safe).collect()))
}

fn time(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let pattern = BString::clone(&*context.text(0)?);
    let at = match context.arguments().len() {
        2 => Some(since_1970(context.number(1)?)),
        _ => None,
    };
    let expander = Expander::new(context.core, context.task);
    let zone = expander.parameter(&Parameter::Named("TZ".into()))?;
    let zone = zone.filter(|zone| !zone.is_empty()).map(Cow::into_owned);
    let query = Query::LocalTime(Box::new(LocalTime { pattern, at, zone }));
    match context.answer(&query) {
        Some(Reply::Text(text)) => Ok(Value::from(text.clone())),
        _ => Err(Suspend::Pending(query)),
    }
}

/// Returns a moment as whole seconds since 1970, and nanoseconds after them.
fn since_1970(number: Number) -> (i64, u32) {
    match number {
        Number::Whole(seconds) => (seconds, 0),
        Number::Decimal(decimal) => {
            let seconds = decimal.floor();
            (seconds as i64, ((decimal - seconds) * 1e9) as u32)
        }
    }
}

fn seconds(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let text = context.text(0)?;
    let Some(length) = text.to_str().ok().and_then(duration::parse) else {
        let message = format!("`{text}` is not a length of time, like `90`, `5 min` or `1h30m`");
        return Err(Suspend::expression(Slug::NotADuration, message));
    };
    let Ok(seconds) = i64::try_from(length.as_secs()) else {
        let message = format!("`{text}` is more than {} seconds", i64::MAX);
        return Err(Suspend::expression(Slug::OutOfRange, message));
    };
    Ok(if length.subsec_nanos() == 0 {
        Value::Integer(seconds)
    } else {
        Value::from(Number::Decimal(length.as_secs_f64()))
    })
}

fn random(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (from, to) = (context.integer(0)?, context.integer(1)?);
    if from > to {
        return Err(Suspend::from(ValueError::NoneBetween(from, to)));
    }
    Ok(Value::Integer(context.draw(from, to)))
}
