//! Lint of words of commands that look like calls of functions.

use std::collections::{HashMap, HashSet};

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    ArgumentKind, ArgumentsDeclaration, CommandKind, Expr, ExprKind, Parameter, Simple, Word,
    WordPart,
};
use ftsh_syntax::hint::{Hint, hint};
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::{function, is_name};

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let (mut own, mut declared) = (HashSet::new(), HashMap::new());
    for file in script.all_files() {
        walk::each(&file.body, &mut |command| {
            if let CommandKind::Function { name, body, .. } = &command.kind {
                own.insert(&**name);
                if let Some(CommandKind::Args(it)) = body.commands.first().map(|it| &it.kind) {
                    declared.insert(&**name, &**it);
                }
            }
        });
    }
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        let words = walk::simples(command).flat_map(Simple::all_words);
        warnings.extend(words.filter_map(|word| call(script, &own, word)));
        for words in walk::simples(command).map(|simple| &simple.words[..]) {
            let Some((first, words)) = words.split_first() else { continue };
            let least = words.iter().filter(|word| is_one(word)).count();
            if let Some(name) = literal::word(first)
                && let Some(it) = declared.get(&*name)
            {
                warnings.extend(wrong_count(it, &name, first.span, (least, words.len())));
            }
        }
        let mut rest = walk::expressions(command);
        while let Some(expr) = rest.pop() {
            rest.extend(walk::operands(expr));
            let ExprKind::Call { name, args } = &expr.kind else { continue };
            // Other values may be lists.
            let is_text = |arg: &&Expr| matches!(&arg.kind, ExprKind::Word(word) if is_one(word));
            let least = args.iter().filter(is_text).count();
            if let Some(it) = declared.get(&**name) {
                warnings.extend(wrong_count(it, name, expr.span, (least, args.len())));
            }
        }
    });
    warnings
}

/// Checks a word for the unquoted name of a function before a parenthesis. A whole word like `f(2)`
/// is also meant as a call if there is no such function.
fn call(script: &Script, own: &HashSet<&str>, word: &Word) -> Option<Warning> {
    let known = word.parts.iter().find_map(|part| {
        let WordPart::Bare(text) = part else { return None };
        let name = text.split_once('(')?.0.rsplit(|c: char| !is_in_name(c)).next()?;
        (own.contains(name) || function(name).is_some()).then_some(name)
    });
    let Some(name) = known else { return unknown(script, word) };
    let message = format!("`{name}(` is text in the words of a command: nothing is called");
    let (hint, span) = advice(script.source.text(), word.span, name);
    Some(Warning::new(Slug::CallInWord, span, message).hint(hint))
}

/// Checks a call, with at least some of its words certain, against the parameters of the function.
fn wrong_count(
    declaration: &ArgumentsDeclaration,
    name: &str,
    span: Span,
    (certain, all): (usize, usize),
) -> Option<Warning> {
    let parameters = &declaration.arguments;
    let missing = parameters.get(all).filter(|it| it.kind == ArgumentKind::Required);
    let has_rest = parameters.last().is_some_and(|it| it.kind == ArgumentKind::Rest);
    let message = match missing {
        Some(missing) if certain == all => {
            format!("`{name}` lacks its argument `{}`", missing.name)
        }
        _ if certain > parameters.len() && !has_rest => {
            let last = parameters.last().map_or("", |it| &it.name);
            format!("`{name}` takes no arguments after `{last}`")
        }
        _ => return None,
    };
    Some(Warning::new(Slug::CallArguments, span, message))
}

/// Returns true if a word is certainly one word when the command runs.
fn is_one(word: &Word) -> bool {
    let mut is_one = !word.parts.iter().any(|part| match part {
        WordPart::Bare(text) => text.contains(['*', '?', '[', '{']),
        WordPart::Call(_) => true,
        _ => false,
    });
    walk::variables(&word.parts, &mut |variable, is_quoted| {
        is_one &= is_quoted && variable.parameter != Parameter::At && variable.index.is_none();
    });
    is_one
}

/// Checks a word for the call of a function that does not exist.
fn unknown(script: &Script, word: &Word) -> Option<Warning> {
    let (Some(WordPart::Bare(first)), Some(WordPart::Bare(last))) =
        (word.parts.first(), word.parts.last())
    else {
        return None;
    };
    let name = first.split_once('(').filter(|_| last.ends_with(')'))?.0;
    if !is_name(name) {
        return None;
    }
    let (_, span) = advice(script.source.text(), word.span, name);
    let message =
        format!("`{name}(` is text in the words of a command, and no function `{name}` exists");
    let hint = hint!("quotes show that the word is text");
    Some(Warning::new(Slug::CallInWord, span, message).hint(hint))
}

/// Returns the hint for a call in a text from the start of a word, and the span of the name.
fn advice(text: &str, word: Span, name: &str) -> (Hint, Span) {
    let written = &text[word.start..word.end];
    let start = word.start + written.find(&format!("{name}(")).unwrap_or_default();
    let line = text[start..].lines().next().unwrap_or_default();
    let ends = line.match_indices(')').map(|(at, _)| &line[..=at]);
    let mut calls = ends.map(|call| format!("${{{call}}}"));
    let hint = match calls.find(|call| is_word(call)) {
        Some(call) => hint!("write `{call}`"),
        None => hint!("a call in a word is written in `${{` and `}}`"),
    };
    (hint, Span::new(start, start + name.len()))
}

/// Returns true if a proposal parses.
fn is_word(call: &str) -> bool {
    ftsh_syntax::parse("hint", &format!("echo {call}")).is_ok()
}

fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
