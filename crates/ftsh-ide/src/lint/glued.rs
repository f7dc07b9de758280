//! Lint of operators without blanks on both sides, which are text.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{BinaryOperator, CommandKind, Expr, ExprKind, Simple, UnaryOperator, Word};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        warnings.extend(walk::simples(command).filter_map(signed));
        match &command.kind {
            CommandKind::If { arms, .. } => {
                for (expr, _) in arms {
                    condition(expr, &mut warnings);
                }
            }
            CommandKind::While { condition: expr, .. } => condition(expr, &mut warnings),
            _ => {}
        }
    });
    warnings
}

/// Checks a command for `x=$y -2`, which runs `-2` with a variable.
fn signed(simple: &Simple) -> Option<Warning> {
    let ([(name, value)], [word]) = (&simple.assignments[..], &simple.words[..]) else {
        return None;
    };
    let text = literal::bare(word)?;
    let (sign, number) = text.split_at_checked(1)?;
    if !matches!(sign, "+" | "-" | "*" | "/" | "%") || literal::number(number).is_none() {
        return None;
    }
    let value = literal::written(value).filter(|value| !value.is_empty())?;
    let message = format!("`{text}` is a command here, and `{name}` is set for this command only");
    let span = Span::new(word.span.start, word.span.end);
    let hint = hint!("blanks stand around an operator: `{name}={value} {sign} {number}`");
    Some(Warning::new(Slug::TextArithmetic, span, message).hint(hint))
}

/// Checks a condition and the conditions that it consists of.
fn condition(expr: &Expr, warnings: &mut Vec<Warning>) {
    match &expr.kind {
        ExprKind::Word(word) => warnings.extend(compared(word)),
        ExprKind::Group(inner) => condition(inner, warnings),
        ExprKind::Unary { operator: UnaryOperator::Not, operand, .. } => {
            condition(operand, warnings);
        }
        ExprKind::Binary {
            operator: BinaryOperator::And | BinaryOperator::Or,
            left,
            right,
            ..
        } => {
            condition(left, warnings);
            condition(right, warnings);
        }
        _ => {}
    }
}

/// Checks a condition for the texts `$a=1` and `!$a`.
fn compared(word: &Word) -> Option<Warning> {
    let text = literal::written(word)?;
    let meant = match text.strip_prefix('!') {
        Some(value) if value.starts_with('$') => format!("! {value}"),
        _ => {
            let (left, right) = text.split_once('=').filter(|(left, _)| left.starts_with('$'))?;
            let (left, symbol) = match left.strip_suffix('!') {
                Some(left) => (left, "!="),
                None => (left, "=="),
            };
            let right = right.trim_start_matches('=');
            if right.is_empty() {
                return None;
            }
            format!("{left} {symbol} {right}")
        }
    };
    let message = format!("`{text}` is one text, and neither `true` nor `false`");
    let hint = hint!("blanks stand around an operator: `{meant}`");
    Some(Warning::new(Slug::TextOperand, word.span, message).hint(hint))
}
