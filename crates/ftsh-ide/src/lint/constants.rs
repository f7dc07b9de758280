//! Lint of constants without an effect: empty ranges, no time between attempts.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, CommandKind, Expr, ExprKind};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    block(&script.body, &mut warnings);
    warnings
}

fn block(block: &Block, warnings: &mut Vec<Warning>) {
    for command in &block.commands {
        if let CommandKind::Try(details) = &command.kind
            && let Some(every) = details.clauses.every.as_ref().filter(|every| every.is_zero())
        {
            warnings.push(
                Warning::new(Slug::ZeroEvery, every.span(), "`every` of zero has no effect").hint(
                    hint!("the usual delays separate the attempts; for no delays, `backoff none`"),
                ),
            );
        }
        for expr in walk::expressions(command) {
            expression(expr, warnings);
        }
        for inner in walk::blocks(command) {
            self::block(inner, warnings);
        }
    }
}

fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    if let ExprKind::Range { from, to, step } = &expr.kind {
        let number = |expr: &Expr| literal::expr(expr)?.trim().parse().ok();
        let step = step.as_ref().map_or(Some(1), |step| number(step));
        if let (Some(from), Some(to), Some(step)) = (number(from), number(to), step) {
            warnings.extend(empty_range(expr.span, from, to, step));
        }
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}

fn empty_range(span: Span, from: i64, to: i64, step: i64) -> Option<Warning> {
    let length = step.unsigned_abs();
    let (counts, is, hint) = if step > 0 && from > to {
        ("up", "above", hint!("`{from} .to. {to} .step. -{length}` counts down"))
    } else if step < 0 && from < to {
        ("down", "below", hint!("`{from} .to. {to} .step. {length}` counts up"))
    } else {
        return None;
    };
    let message = format!("this range is empty: it counts {counts}, and {from} is {is} {to}");
    Some(Warning::new(Slug::EmptyRange, span, message).hint(hint))
}
