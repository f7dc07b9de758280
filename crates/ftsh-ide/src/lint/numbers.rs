//! Lint of text in place of a value: `n=n+1`, `n == 5`, `$n .lt. max`, and of versions as numbers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Warning, walk};
use crate::lsp::names::set_in;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{BinaryOperator, CommandKind, Expr, ExprKind, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::is_name;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let assigned = set_in(script);
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Assign { name, value: Some(value), .. } = &command.kind
            && let Some(text) = literal::operand(value)
        {
            warnings.extend(sum("", name, &text, value.span));
        }
        for simple in walk::simples(command) {
            if walk::name(simple).as_deref() == Some("export") {
                warnings.extend(simple.words[1..].iter().filter_map(|word| {
                    let text = literal::written(word)?;
                    let (name, value) = text.split_once('=')?;
                    sum("export ", name, value, word.span)
                }));
            }
        }
        if let CommandKind::Case(case) = &command.kind
            && let ExprKind::Word(word) = &case.value.kind
            && let Some(name) = literal::bare(word).filter(|name| is_name(name))
        {
            warnings.push(named(&case.value, name, &assigned));
        }
        for expr in walk::expressions(command) {
            operators(expr, &assigned, &mut warnings);
        }
    });
    warnings
}

/// Checks a value that would be a calculation in other languages.
///
/// Behind other names than that of the variable, `-` or `/` may be meant as text.
fn sum(keyword: &str, name: &str, text: &str, span: Span) -> Option<Warning> {
    let (left, symbol, right) = parts(text)?;
    let is_sum = symbol == "*" || symbol == "+" && left.starts_with('$') || left == "$#";
    if !is_sum && left.strip_prefix('$').unwrap_or(left) != name {
        return None;
    }
    let message = format!("`{text}` is text: nothing is calculated");
    Some(
        Warning::new(Slug::TextArithmetic, span, message)
            .hint(hint!("write `{keyword}{name}={} {symbol} {right}`", variable(left))),
    )
}

/// Returns a text such as `$n*2` with spaces around its symbol.
pub(super) fn product(value: &Expr) -> Option<String> {
    let text = literal::operand(value)?;
    let (left, _, right) = parts(&text).filter(|(_, symbol, _)| *symbol == "*")?;
    Some(format!("{left} * {right}"))
}

/// Splits a text such as `$n*2` or `n+1` at its symbol.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find(['+', '-', '*', '/', '%'])?;
    let (left, right) = (&text[..at], &text[at + 1..]);
    let is_number = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit()) && literal::number(text).is_some()
    };
    let is_variable =
        |text: &str| text.strip_prefix('$').is_some_and(|name| is_name(name) || name == "#");
    let fits = (is_number(left) || is_name(left) || is_variable(left))
        && (is_number(right) || is_variable(right));
    fits.then(|| (left, &text[at..=at], right))
}

/// Returns a name as a variable; other texts as they are.
fn variable(text: &str) -> String {
    if is_name(text) { format!("${text}") } else { text.to_owned() }
}

/// Checks the operands of operators for texts that are meant as values.
fn operators(expr: &Expr, assigned: &BTreeSet<String>, warnings: &mut Vec<Warning>) {
    match &expr.kind {
        ExprKind::Binary { operator, left, right, .. } if takes_numbers(*operator) => {
            if let Some(warning) = versions(*operator, left, right) {
                return warnings.push(warning);
            }
            warnings.extend([left, right].into_iter().filter_map(|operand| not_a_number(operand)));
        }
        ExprKind::Binary {
            operator: BinaryOperator::Eq | BinaryOperator::Ne, left, right, ..
        } => {
            let pairs = [(left, right), (right, left)];
            warnings.extend(pairs.into_iter().find_map(|(one, other)| text(one, other, assigned)));
        }
        ExprKind::Range { from, to, .. } => {
            warnings.extend([from, to].into_iter().filter_map(|end| glued(end)));
        }
        _ => {}
    }
    for operand in walk::operands(expr) {
        operators(operand, assigned, warnings);
    }
}

