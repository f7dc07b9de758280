//! Lint of wildcards where they are text: operands, arguments of functions, assignments.

use std::collections::HashSet;
use std::ptr;

use super::{Warning, numbers, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    BinaryOperator, CommandKind, Expr, ExprKind, Simple, UnaryOperator, Word, WordPart,
};
use ftsh_syntax::hint::{Hint, hint};
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::function;

const TEXT: &str = "a wildcard is text here: no files are looked for";

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        let items: HashSet<*const Expr> = walk::items(command).iter().map(ptr::from_ref).collect();
        for simple in walk::simples(command) {
            warnings.extend(assignments(simple));
        }
        for expr in walk::expressions(command) {
            if let CommandKind::Assign { name, value: Some(value), .. } = &command.kind
                && ptr::eq(value, expr)
            {
                let hint = |text: &str| {
                    hint!(
                        "the files are a list: `list {name} in {text}`; a text has quotes: `{name}=\"{text}\"`"
                    )
                };
                warnings.extend(warning(value, hint).filter(|_| numbers::product(value).is_none()));
            }
            if let CommandKind::Return(Some(value)) = &command.kind
                && ptr::eq(value, expr)
            {
                warnings.extend(warning(value, quoted));
            }
            if !items.contains(&ptr::from_ref(expr)) || !matches!(expr.kind, ExprKind::Word(_)) {
                expression(expr, &mut warnings);
            }
        }
    });
    warnings
}

/// Checks the values of `name=*.txt command` and `export name=*.txt`.
fn assignments(simple: &Simple) -> Vec<Warning> {
    let before = simple.assignments.iter().filter(|(_, word)| is_pattern(word));
    let mut words: Vec<_> =
        before.filter_map(|(_, word)| Some((word, literal::written(word)?))).collect();
    if walk::name(simple).as_deref() == Some("export") {
        words.extend(simple.words[1..].iter().filter(|it| is_pattern(it)).filter_map(|word| {
            Some((word, literal::written(word)?.split_once('=')?.1.to_owned()))
        }));
    }
    let warning = |(word, text): (&Word, String)| {
        Warning::new(Slug::PatternWord, word.span, TEXT).hint(quoted(&text))
    };
    words.into_iter().map(warning).collect()
}

fn expression(expr: &Expr, warnings: &mut Vec<Warning>) {
    match &expr.kind {
        ExprKind::Binary { operator, left, right, .. } => {
            let other = literal::operand(left).unwrap_or_else(|| "$x".into());
            let case = |text: &str| {
                hint!(
                    "a pattern comes after `when`: `case {other}`, and then `when {text}`; a text has quotes: `\"{text}\"`"
                )
            };
            warnings.extend(warning(left, quoted));
            let is_regex = *operator == BinaryOperator::Matches;
            let compares = matches!(operator, BinaryOperator::Eq | BinaryOperator::Ne);
            warnings.extend(match () {
                () if is_regex => None,
                () if compares => warning(right, case),
                () => warning(right, quoted),
            });
        }
        ExprKind::Unary { operator: UnaryOperator::Test(_), operand, .. } => {
            let files =
                |text: &str| hint!("`count(files(\"{text}\")) > 0` asks for files that match");
            warnings.extend(warning(operand, files));
        }
        ExprKind::Call { name, args } if &**name != "files" => {
            let parameters = function(name).map_or(&[][..], |function| function.parameters);
            for (at, arg) in args.iter().enumerate() {
                if !matches!(parameters.get(at), Some(&("regex" | "filter"))) {
                    warnings.extend(warning(arg, quoted));
                }
            }
        }
        _ => {}
    }
    for operand in walk::operands(expr) {
        expression(operand, warnings);
    }
}

fn quoted(text: &str) -> Hint {
    hint!("the files are `files(\"{text}\")`; a text has quotes: `\"{text}\"`")
}

/// Checks an operand for a pattern.
fn warning(operand: &Expr, hint: impl FnOnce(&str) -> Hint) -> Option<Warning> {
    let ExprKind::Word(word) = &operand.kind else { return None };
    let text = literal::operand(operand).filter(|_| is_pattern(word))?;
    if let Some(product) = numbers::product(operand) {
        let message = format!("`{text}` is text: nothing is calculated");
        let warning = Warning::new(Slug::TextArithmetic, word.span, message);
        return Some(warning.hint(hint!("put spaces around an operator: `{product}`")));
    }
    Some(Warning::new(Slug::PatternWord, word.span, TEXT).hint(hint(&text)))
}

/// Returns true for a word with wildcards. A symbol alone is none, and so is an address.
fn is_pattern(word: &Word) -> bool {
    let has_wildcard = |part: &WordPart| match part {
        WordPart::Bare(text) => {
            text.contains(['*', '?'])
                || text
                    .split_once('[')
                    .and_then(|(_, rest)| rest.find(']'))
                    .is_some_and(|at| at > 0)
        }
        _ => false,
    };
    let is_text = |part: &WordPart| matches!(part, WordPart::Bare(text) if text.contains("://"));
    let is_symbol =
        literal::bare(word).is_some_and(|text| text.bytes().all(|it| it.is_ascii_punctuation()));
    word.parts.iter().any(has_wildcard) && !word.parts.iter().any(is_text) && !is_symbol
}
