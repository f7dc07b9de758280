//! Lint of `x=`, which unsets `x`, before a read of `x`.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Block, Command, CommandKind, Mode, Parameter, Redirect, RedirectionTarget};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    block(&script.body, &mut warnings);
    walk::each(&script.body, &mut |command| {
        for inner in walk::blocks(command) {
            block(inner, &mut warnings);
        }
    });
    warnings
}

/// Checks the commands of a block that follow each `x=`, up to the next change of `x`.
fn block(block: &Block, warnings: &mut Vec<Warning>) {
    for (index, command) in block.commands.iter().enumerate() {
        let CommandKind::Assign { name, value: None, .. } = &command.kind else { continue };
        for next in &block.commands[index + 1..] {
            if let Some(read) = reads(next, name) {
                let message = format!("`{name}` is not set here: `{name}=` unsets it");
                let warning = Warning::new(Slug::EmptyAssignment, read, message);
                warnings.push(warning.hint(hint!("an empty value is written `{name}=\"\"`")));
                break;
            }
            if may_set(next, name) {
                break;
            }
        }
    }
}

/// Returns the place of the first read of a variable without a default.
///
/// The structures of the command are read in the order of the text, up to a change of the variable.
fn reads(command: &Command, name: &str) -> Option<Span> {
    let mut first: Option<Span> = None;
    for word in walk::words(command) {
        walk::variables(&word.parts, &mut |variable, _| {
            let is_it = matches!(&variable.parameter, Parameter::Named(it) if &**it == name);
            if is_it && variable.substitute.is_none() {
                let is_first = first.is_none_or(|it| variable.span.start < it.start);
                first = if is_first { Some(variable.span) } else { first };
            }
        });
    }
    first
}

/// Returns true if a command, or a command in its blocks, may set a variable.
fn may_set(command: &Command, name: &str) -> bool {
    let is_written = |redirect: &Redirect| {
        redirect.mode != Mode::Read
            && matches!(&redirect.target, RedirectionTarget::Variable(word)
                if literal::word(word).is_none_or(|it| it == name))
    };
    let here = match &command.kind {
        CommandKind::Assign { name: it, .. } | CommandKind::List { name: it, .. } => &**it == name,
        CommandKind::For(details) => &*details.variable == name,
        _ => false,
    };
    // A function, `read` and `source` may set any variable.
    let by_command = walk::simples(command).any(|simple| {
        simple.redirects.iter().any(is_written)
            || !matches!(walk::name(simple).as_deref(), Some("echo" | "cd" | "sleep" | "test"))
    });
    let in_blocks = walk::blocks(command).into_iter().any(|block| !block.commands.is_empty());
    here || by_command || in_blocks || command.redirects.iter().any(is_written)
}
