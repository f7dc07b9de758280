//! Traversals of the syntax tree.

use std::borrow::Cow;

use crate::ast::{
    Block, Command, CommandKind, Duration, Expr, ExprKind, Mode, Pipeline, Quoted, Redirect,
    RedirectionTarget, Simple, Stage, Try, VariableUse, Word, WordPart, add_calls, calls,
};
use crate::parse::literal;

/// Returns the blocks directly inside of a command. A pipeline has one for each stage that is a
/// structure, and each `$(…)` in words and expressions is one.
pub fn blocks(command: &Command) -> Vec<&Block> {
    let mut found = command.blocks();
    let mut exprs = expressions(command);
    while let Some(expr) = exprs.pop() {
        match &expr.kind {
            ExprKind::Collected(block) => found.push(block),
            _ => exprs.extend(operands(expr)),
        }
    }
    found
}

/// Returns the expressions of a command, also those in its words, without those of its blocks.
pub fn expressions(command: &Command) -> Vec<&Expr> {
    let mut found = own_expressions(command);
    if let CommandKind::Pipeline(pipeline) = &command.kind {
        add_calls_in(pipeline, &mut found);
    }
    if let CommandKind::Case(case) = &command.kind {
        found.extend(case.patterns().flat_map(|word| calls(&word.parts)));
    }
    let targets = command.redirects.iter().filter_map(Redirect::word);
    found.extend(targets.flat_map(|word| calls(&word.parts)));
    found
}

/// Appends the calls in the words of the commands of a pipeline.
fn add_calls_in<'t>(pipeline: &'t Pipeline, found: &mut Vec<&'t Expr>) {
    for simple in pipeline.stages.iter().filter_map(Stage::simple) {
        simple.all_words().for_each(|word| add_calls(&word.parts, found));
    }
}

fn own_expressions(command: &Command) -> Vec<&Expr> {
    match &command.kind {
        CommandKind::If { arms, .. } => arms.iter().map(|(condition, _)| condition).collect(),
        CommandKind::Case(case) => vec![&case.value],
        CommandKind::While { condition: expr, .. } | CommandKind::In { directory: expr, .. } => {
            vec![expr]
        }
        CommandKind::For(details) => {
            let mut found: Vec<_> = details.list.iter().collect();
            details.kind.map(&mut found, amount, Vec::push);
            found.extend(details.atomic_in.iter().chain(&details.takes).chain(&details.gives));
            found
        }
        CommandKind::Try(details) => {
            let mut found: Vec<&Expr> = Vec::new();
            details.clauses.map(
                &mut found,
                amount,
                Vec::push,
                |found, size| found.push(&size.amount),
                |found, backoff| {
                    backoff.clauses.map(found, amount, Vec::push);
                },
                Vec::push,
            );
            found.extend(&details.condition);
            found.extend(&details.atomic_in);
            found
        }
        CommandKind::List { words, .. } => words.iter().collect(),
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
        | CommandKind::With { .. }
        | CommandKind::Function { .. }
        | CommandKind::Use(_)
        | CommandKind::Args(_)
        | CommandKind::Jump(_) => Vec::new(),
    }
}

fn amount<'t>(found: &mut Vec<&'t Expr>, duration: &'t Duration) {
    match duration {
        Duration::Amount { amount, .. } => found.push(amount),
        Duration::Whole(word) => found.extend(calls(&word.parts)),
    }
}

/// Returns the expressions directly inside of an expression.
pub fn operands(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Word(word) => calls(&word.parts),
        // The commands are a block.
        ExprKind::Collected(_) => Vec::new(),
        ExprKind::Asked { pipeline, .. } => {
            let mut found = Vec::new();
            add_calls_in(pipeline, &mut found);
            found
        }
        ExprKind::Group(inner) | ExprKind::Unary { operand: inner, .. } => vec![inner],
        ExprKind::Call { args, .. } => args.iter().collect(),
        ExprKind::Binary { left, right, .. } => vec![left, right],
        ExprKind::Range { from, to, step } => {
            [from, to].into_iter().chain(step).map(|it| &**it).collect()
        }
    }
}

/// Returns true for a `try` that may make several attempts.
pub fn has_retries(details: &Try) -> bool {
    let several = match &details.clauses.times {
        Some(times) => literal::expr(times).is_none_or(|times| times != "1"),
        None => details.clauses.time.is_some(),
    };
    several && !details.is_limit
}

/// Calls `visit` for each command of a block, and of its inner blocks.
pub fn each<'a>(block: &'a Block, visit: &mut impl FnMut(&'a Command)) {
    for command in &block.commands {
        visit(command);
        for inner in blocks(command) {
            each(inner, visit);
        }
    }
}

