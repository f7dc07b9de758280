//! Ways through the syntax tree.

use crate::syntax::ast::{
    Block, Command, CommandKind, Duration, Expr, ExprKind, ForKind, Pipeline, Simple,
};
use crate::syntax::parse::literal;

/// The blocks directly inside a command.
pub fn blocks(command: &Command) -> Vec<&Block> {
    match &command.kind {
        CommandKind::If { arms, otherwise } => {
            arms.iter().map(|(_, body)| body).chain(otherwise).collect()
        }
        CommandKind::While { body, .. } | CommandKind::Function { body, .. } => vec![body],
        CommandKind::For(details) => vec![&details.body],
        CommandKind::Try(details) => {
            let catch = details.catch.as_ref().map(|(_, block)| block);
            std::iter::once(&details.body).chain(catch).collect()
        }
        CommandKind::Comment { .. }
        | CommandKind::Pipeline(_)
        | CommandKind::Assign { .. }
        | CommandKind::Return(_)
        | CommandKind::Shift(_) => Vec::new(),
    }
}

/// The expressions of a command, but not those of the blocks in it.
pub fn expressions(command: &Command) -> Vec<&Expr> {
    match &command.kind {
        CommandKind::If { arms, .. } => arms.iter().map(|(condition, _)| condition).collect(),
        CommandKind::While { condition, .. } => vec![condition],
        CommandKind::For(details) => {
            let at_most = match &details.kind {
                ForKind::All { at_most } => at_most.as_ref(),
                ForKind::Each | ForKind::Any { .. } => None,
            };
            details.list.iter().chain(at_most).collect()
        }
        CommandKind::Try(details) => {
            let backoff = details.backoff.as_ref();
            let lengths = [&details.time, &details.every, &details.each].into_iter().flatten();
            let delays = backoff.into_iter().flat_map(|it| it.from.iter().chain(&it.to));
            let amounts = lengths.chain(delays).filter_map(|duration| match duration {
                Duration::Amount { amount, .. } => Some(amount),
                Duration::Joined(_) => None,
            });
            let factors = backoff.into_iter().flat_map(|it| it.by.iter().chain(&it.jitter));
            details.times.iter().chain(&details.condition).chain(amounts).chain(factors).collect()
        }
        CommandKind::Assign { value, .. }
        | CommandKind::Return(value)
        | CommandKind::Shift(value) => value.iter().collect(),
        CommandKind::Comment { .. } | CommandKind::Pipeline(_) | CommandKind::Function { .. } => {
            Vec::new()
        }
    }
}

/// The expressions directly inside an expression.
pub fn operands(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Word(_) | ExprKind::Succeeds(_) => Vec::new(),
        ExprKind::Group(inner) | ExprKind::Unary { operand: inner, .. } => vec![inner],
        ExprKind::Call { args, .. } => args.iter().collect(),
        ExprKind::Binary { left, right, .. } => vec![left, right],
        ExprKind::Range { from, to, step } => {
            [from, to].into_iter().chain(step).map(|it| &**it).collect()
        }
    }
}

/// The only command of a pipeline without bars.
pub fn single(pipeline: &Pipeline) -> Option<&Simple> {
    match &pipeline.stages[..] {
        [stage] => Some(&stage.command),
        _ => None,
    }
}

/// The name of what a command runs, if it is written literally.
pub fn name(simple: &Simple) -> Option<String> {
    simple.words.first().and_then(literal::word)
}
