//! Lint of files that another shell opens inside of an atomic attempt, and of output of failed
//! attempts in a pipeline.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, Command, CommandKind, Mode, Parameter, Quoted, Redirect, RedirectionTarget, Simple,
    Stage, VariableUse, WordPart,
};
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
                // A file below a directory of `atomic in` is undone.
                if details.atomic_in.is_empty() {
                    let of_commands = walk::simples(inside).flat_map(|simple| &simple.redirects);
                    let redirects = inside.redirects.iter().chain(of_commands);
                    warnings.extend(redirects.filter_map(kept_file));
                }
            });
        }
        if let CommandKind::Pipeline(pipeline) = &command.kind
            && let [before @ .., _] = &pipeline.stages[..]
        {
            warnings.extend(before.iter().filter_map(Stage::block).filter_map(repeated));
        }
        warnings.extend(appended(command));
    });
    // Nested tries visit a command more than once.
    warnings.sort_by_key(|warning: &Warning| warning.span.start);
    warnings.dedup_by_key(|warning| warning.span.start);
    warnings
}

/// Returns the warning if a failed attempt leaves the file of a redirection inside.
fn kept_file(redirect: &Redirect) -> Option<Warning> {
    let RedirectionTarget::File(word) = &redirect.target else { return None };
    let first = match word.parts.first()? {
        WordPart::Bare(text) | WordPart::Single(text) => &**text,
        WordPart::Double(parts) => match parts.first()? {
            Quoted::Text(text) => text,
            Quoted::Variable(variable) => variable_name(variable),
            Quoted::Call(_) => "",
        },
        WordPart::Variable(variable) => variable_name(variable),
        _ => "",
    };
    let is_elsewhere = ["/dev/", "/proc/", "scratch"].iter().any(|it| first.starts_with(it));
    if redirect.mode == Mode::Read || is_elsewhere {
        return None;
    }
    let message = "a failed attempt leaves this file: `atomic` does not undo it";
    Some(Warning::new(Slug::FileInAtomic, redirect.span, message).hint(hint!(
        "redirect all the attempt prints, `end > file`, or hold a directory, `atomic in .`"
    )))
}

/// Returns the name of a variable in a word.
fn variable_name(variable: &VariableUse) -> &str {
    match &variable.parameter {
        Parameter::Named(name) => name,
        _ => "",
    }
}

/// Returns the warning if a stage that others read is a `try` with several attempts.
fn repeated(stage: &Block) -> Option<Warning> {
    let [Command { kind: CommandKind::Try(details), span, redirects, .. }] = &stage.commands[..]
    else {
        return None;
    };
    if details.clauses.atomic
        || !walk::has_retries(details)
        || redirects.iter().any(|it| it.descriptor == 1)
    {
        return None;
    }
    let message = "the next command also reads what failed attempts print";
    Some(
        Warning::new(Slug::RepeatedOutput, *span, message)
            .hint(hint!("to pass on only the output of the attempt that succeeds, add `atomic`")),
    )
}

/// Returns the warning if the last command of a pipeline in a `try` on one line appends to a file.
/// The redirection looks like that of the whole `try`.
fn appended(command: &Command) -> Option<Warning> {
    let CommandKind::Try(details) = &command.kind else { return None };
    if !command.one_line || details.clauses.atomic || !walk::has_retries(details) {
        return None;
    }
    let CommandKind::Pipeline(pipeline) = &details.body.commands.first()?.kind else { return None };
    let mut redirects = pipeline.stages.last()?.simple()?.redirects.iter();
    let wrong = redirects.find(|it| it.descriptor == 1 && it.mode == Mode::Append)?;
    let message = "each attempt appends to this file: failed attempts leave their output";
    Some(
        Warning::new(Slug::RepeatedOutput, wrong.span, message)
            .hint(hint!("redirect what the whole `try` prints, after its `end`: `end >> file`")),
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
            .hint(hint!("redirect what the attempt prints: `end >> file`")),
    )
}
