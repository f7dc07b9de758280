//! Functions of texts.

use bstr::{BStr, BString, ByteSlice};

use super::function::{Function, FunctionContext};
use crate::eval::operators::regex;
use crate::size;
use crate::tasks::Replacing;
use crate::values::{Subject, Suspend, Value, ValueError};
use ftsh_syntax::slug::Slug;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("length", &[("length(\"été\")", &["3"])], length),
    Function::new("lower", &[("lower(\"ÉTÉ A\")", &["été a"])], |context| {
        cased(&context.text(0)?, str::to_lowercase)
    }),
    Function::new("upper", &[("upper(\"straße\")", &["STRASSE"])], |context| {
        cased(&context.text(0)?, str::to_uppercase)
    }),
    Function::new("trim", &[("trim(\"  a b \")", &["a b"])], |context| {
        Ok(Value::from(size::copy(trim(&context.text(0)?))?))
    }),
    Function::in_steps(
        "replace",
        &[
            ("replace(\"a.tar.gz\", \"\\.gz$\", \"\")", &["a.tar"]),
            ("replace(\"john smith\", \"(\\w+) (\\w+)\", '$2, $1')", &["smith, john"]),
        ],
        replace,
    ),
    Function::new(
        "match",
        &[("match(\"port=8080 host=x\", \"port=(\\d+)\")", &["8080"])],
        first_match,
    ),
    Function::new(
        "substr",
        &[("substr(2026-11-25, 6, 2)", &["11"]), ("substr(\"été\", -2)", &["té"])],
        substr,
    ),
    Function::new("starts", &[("starts(\"#!/bin/sh\", \"#!\")", &["true"])], |context| {
        Ok(Value::Boolean(context.text(0)?.starts_with(&context.text(1)?)))
    }),
    Function::new("ends", &[("ends(photo.JPG, .jpg)", &["false"])], |context| {
        Ok(Value::Boolean(context.text(0)?.ends_with(&context.text(1)?)))
    }),
];

fn length(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let text = context.text(0)?;
    let length = text.to_str().map_or(text.len(), |text| text.chars().count());
    Ok(Value::Integer(length as i64))
}

fn replace(context: &mut FunctionContext) -> Result<Option<Value>, Suspend> {
    if context.task.progress.as_ref().is_none_or(|progress| progress.replacing.is_none()) {
        let pattern = context.text(1)?;
        let regex = regex(pattern.as_bstr()).map_err(Suspend::from)?;
        let subject = Subject::new(context.text(0)?, pattern.as_bstr()).map_err(Suspend::from)?;
        let replacing = Replacing::new(subject, regex, &context.text(2)?).map_err(Suspend::from)?;
        context.task.progress().replacing = Some(replacing);
    }
    let Some(replacing) = &mut context.task.progress().replacing else { return Ok(None) };
    let (handled, done) = replacing.step_on();
    context.count(handled);
    Ok(done?.map(Value::from))
}

fn first_match(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (text, pattern) = (context.text(0)?, context.text(1)?);
    let pattern: &BStr = pattern.as_bstr();
    let regex = regex(pattern).map_err(Suspend::from)?;
    let subject = Subject::new(&**text, pattern).map_err(Suspend::from)?;
    let group = usize::from(regex.captures_len() > 1);
    match regex.captures(subject.searched()) {
        Some(captures) => {
            let found = captures.get(group).map_or(0..0, |found| found.range());
            Ok(Value::from(size::copy(subject.original(found))?))
        }
        None => Err(Suspend::from(ValueError::NoMatch(pattern.to_owned()))),
    }
}

fn substr(context: &mut FunctionContext) -> Result<Value, Suspend> {
    let (text, from) = (context.text(0)?, context.integer(1)?);
    let length = match context.arguments().len() {
        3 => context.integer(2)?,
        _ => i64::MAX,
    };
    if from == 0 || length < 0 {
        let why = if from == 0 { "counts from 1" } else { "takes no negative length" };
        return Err(Suspend::expression(Slug::FunctionArgument, format!("substr {why}")));
    }
    let clamped = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let part = match text.to_str() {
        Ok(characters) => {
            let count = characters.chars().count();
            let skipped = skipped(from, count);
            let start = offset(characters, skipped);
            let end = start + offset(&characters[start..], clamped(length));
            &text[start..end]
        }
        Err(_) => {
            let start = skipped(from, text.len()).min(text.len());
            &text[start..start.saturating_add(clamped(length)).min(text.len())]
        }
    };
    Ok(Value::from(size::copy(part)?))
}

/// Returns the number of units before the position `from`, which counts from 1, or from the end of
/// `count` units if negative.
fn skipped(from: i64, count: usize) -> usize {
    let distance = usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX);
    if from > 0 { distance - 1 } else { count.saturating_sub(distance) }
}

/// Returns the offset of a character, or the end of a shorter text.
fn offset(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// Changes the case of the UTF-8 parts of a text, and copies other bytes.
fn cased(text: &[u8], change: fn(&str) -> String) -> Result<Value, Suspend> {
    // Some characters become longer.
    if !size::can_allocate(2 * text.len()) {
        return Err(size::no_memory(text.len()));
    }
    let mut changed = BString::default();
    for chunk in text.utf8_chunks() {
        changed.extend_from_slice(change(chunk.valid()).as_bytes());
        changed.extend_from_slice(chunk.invalid());
    }
    if changed.len() > size::MAX_VALUE_LEN {
        return Err(Suspend::from(size::ValueTooLong(changed.len())));
    }
    Ok(Value::from(changed))
}

fn trim(text: &[u8]) -> &[u8] {
    match text.to_str() {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => text.trim_ascii(),
    }
}
