//! Lint of operators without a space or a value on both sides, which are commands.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::Simple;
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        warnings.extend(walk::simples(command).filter_map(|it| signed(it, script.source.text())));
    });
    warnings
}

/// Checks a command for `x=$y -2`, which runs `-2` with a variable, and for `x=$y +`.
fn signed(simple: &Simple, text: &str) -> Option<Warning> {
    let ([(name, value)], [word]) = (&simple.assignments[..], &simple.words[..]) else {
        return None;
    };
    let command = literal::bare(word)?;
    let (sign, number) = command.split_at_checked(1)?;
    let is_alone = number.is_empty();
    if !matches!(sign, "+" | "-" | "*" | "/" | "%")
        || !is_alone && literal::number(number).is_none()
    {
        return None;
    }
    let value = text.get(value.span.start..value.span.end).filter(|it| !it.is_empty())?;
    let message =
        format!("`{command}` is a command here, and `{name}` is set for this command only");
    let span = Span::new(word.span.start, word.span.end);
    let hint = if is_alone {
        hint!("a value is missing after the operator: `{name}={value} {sign} 2`")
    } else {
        hint!("put spaces around an operator: `{name}={value} {sign} {number}`")
    };
    Some(Warning::new(Slug::TextArithmetic, span, message).hint(hint))
}
