//! Lint of words that are a list or a command in other shells, and one text here: braces, `$(…)`
//! and parentheses.

use std::collections::BTreeSet;

use super::{Warning, walk};
use crate::lsp::names::set_in;
use ftsh_machine::builtins;
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, CommandKind, Expr, ExprKind, Parameter, Simple, Substitute, Word, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::{braces, literal};
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Programs that expand braces themselves.
const EXPANDERS: [&str; 6] = ["awk", "curl", "find", "jq", "perl", "rg"];

/// Programs that print names or numbers, which are words for another command.
const LISTERS: [&str; 5] = ["find", "ls", "pgrep", "pidof", "seq"];

const ONE_WORD: &str = "what a command prints is one word";

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let assigned = set_in(script);
    let text = script.source.text();
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for simple in walk::simples(command) {
            let found = simple.words.iter().filter_map(list);
            warnings.extend(found.filter(|_| !expands_braces(simple)));
            warnings.extend(parentheses(simple, text));
            warnings.extend(printed_list(simple, text));
        }
        if let CommandKind::Assign { value: Some(value), .. } = &command.kind
            && let ExprKind::Word(word) = &value.kind
        {
            warnings.extend(list(word));
        }
        let items = walk::items(command);
        warnings.extend(items.iter().filter_map(|it| collected(it, text, &assigned)));
        let value = match &command.kind {
            CommandKind::Assign { value, .. } | CommandKind::Return(value) => value.as_ref(),
            CommandKind::Case(case) => Some(&case.value),
            _ => None,
        };
        warnings.extend(items.iter().chain(value).filter_map(|it| enclosed(it, text)));
    });
    walk::each(&script.body, &mut |command| {
        for word in walk::words(command) {
            walk::variables(&word.parts, &mut |variable, _| {
                if let (Parameter::Named(name), Some((Substitute::Command, _))) =
                    (&variable.parameter, &variable.substitute)
                    && assigned.contains(&**name)
                {
                    let message = format!("`$({name})` is first of all the variable `{name}`");
                    warnings.push(
                        Warning::new(Slug::NameOrCommand, variable.span, message).hint(hint!(
                            "for the variable, `${name}`; for the command, `$( {name})`"
                        )),
                    );
                }
            });
        }
    });
    warnings
}

/// Warns of `$(…)` as the word of a list.
fn collected(expr: &Expr, text: &str, assigned: &BTreeSet<String>) -> Option<Warning> {
    let ExprKind::Word(word) = &expr.kind else { return None };
    if let [WordPart::Variable(variable)] = &word.parts[..]
        && let Parameter::Named(name) = &variable.parameter
        && assigned.contains(&**name)
    {
        return None;
    }
    output(word)?;
    let written = &text[word.span.start..word.span.end];
    let warning = Warning::new(Slug::OutputAsWord, word.span, ONE_WORD);
    Some(if written.contains('\n') {
        warning
    } else {
        warning.hint(hint!("for each line, `lines({written})`"))
    })
}

/// Warns of `rm $(find …)`, whose words would be names.
fn printed_list(simple: &Simple, text: &str) -> Option<Warning> {
    if walk::name(simple).is_none_or(|name| builtins::named(&*name).is_some()) {
        return None;
    }
    let word = simple.words[1..].iter().find(|word| {
        output(word).is_some_and(|block| {
            let last = block.commands.last().and_then(|it| walk::simples(it).last());
            last.and_then(walk::name).is_some_and(|name| LISTERS.contains(&&*name))
        })
    })?;
    let span = word.span;
    let command = format!("{} $l", text[simple.span.start..span.start].trim_end());
    let hint = hint!(
        "for a word of each line, `list l in lines({})`, and then `{command}`; quotes show that one word is meant",
        &text[span.start..span.end]
    );
    Some(Warning::new(Slug::OutputAsWord, span, ONE_WORD).hint(hint))
}

/// Returns the commands of a word that is an unquoted `$(…)`.
fn output(word: &Word) -> Option<&Block> {
    let parts = match &word.parts[..] {
        [WordPart::Variable(variable)] => match &variable.substitute {
            Some((Substitute::Command, parts)) => parts,
            _ => return None,
        },
        parts => parts,
    };
    match parts {
        [WordPart::Call(call)] => match &call.kind {
            ExprKind::Collected(block) => Some(block),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true for a value that is what a command prints.
pub(super) fn is_collected(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Word(word) if output(word).is_some())
}

/// Warns of `(date)` and `($(date))` as a value, which are a text in parentheses.
fn enclosed(expr: &Expr, text: &str) -> Option<Warning> {
    let ExprKind::Group(inner) = &expr.kind else { return None };
    let written = &text[inner.span.start..inner.span.end];
    if is_collected(inner) {
        let message = "parentheses make no list: what a command prints is one word";
        let warning = Warning::new(Slug::OutputAsWord, expr.span, message);
        return Some(warning.hint(hint!("a list of its lines: `list l in lines({written})`")));
    }
    let ExprKind::Word(word) = &inner.kind else { return None };
    let name = literal::bare(word).filter(|it| !matches!(*it, "true" | "false"))?;
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        .then(|| in_parentheses(expr.span, name))
}

/// Warns of `echo (date)`.
fn parentheses(simple: &Simple, text: &str) -> Option<Warning> {
    let begins = |word: &Word| match word.parts.first() {
        Some(WordPart::Bare(text)) => {
            text.starts_with('(') && text[1..].starts_with(|c: char| c.is_ascii_alphabetic())
        }
        _ => false,
    };
    let at = simple.words.iter().skip(1).position(begins)? + 1;
    let ends = |word: &&Word| text[..word.span.end].ends_with(')');
    let last = simple.words[at..].iter().find(ends)?;
    let span = Span::new(simple.words[at].span.start, last.span.end);
    Some(in_parentheses(span, text[span.start + 1..span.end - 1].trim()))
}

fn in_parentheses(span: Span, command: &str) -> Warning {
    let message = format!("`({command})` runs nothing: this is text");
    Warning::new(Slug::CallInWord, span, message).hint(hint!(
        "what a command prints is `$({command})`; a text has quotes: `\"({command})\"`"
    ))
}

fn expands_braces(simple: &Simple) -> bool {
    walk::name(simple).is_some_and(|name| EXPANDERS.contains(&&*name))
}

fn list(word: &Word) -> Option<Warning> {
    if !word.parts.iter().any(|part| matches!(part, WordPart::Bare(bare) if bare.contains('{'))) {
        return None;
    }
    let hint = match braces::range(word) {
        Some((range, _)) => hint!("to count, write a loop: `for n in {range}`"),
        None if is_list(literal::bare(word)?) => hint!("write all the words"),
        None => return None,
    };
    Some(
        Warning::new(Slug::BraceWord, word.span, "braces don't make a list: this is text")
            .hint(hint),
    )
}

/// Returns true for `{a,b}`, except in an address.
fn is_list(text: &str) -> bool {
    let Some((before, rest)) = text.split_once('{') else { return false };
    let inside = rest.split_once('}').map(|(inside, _)| inside);
    inside.is_some_and(|it| it.contains(',')) && !before.contains([':', '%', '@'])
}
