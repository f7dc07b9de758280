//! Lint of filters of `json`.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Expr, ExprKind};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;

/// Function whose second argument is a filter.
const FUNCTION: &str = "json";

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let (mut warnings, mut is_own) = (Vec::new(), false);
    for file in script.all_files() {
        walk::each(&file.body, &mut |command| {
            is_own |=
                matches!(&command.kind, CommandKind::Function { name, .. } if **name == *FUNCTION);
        });
    }
    if is_own {
        return warnings;
    }
    walk::each(&script.body, &mut |command| {
        for expr in walk::expressions(command) {
            expression(expr, &mut warnings);
        }
    });
    warnings
}

fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    if let ExprKind::Call { name, args } = &expr.kind
        && **name == *FUNCTION
        && let Some(filter) = args.get(1)
        && let Some(text) = literal::expr(filter)
        && let Err(why) = ftsh_filter::check(&text)
    {
        let message = format!("not a filter of jq: {why}");
        let warning = Warning::new(Slug::InvalidFilter, filter.span, message);
        warnings
            .push(warning.hint(hint!("filters are like `.items[].name` or `.a.b // \"none\"`")));
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}