/// Checks an operand of `==` for a text that is meant as a variable, a command or a calculation.
fn text(operand: &Expr, other: &Expr, assigned: &BTreeSet<String>) -> Option<Warning> {
    let ExprKind::Word(word) = &operand.kind else { return None };
    let fixed = literal::expr(other);
    if let [WordPart::Single(text)] = &word.parts[..]
        && let Some(name) = text.strip_prefix('$')
        && assigned.contains(name)
    {
        let message = format!("`'{text}'` is the text between the quotes");
        let warning = Warning::new(Slug::TextOperand, operand.span, message);
        return Some(
            warning.hint(hint!("the value of the variable is `${name}` or `\"${name}\"`")),
        );
    }
    let is_number = fixed.as_ref().is_some_and(|other| literal::number(other).is_some());
    if is_number
        && product(operand).is_none()
        && let Some(warning) = glued(operand)
    {
        return Some(warning);
    }
    let name = literal::bare(word).filter(|name| is_name(name))?;
    if matches!(name, "true" | "false") || fixed.is_none() && !assigned.contains(name) {
        return None;
    }
    Some(named(operand, name, assigned))
}

/// Returns the warning for a text that is meant as a variable or a command.
fn named(operand: &Expr, name: &str, assigned: &BTreeSet<String>) -> Warning {
    let message = format!("`{name}` is text: the comparison is with these letters");
    let warning = Warning::new(Slug::TextOperand, operand.span, message);
    if assigned.contains(name) {
        warning.hint(hint!("the variable is `${name}`; a text has quotes: `\"{name}\"`"))
    } else {
        warning.hint(hint!("what a command prints is `$({name})`; a variable is `${name}`"))
    }
}

/// Checks an operand for a calculation without spaces: `$n-1`.
fn glued(operand: &Expr) -> Option<Warning> {
    let written = literal::operand(operand)?;
    let (left, symbol, right) = parts(&written)?;
    let message = format!("`{written}` is text: nothing is calculated");
    Some(
        Warning::new(Slug::TextArithmetic, operand.span, message)
            .hint(hint!("put spaces around an operator: `{left} {symbol} {right}`")),
    )
}

/// Checks the operands of a comparison for versions.
fn versions(operator: BinaryOperator, left: &Expr, right: &Expr) -> Option<Warning> {
    let text = |operand: &Expr| match &operand.kind {
        ExprKind::Word(word) => {
            literal::word(word).map(Cow::into_owned).or_else(|| literal::written(word))
        }
        _ => None,
    };
    let (one, other) = (text(left)?, text(right)?);
    let points = |text: &str| {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit()) && !text.ends_with('.');
        if is_number { text.matches('.').count() } else { 0 }
    };
    let is_named = |text: &str| text.starts_with('$') && text.to_lowercase().contains("version");
    let may_be = |one: &str, other: &str| is_named(one) && (points(other) > 0 || is_named(other));
    if !may_be(&one, &other) && !may_be(&other, &one) && points(&one).max(points(&other)) < 2 {
        return None;
    }
    let meant = match operator {
        BinaryOperator::Lt => format!("newer({other}, {one})"),
        BinaryOperator::Le => format!("! newer({one}, {other})"),
        BinaryOperator::Gt => format!("newer({one}, {other})"),
        BinaryOperator::Ge => format!("! newer({other}, {one})"),
        _ => return None,
    };
    let span = left.span.to(right.span);
    let message = "versions are compared as numbers here, where `3.10` is `3.1`";
    Some(Warning::new(Slug::VersionAsNumber, span, message).hint(hint!("write `{meant}`")))
}

fn takes_numbers(operator: BinaryOperator) -> bool {
    match operator {
        BinaryOperator::Or
        | BinaryOperator::And
        | BinaryOperator::Eq
        | BinaryOperator::Ne
        | BinaryOperator::Contains
        | BinaryOperator::Matches => false,
        BinaryOperator::Eql
        | BinaryOperator::Neql
        | BinaryOperator::Lt
        | BinaryOperator::Le
        | BinaryOperator::Gt
        | BinaryOperator::Ge
        | BinaryOperator::Add
        | BinaryOperator::Sub
        | BinaryOperator::Mul
        | BinaryOperator::Div
        | BinaryOperator::Mod
        | BinaryOperator::Pow => true,
    }
}

fn not_a_number(operand: &Expr) -> Option<Warning> {
    let text = literal::expr(operand)?;
    if text.trim().parse::<f64>().is_ok() {
        return None;
    }
    let warning =
        Warning::new(Slug::TextOperand, operand.span, format!("`{text}` is not a number"));
    Some(if is_name(&text) { warning.hint(hint!("the variable is `${text}`")) } else { warning })
}
