//! Values known before the script runs, which the parser checks.

use std::borrow::Cow;

use regex::bytes::Regex;

use super::Result;
use crate::ast::{Expr, ExprKind, Parameter, Quoted, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::nearest::nearest;
use crate::slug::Slug;
use crate::span::Span;

/// Returns the text of a word without variables.
pub fn word(word: &Word) -> Option<Cow<'_, str>> {
    if let [WordPart::Bare(only) | WordPart::Single(only)] = &word.parts[..] {
        return Some(Cow::Borrowed(only));
    }
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Bare(bare) | WordPart::Single(bare) => text.push_str(bare),
            WordPart::Escaped(escaped) => text.push(*escaped),
            WordPart::Double(pieces) => {
                for piece in pieces {
                    match piece {
                        Quoted::Text(piece) => text.push_str(piece),
                        Quoted::Variable(_) | Quoted::Call(_) => return None,
                    }
                }
            }
            WordPart::Variable(_) | WordPart::Call(_) => return None,
        }
    }
    Some(Cow::Owned(text))
}

/// Returns the text of an expression of one word without variables.
pub fn expr(mut expr: &Expr) -> Option<Cow<'_, str>> {
    while let ExprKind::Group(inner) = &expr.kind {
        expr = inner;
    }
    match &expr.kind {
        ExprKind::Word(inner) => word(inner),
        _ => None,
    }
}

/// Returns true for an expression that is `$error_kind` without another value for an unset one.
pub fn is_error_kind(expr: &Expr) -> bool {
    let ExprKind::Word(word) = &expr.kind else { return false };
    let is_kind = |parameter: &Parameter| matches!(parameter, Parameter::Named(name) if &**name == "error_kind");
    word.variable().is_some_and(|it| it.substitute.is_none() && is_kind(&it.parameter))
}

/// Returns the text of a word without quotes and variables.
pub fn bare(word: &Word) -> Option<&str> {
    match &word.parts[..] {
        [WordPart::Bare(bare)] => Some(bare),
        _ => None,
    }
}

/// Returns a word as written, if it consists of text and plain variables.
pub fn written(word: &Word) -> Option<String> {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            WordPart::Bare(bare) => text.push_str(bare),
            WordPart::Variable(variable) if variable.substitute.is_none() => {
                text.push('$');
                match &variable.parameter {
                    Parameter::Named(name) => text.push_str(name),
                    Parameter::Count => text.push('#'),
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some(text)
}

/// Returns an operand [as written](written).
pub fn operand(operand: &Expr) -> Option<String> {
    match &operand.kind {
        ExprKind::Word(word) => written(word),
        _ => None,
    }
}

/// Parses a number with an optional fraction.
pub fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

/// Refuses a comparison of `$error_kind` with a text that is not a kind of failure.
pub(super) fn check_kinds(left: &Expr, right: &Expr) -> Result<()> {
    for (kind, name) in [(left, right), (right, left)] {
        if is_error_kind(kind)
            && let Some(text) = expr(name)
        {
            check_kind(&text, name.span)?;
        }
    }
    Ok(())
}

/// Refuses a text that is neither a kind of failure nor empty, as the kind is after a success.
pub(super) fn check_kind(name: &str, span: Span) -> Result<()> {
    if name.is_empty() || Slug::KINDS.contains(&name) {
        return Ok(());
    }
    let message = format!("`{name}` is not a kind of failure");
    let hint = match nearest(name, Slug::KINDS) {
        Some(meant) => hint!("did you mean `{meant}`?"),
        None => {
            let kinds = Slug::KINDS.join(", ");
            hint!("the kinds are {kinds}")
        }
    };
    Err(Box::new(SyntaxError::new(Slug::UnknownKind, span, message).hint(hint)))
}

/// Refuses an invalid regular expression.
pub(super) fn check_pattern(pattern: &Expr) -> Result<()> {
    let Some(text) = expr(pattern) else { return Ok(()) };
    let Err(error) = Regex::new(&text) else { return Ok(()) };
    let why = match &error {
        regex::Error::CompiledTooBig(_) => "too big".to_owned(),
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