/// Returns the pipelines that a command itself runs, in expressions too, without those of its
/// blocks.
pub fn pipelines(command: &Command) -> impl Iterator<Item = &Pipeline> {
    let own = match &command.kind {
        CommandKind::Pipeline(pipeline) => Some(pipeline),
        _ => None,
    };
    let mut exprs = expressions(command);
    let asked = std::iter::from_fn(move || {
        while let Some(expr) = exprs.pop() {
            if let ExprKind::Asked { pipeline, .. } = &expr.kind {
                return Some(&**pipeline);
            }
            exprs.extend(operands(expr));
        }
        None
    });
    own.into_iter().chain(asked)
}

/// Returns the commands in the [`pipelines`] of a command.
pub fn simples(command: &Command) -> impl Iterator<Item = &Simple> {
    pipelines(command).flat_map(|it| &it.stages).filter_map(Stage::simple)
}

/// Returns the words of a command, also of its expressions and redirections, without those of its
/// blocks.
pub fn words(command: &Command) -> Vec<&Word> {
    let mut words = head_words(command);
    let mut exprs = expressions(command);
    while let Some(expr) = exprs.pop() {
        if let ExprKind::Word(word) = &expr.kind {
            words.push(word);
        }
        exprs.extend(operands(expr));
    }
    words.extend(simples(command).flat_map(Simple::all_words));
    words.extend(command.redirects.iter().filter_map(Redirect::word));
    words
}

/// Returns the variables directly in parts of a word, without those in substitutes and calls, and
/// true for each variable in double quotes.
pub fn variables_in_parts(parts: &[WordPart]) -> impl Iterator<Item = (&VariableUse, bool)> {
    parts.iter().flat_map(|part| {
        let (plain, quoted) = match part {
            WordPart::Variable(variable) => (Some((&**variable, false)), &[][..]),
            WordPart::Double(pieces) => (None, &pieces[..]),
            WordPart::Bare(_) | WordPart::Escaped(_) | WordPart::Single(_) | WordPart::Call(_) => {
                (None, &[][..])
            }
        };
        let quoted = quoted.iter().filter_map(|piece| match piece {
            Quoted::Variable(variable) => Some((&**variable, true)),
            Quoted::Text(_) | Quoted::Call(_) => None,
        });
        plain.into_iter().chain(quoted)
    })
}

/// Calls `visit` for each variable in parts of a word, also in substitutes, and states if the
/// variable is in double quotes.
pub fn variables<'a>(parts: &'a [WordPart], visit: &mut impl FnMut(&'a VariableUse, bool)) {
    for (variable, is_quoted) in variables_in_parts(parts) {
        visit(variable, is_quoted);
        if let Some((_, parts)) = &variable.substitute {
            variables(parts, visit);
        }
    }
}

/// Returns the names of the variables that a command reads from input, or writes by a redirection.
pub fn written(command: &Command) -> Vec<String> {
    let mut names = Vec::new();
    for simple in simples(command).filter(|it| name(it).as_deref() == Some("read")) {
        names.extend(simple.words[1..].iter().filter_map(literal::word).map(Cow::into_owned));
    }
    let inner = simples(command).flat_map(|it| &it.redirects);
    names.extend(command.redirects.iter().chain(inner).filter_map(|it| match &it.target {
        RedirectionTarget::Variable(word) if it.mode != Mode::Read => {
            literal::word(word).map(Cow::into_owned)
        }
        _ => None,
    }));
    names
}

/// Returns the items of the list of a command.
pub fn items(command: &Command) -> &[Expr] {
    match &command.kind {
        CommandKind::For(details) => &details.list,
        CommandKind::List { words, .. } => words,
        _ => &[],
    }
}

/// Returns the words of a structure outside of its expressions: lengths of time with a unit, and the
/// patterns of a `case`.
pub fn head_words(command: &Command) -> Vec<&Word> {
    fn length<'t>(found: &mut Vec<&'t Word>, duration: &'t Duration) {
        if let Duration::Whole(word) = duration {
            found.push(word);
        }
    }
    fn number(_: &mut Vec<&Word>, _: &Expr) {}
    let mut found = Vec::new();
    match &command.kind {
        CommandKind::Try(details) => {
            details.clauses.map(
                &mut found,
                length,
                number,
                |_, _| (),
                |found, backoff| {
                    backoff.clauses.map(found, length, number);
                },
                number,
            );
        }
        CommandKind::For(details) => {
            details.kind.map(&mut found, length, number);
        }
        CommandKind::Channel(channel) => {
            channel.rules.map(&mut found, length, number);
        }
        CommandKind::Case(case) => found.extend(case.patterns()),
        _ => {}
    }
    found
}

/// Returns the only command of a pipeline without bars.
pub fn single(pipeline: &Pipeline) -> Option<&Simple> {
    match &pipeline.stages[..] {
        [stage] => stage.simple(),
        _ => None,
    }
}

/// Returns the name of a command, if literal.
pub fn name(simple: &Simple) -> Option<Cow<'_, str>> {
    simple.words.first().and_then(literal::word)
}
