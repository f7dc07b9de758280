//! Lint of `return no`, which is a success of a function that runs as a command.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Expr};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut commands = HashSet::new();
    walk::each(&script.body, &mut |command| {
        commands.extend(walk::simples(command).filter_map(walk::name));
    });
    let mut warnings = Vec::new();
    for command in &script.body.commands {
        let CommandKind::Function { name, body, .. } = &command.kind else { continue };
        if commands.contains(&**name) {
            walk::each(body, &mut |inner| {
                if let CommandKind::Return(Some(value)) = &inner.kind {
                    warnings.extend(constant(name, value));
                }
            });
        }
    }
    warnings
}

/// Checks the value that a function returns for a text like `no`.
fn constant(function: &str, value: &Expr) -> Option<Warning> {
    let text = literal::expr(value)?;
    let meant = match &*text.to_lowercase() {
        "true" | "yes" => "true",
        "false" | "no" | "" => "false",
        _ => return None,
    };
    (text != meant).then(|| {
        let message = format!("as a command, `{function}` succeeds with this text");
        Warning::new(Slug::TextOperand, value.span, message).hint(hint!(
            "success and failure are `return true` and `return false`; here `return {meant}`"
        ))
    })
}
