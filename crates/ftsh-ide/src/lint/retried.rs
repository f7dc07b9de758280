//! Lint of statements in the body of a `try` with several attempts that end all attempts, or that an
//! attempt repeats.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Simple};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Try(details) = &command.kind
            && walk::has_retries(details)
        {
            body(&details.body, &details.body, &mut warnings);
        }
    });
    // Nested tries visit a command more than once.
    warnings.sort_by_key(|warning: &Warning| warning.span.start);
    warnings.dedup_by_key(|warning| warning.span.start);
    warnings
}

/// Checks a block of an attempt. The block of a branch is a task of its own.
fn body(block: &Block, attempt: &Block, warnings: &mut Vec<Warning>) {
    for command in &block.commands {
        warnings.extend(statement(command, attempt));
        let is_task = match &command.kind {
            CommandKind::For(details) => details.kind.has_branches(),
            CommandKind::Pipeline(pipeline) => pipeline.stages.len() > 1,
            CommandKind::Function { .. } => true,
            _ => false,
        };
        if !is_task {
            command.blocks().into_iter().for_each(|inner| body(inner, attempt, warnings));
        }
    }
}

fn statement(command: &Command, attempt: &Block) -> Option<Warning> {
    match &command.kind {
        CommandKind::Pipeline(pipeline) => {
            walk::single(pipeline).filter(|it| exits(it)).map(|_| ending(command.span))
        }
        CommandKind::Return(Some(value)) => {
            literal::expr(value)?.parse::<u32>().ok().filter(|status| *status != 0)?;
            Some(ending(command.span))
        }
        CommandKind::Shift(_) => Some(repeated(command.span)),
        CommandKind::List { name, adds: true, .. } => {
            let is_made = |it: &Command| matches!(&it.kind, CommandKind::List { name: made, adds: false, .. } if made == name);
            let mut is_fresh = false;
            walk::each(attempt, &mut |it| is_fresh |= is_made(it));
            (!is_fresh).then(|| repeated(command.span))
        }
        _ => None,
    }
}

/// Returns true for `exit` with a status other than 0.
fn exits(simple: &Simple) -> bool {
    let is_exit = walk::name(simple).is_some_and(|name| name == "exit");
    let status = simple.words.get(1);
    is_exit && status.is_some_and(|status| literal::word(status).is_none_or(|it| it != "0"))
}

fn ending(span: Span) -> Warning {
    let message = "this ends the script or the function, and no other attempt follows";
    Warning::new(Slug::LeavesAttempts, span, message).hint(hint!(
        "to fail this attempt only, write `failure`; to make no other attempt, write `giveup`"
    ))
}

fn repeated(span: Span) -> Warning {
    let message = "each attempt does this again, with what the failed attempt left";
    Warning::new(Slug::RepeatedChange, span, message)
        .hint(hint!("move the line before the `try` or after its `end`"))
}
