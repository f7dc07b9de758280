//! Traversals of the syntax tree.

use std::borrow::Cow;

use ftsh_syntax::ast::{
    Block, Command, CommandKind, Duration, Expr, ExprKind, Pipeline, Simple, Stage,
};
use ftsh_syntax::parse::literal;

/// Returns the blocks directly inside of a command. A pipeline has one for each stage that is a
/// structure.
pub(crate) fn blocks(command: &Command) -> Vec<&Block> {
    match &command.kind {
        CommandKind::If { arms, otherwise } => {
            arms.iter().map(|(_, body)| body).chain(otherwise).collect()
        }
        CommandKind::While { body, .. } | CommandKind::Function { body, .. } => vec![body],
        CommandKind::For(details) => vec![&details.body],
        CommandKind::Try(details) => {
            let after = details.catch.iter().chain(&details.finally).map(|(_, block)| block);
            std::iter::once(&details.body).chain(after).collect()
        }
        CommandKind::Pipeline(pipeline) => {
            pipeline.stages.iter().filter_map(Stage::block).collect()
        }
        CommandKind::Comment { .. }
        | CommandKind::Assign { .. }
        | CommandKind::Return(_)
        | CommandKind::Shift(_)
        | CommandKind::Jump(_)
        | CommandKind::Channel(_) => Vec::new(),
    }
}

/// Returns the expressions of a command, without those of its blocks.
pub(crate) fn expressions(command: &Command) -> Vec<&Expr> {
    match &command.kind {
        CommandKind::If { arms, .. } => arms.iter().map(|(condition, _)| condition).collect(),
        CommandKind::While { condition, .. } => vec![condition],
        CommandKind::For(details) => {
            let mut found: Vec<_> = details.list.iter().collect();
            details.kind.map(&mut found, amount, Vec::push);
            found
        }
        CommandKind::Try(details) => {
            let mut found: Vec<&Expr> = Vec::new();
            details.clauses.map(&mut found, amount, Vec::push, |found, backoff| {
                backoff.clauses.map(found, amount, Vec::push);
            });
            found.extend(&details.condition);
            found
        }
        CommandKind::Channel(channel) => {
            let mut found: Vec<&Expr> = Vec::new();
            channel.rules.map(&mut found, amount, Vec::push);
            found
        }
        CommandKind::Assign { value, .. }
        | CommandKind::Return(value)
        | CommandKind::Shift(value) => value.iter().collect(),
        CommandKind::Comment { .. }
        | CommandKind::Pipeline(_)
        | CommandKind::Function { .. }
        | CommandKind::Jump(_) => Vec::new(),
    }
}

fn amount<'t>(found: &mut Vec<&'t Expr>, duration: &'t Duration) {
    match duration {
        Duration::Amount { amount, .. } => found.push(amount),
        Duration::Joined(_) => {}
    }
}

/// Returns the expressions directly inside of an expression.
pub(crate) fn operands(expr: &Expr) -> Vec<&Expr> {
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

/// Calls `visit` for each command of a block, and of its inner blocks.
pub(crate) fn each<'a>(block: &'a Block, visit: &mut impl FnMut(&'a Command)) {
    for command in &block.commands {
        visit(command);
        for inner in blocks(command) {
            each(inner, visit);
        }
    }
}

/// Returns the pipelines that a command itself runs, in expressions too, without those of its
/// blocks.
pub(crate) fn pipelines(command: &Command) -> impl Iterator<Item = &Pipeline> {
    let own = match &command.kind {
        CommandKind::Pipeline(pipeline) => Some(pipeline),
        _ => None,
    };
    let mut exprs = expressions(command);
    let asked = std::iter::from_fn(move || {
        while let Some(expr) = exprs.pop() {
            if let ExprKind::Succeeds(pipeline) = &expr.kind {
                return Some(&**pipeline);
            }
            exprs.extend(operands(expr));
        }
        None
    });
    own.into_iter().chain(asked)
}

/// Returns the commands in the [`pipelines`] of a command.
pub(crate) fn simples(command: &Command) -> impl Iterator<Item = &Simple> {
    pipelines(command).flat_map(|it| &it.stages).filter_map(Stage::simple)
}

/// Returns the only command of a pipeline without bars.
pub(crate) fn single(pipeline: &Pipeline) -> Option<&Simple> {
    match &pipeline.stages[..] {
        [stage] => stage.simple(),
        _ => None,
    }
}

/// Returns the name of a command, if literal.
pub(crate) fn name(simple: &Simple) -> Option<Cow<'_, str>> {
    simple.words.first().and_then(literal::word)
}
