//! Lint of arguments of the script that may be missing.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    BinaryOperator, Block, Command, CommandKind, Expr, ExprKind, Parameter, VariableUse, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

/// Arguments of a script outside of functions, which have arguments of their own.
#[derive(Default)]
struct Uses<'a> {
    /// Arguments without a default, each with true if in double quotes.
    plain: Vec<(&'a VariableUse, bool)>,
    /// True if the script declares its arguments, or looks at their number or at all of them.
    checks: bool,
}

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut uses = Uses::default();
    uses.block(&script.body);
    if uses.checks {
        return Vec::new();
    }
    let first = uses.plain.into_iter().min_by_key(|(variable, _)| variable.span.start);
    first.map(|(variable, is_quoted)| warning(variable, is_quoted)).into_iter().collect()
}

impl<'a> Uses<'a> {
    fn block(&mut self, block: &'a Block) {
        for command in &block.commands {
            if !matches!(command.kind, CommandKind::Function { .. }) {
                self.command(command);
            }
        }
    }

    fn command(&mut self, command: &'a Command) {
        self.checks |= matches!(command.kind, CommandKind::Shift(_) | CommandKind::Args(_));
        for expr in walk::expressions(command) {
            self.checks |= compares(expr);
        }
        for word in walk::words(command) {
            walk::variables(&word.parts, &mut |variable, is_quoted| match (
                &variable.parameter,
                &variable.substitute,
            ) {
                (Parameter::Positional(0) | Parameter::Named(_) | Parameter::Pid, _) => {}
                (Parameter::Positional(_), None) => self.plain.push((variable, is_quoted)),
                (
                    Parameter::Positional(_) | Parameter::Count | Parameter::Star | Parameter::At,
                    _,
                ) => self.checks = true,
            });
        }
        for inner in walk::blocks(command) {
            self.block(inner);
        }
    }
}

/// Returns true if an expression compares an argument with a text, as in `$1 .eq. start`.
fn compares(expr: &Expr) -> bool {
    let is_argument = |expr: &Expr| match &expr.kind {
        ExprKind::Word(word) => {
            matches!(&word.parts[..], [WordPart::Variable(it)] if matches!(it.parameter, Parameter::Positional(1..)))
        }
        _ => false,
    };
    let here = matches!(
        &expr.kind,
        ExprKind::Binary {
            operator: BinaryOperator::Eq | BinaryOperator::Ne,
            left,
            right,
            ..
        } if is_argument(left) || is_argument(right)
    );
    here || walk::operands(expr).into_iter().any(compares)
}

fn warning(variable: &VariableUse, is_quoted: bool) -> Warning {
    let Parameter::Positional(number) = variable.parameter else { unreachable!("an argument") };
    let message = format!("`${number}` is empty if the script gets too few arguments");
    let warning = Warning::new(Slug::UncheckedArgument, variable.span, message);
    warning.hint(if is_quoted {
        hint!("write `${{{number}:?text}}`, which fails with the text; a dollar sign is `\\$`")
    } else {
        hint!("write `${{{number}:?text}}`, which fails with the text, or look at `$#` first")
    })
}
