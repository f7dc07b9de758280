//! Lint of questions to commands that exit with 1 for "no" and with another status for an error.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{Expr, ExprKind, Question, Stage};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::ANSWERING;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for expr in walk::expressions(command) {
            expression(expr, &mut warnings);
        }
    });
    warnings
}

fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    if let ExprKind::Asked { question: Question::Succeeds, pipeline } = &expr.kind
        && let Some(last) = pipeline.stages.last().and_then(Stage::simple)
        && let Some(name) = walk::name(last).filter(|name| ANSWERING.contains(&&**name))
    {
        let start = expr.span.start;
        let span = Span::new(start, start + Question::Succeeds.spelling().len());
        let message = format!("`.succeeds.` takes an error of `{name}` for `false`");
        warnings.push(
            Warning::new(Slug::AmbiguousNo, span, message)
                .hint(hint!("did you mean `.yes.`? A status above 1 is then a failure")),
        );
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}
