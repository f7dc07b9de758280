//! Lint of words of commands that look like calls of functions.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Simple, Word, WordPart};
use ftsh_syntax::hint::{Hint, hint};
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;
use ftsh_syntax::vocabulary::{function, is_name};

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut own = HashSet::new();
    for file in script.all_files() {
        walk::each(&file.body, &mut |command| {
            if let CommandKind::Function { name, .. } = &command.kind {
                own.insert(&**name);
            }
        });
    }
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        let words = walk::simples(command).flat_map(Simple::all_words);
        warnings.extend(words.filter_map(|word| call(script, &own, word)));
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
        None => hint!("a call in a word stands in `${{` and `}}`"),
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
