//! Lint of comparisons of `$error_kind` with a word that is not a kind of failure.

use super::{Warning, walk};
use ftsh_machine::FailureKind;
use ftsh_syntax::Script;
use ftsh_syntax::ast::BinaryOperator::{Eq, Ne};
use ftsh_syntax::ast::{CommandKind, Expr, ExprKind, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::nearest::nearest;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::RESPELLED_KIND;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for expr in walk::expressions(command) {
            expression(expr, &mut warnings);
        }
        if let CommandKind::Case(case) = &command.kind
            && literal::is_error_kind(&case.value)
        {
            let is_text = |part: &WordPart| !matches!(part, WordPart::Bare(it) if it.contains(['*', '?', '[']));
            let texts = case.patterns().filter(|pattern| pattern.parts.iter().all(is_text));
            for pattern in texts {
                let name = literal::word(pattern);
                warnings.extend(name.and_then(|name| unknown(&name, pattern.span)));
            }
        }
    });
    warnings
}

fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    if let ExprKind::Binary { operator, left, right, .. } = &expr.kind
        && matches!(operator, Eq | Ne)
    {
        for (kind, name) in [(left, right), (right, left)] {
            if literal::is_error_kind(kind) {
                warnings.extend(literal::expr(name).and_then(|text| unknown(&text, name.span)));
            }
        }
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}

/// Returns a warning for a name that is neither a kind nor empty, as the kind after a success.
fn unknown(name: &str, span: Span) -> Option<Warning> {
    if name.is_empty() || name == RESPELLED_KIND.0 || FailureKind::NAMES.contains(&name) {
        return None;
    }
    let message = format!("`{name}` is not a kind of failure");
    let kinds = FailureKind::NAMES.join(", ");
    let hint = match nearest(name, FailureKind::NAMES) {
        Some(meant) => hint!("did you mean `{meant}`?"),
        None => hint!("the kinds are {kinds}"),
    };
    Some(Warning::new(Slug::UnknownKind, span, message).hint(hint))
}
