//! Lint of clauses of loops without an effect.

use std::time::Duration;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Expr, ExprKind, For, ForKind, Try};
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Tightest known limit of the enclosing tries, with its span.
type Limit = Option<(Duration, Span)>;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    block(&script.body, None, &mut warnings);
    warnings
}

fn block(block: &Block, limit: Limit, warnings: &mut Vec<Warning>) {
    for command in &block.commands {
        self::command(command, limit, warnings);
    }
}

fn command(command: &Command, limit: Limit, warnings: &mut Vec<Warning>) {
    let limit = match &command.kind {
        CommandKind::Try(details) => {
            let after = details.catch.iter().chain(&details.finally);
            after.for_each(|(_, after)| block(after, limit, warnings));
            return block(&details.body, within(details, command.span, limit), warnings);
        }
        // The caller of a function is unknown.
        CommandKind::Function { .. } => None,
        CommandKind::For(details) => {
            warnings.extend(unreachable(details));
            warnings.extend(too_late(details, limit));
            limit
        }
        _ => limit,
    };
    for inner in walk::blocks(command) {
        block(inner, limit, warnings);
    }
}

/// Returns the limit inside of a `try`.
fn within(details: &Try, head: Span, around: Limit) -> Limit {
    let clauses = [&details.clauses.time, &details.clauses.each];
    let own = clauses.into_iter().flatten().filter_map(|limit| Some((limit.literal()?, head)));
    own.chain(around).min_by_key(|(length, _)| *length)
}

/// Warns of `at least` above the number of words.
fn unreachable(details: &For) -> Option<Warning> {
    let ForKind::All(clauses) = &details.kind else { return None };
    let least = clauses.at_least.as_ref()?;
    let wanted: u64 = literal::expr(least)?.trim().parse().ok()?;
    let words = details.list.iter().map(count).sum::<Option<u64>>()?;
    let noun = if words == 1 { "word" } else { "words" };
    (wanted > words).then(|| {
        let message = format!("{wanted} of {words} {noun} can't succeed: this always fails");
        Warning::new(Slug::TooFewWords, least.span, message)
    })
}

/// Returns the number of words of an item of a list, if the item is literal.
fn count(item: &Expr) -> Option<u64> {
    match &item.kind {
        ExprKind::Word(word) => {
            let text = literal::word(word)?;
            let is_pattern = literal::bare(word).is_some() && text.contains(['*', '?', '[']);
            (!is_pattern).then_some(1)
        }
        ExprKind::Range { from, to, step } => {
            let number = |expr: &Expr| literal::expr(expr)?.trim().parse::<i64>().ok();
            let (from, to) = (number(from)?, number(to)?);
            let step = step.as_ref().map_or(Some(1), |step| number(step)).filter(|it| *it != 0)?;
            let is_empty = if step > 0 { from > to } else { from < to };
            let more = from.abs_diff(to) / step.unsigned_abs();
            Some(if is_empty { 0 } else { more.saturating_add(1) })
        }
        _ => None,
    }
}

/// Warns of a `hedge after` at or beyond the enclosing limit.
fn too_late(details: &For, limit: Limit) -> Option<Warning> {
    let ForKind::Any(clauses) = &details.kind else { return None };
    let after = clauses.hedge_after.as_ref()?;
    let (limit, head) = limit?;
    (after.literal()? >= limit).then(|| {
        Warning::new(
            Slug::LateHedge,
            after.span(),
            "the hedge never begins: the time limit passes first",
        )
        .related(head, "this `try` limits the time")
    })
}
