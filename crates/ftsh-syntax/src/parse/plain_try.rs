//! Parser of plain heads of `try` without the grammar: `try for 5 minutes or 3 times each 10 seconds`.
//!
//! Limits and clauses are literal and correct, and each stands once. Every other head is left to
//! the grammar.

use smallvec::smallvec;

use super::cursor::Cursor;
use super::line::{HeadLine, ParsedLine};
use crate::ast::{Duration, Expr, ExprKind, Try, Unit, Word, WordPart};
use crate::clauses::TryClauses;
use crate::span::Span;

/// Parses the clauses after `try`, up to the end of the line.
pub(super) fn head(cursor: &mut Cursor) -> Option<ParsedLine> {
    let mut clauses = TryClauses::default();
    while !cursor.ends_line() {
        let start = cursor.at;
        let taken = match cursor.plain_word()? {
            "atomic" => std::mem::replace(&mut clauses.atomic, true),
            "each" => clauses.each.replace(length(cursor)?).is_some(),
            "every" => clauses.every.replace(length(cursor)?).is_some(),
            word => {
                if !matches!(word, "for" | "or") {
                    cursor.at = start;
                }
                let amount = amount(cursor)?;
                match cursor.plain_word()? {
                    "time" | "times" => clauses.times.replace(amount).is_some(),
                    unit => clauses.time.replace(with_unit(amount, unit)?).is_some(),
                }
            }
        };
        if taken {
            return None;
        }
    }
    let details = Try { clauses, ..Try::default() };
    Some(ParsedLine::Head(HeadLine::Try(Box::new(details))))
}

/// Parses a length of time such as `5 minutes`.
fn length(cursor: &mut Cursor) -> Option<Duration> {
    let amount = amount(cursor)?;
    let unit = cursor.plain_word()?;
    with_unit(amount, unit)
}

fn with_unit(amount: Expr, unit: &str) -> Option<Duration> {
    Some(Duration::Amount { amount, unit: Unit::named(unit)? })
}

/// Parses a whole number above zero, of few digits.
fn amount(cursor: &mut Cursor) -> Option<Expr> {
    cursor.ends_line();
    let start = cursor.at;
    let text = cursor.plain_word()?;
    let is_amount = text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_amount || text.starts_with('0') {
        return None;
    }
    let span = Span::new(start, cursor.at);
    let word = Word { span, parts: smallvec![WordPart::Bare(text.to_owned())] };
    Some(Expr { span, kind: ExprKind::Word(word) })
}
