//! Values that are known before the script runs, and can be checked.

use std::borrow::Cow;

use regex::bytes::Regex;

use super::Result;
use crate::ast::{Expr, ExprKind, Parameter, Part, Quoted, Word};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;

/// The text of a word without variables.
pub fn word(word: &Word) -> Option<Cow<'_, str>> {
    if let [Part::Bare(only) | Part::Single(only)] = &word.parts[..] {
        return Some(Cow::Borrowed(only));
    }
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Bare(bare) | Part::Single(bare) => text.push_str(bare),
            Part::Escaped(escaped) => text.push(*escaped),
            Part::Double(pieces) => {
                for piece in pieces {
                    match piece {
                        Quoted::Text(piece) => text.push_str(piece),
                        Quoted::Variable(_) => return None,
                    }
                }
            }
            Part::Variable(_) => return None,
        }
    }
    Some(Cow::Owned(text))
}

/// The text of an expression that is one word without variables.
pub fn expr(mut expr: &Expr) -> Option<Cow<'_, str>> {
    while let ExprKind::Group(inner) = &expr.kind {
        expr = inner;
    }
    match &expr.kind {
        ExprKind::Word(inner) => word(inner),
        _ => None,
    }
}

/// The text of a word that is written without quotes and variables.
pub fn bare(word: &Word) -> Option<&str> {
    match &word.parts[..] {
        [Part::Bare(bare)] => Some(bare),
        _ => None,
    }
}

/// A word as it is written, if it is made of text and plain variables.
pub fn written(word: &Word) -> Option<String> {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Bare(bare) => text.push_str(bare),
            Part::Variable(variable) if variable.substitute.is_none() => {
                let Parameter::Named(name) = &variable.parameter else { return None };
                text.push('$');
                text.push_str(name);
            }
            _ => return None,
        }
    }
    Some(text)
}

/// A number with an optional fraction, as scripts write it.
pub fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

/// Refuses a regular expression that can't be one.
pub(super) fn check_pattern(pattern: &Expr) -> Result<()> {
    let Some(text) = expr(pattern) else { return Ok(()) };
    let Err(error) = Regex::new(&text) else { return Ok(()) };
    let why = match &error {
        regex::Error::CompiledTooBig(_) => "it is too big".to_owned(),
        error => error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    };
    let why = why.strip_prefix("error: ").unwrap_or(&why);
    Err(Box::new(
        SyntaxError::new(
            Slug::RegularExpression,
            pattern.span,
            format!("not a regular expression: {why}"),
        )
        .hint(hint!("a `\\` before a character takes away its special meaning")),
    ))
}
