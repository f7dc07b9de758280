//! Lint of files that another shell opens inside of an atomic attempt, and of output of failed
//! attempts in a pipeline.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Simple, Stage};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;

/// Shells that run the text after `-c`.
const SHELLS: [&str; 5] = ["bash", "dash", "ksh", "sh", "zsh"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        if let CommandKind::Try(details) = &command.kind
            && details.clauses.atomic
        {
            walk::each(&details.body, &mut |inside| {
                warnings.extend(walk::simples(inside).filter_map(append));
            });
        }
        if let CommandKind::Pipeline(pipeline) = &command.kind
            && let [before @ .., _] = &pipeline.stages[..]
        {
            warnings.extend(before.iter().filter_map(Stage::block).filter_map(repeated));
        }
    });
    // Nested tries visit a command more than once.
    warnings.sort_by_key(|warning: &Warning| warning.span.start);
    warnings.dedup_by_key(|warning| warning.span.start);
    warnings
}

/// Returns the warning if a stage that others read is a `try` with several attempts.
fn repeated(stage: &Block) -> Option<Warning> {
    let [Command { kind: CommandKind::Try(details), span, .. }] = &stage.commands[..] else {
        return None;
    };
    let clauses = &details.clauses;
    let repeats = match &clauses.times {
        Some(times) => literal::expr(times).is_none_or(|times| times != "1"),
        None => clauses.time.is_some(),
    };
    if details.is_limit || clauses.atomic || !repeats {
        return None;
    }
    let message = "the next command also reads what failed attempts print";
    Some(
        Warning::new(Slug::RepeatedOutput, *span, message)
            .hint(hint!("to pass on only the output of the attempt that succeeds, add `atomic`")),
    )
}

/// Returns the warning if a shell of the command appends to a file.
fn append(simple: &Simple) -> Option<Warning> {
    walk::name(simple).filter(|name| SHELLS.contains(&&**name))?;
    let at = simple.words.iter().position(|word| literal::bare(word) == Some("-c"))?;
    let code = simple.words.get(at + 1)?;
    literal::word(code).filter(|text| text.contains(">>"))?;
    let message = "this file is opened by another shell: a failed attempt leaves what it appended";
    Some(
        Warning::new(Slug::AppendInAtomic, code.span, message)
            .hint(hint!("redirect the command here: `command >> file`")),
    )
}
