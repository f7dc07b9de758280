//! What `sleep` and `defer` are told, where that is written there and no time.

use std::collections::BTreeSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Simple, Word};
use ftsh_syntax::duration::{parse_deferral, parse_pause};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// What takes a time.
const LOOKED_AT: [&str; 2] = ["sleep", "defer"];

pub fn look(script: &Script) -> Vec<Warning> {
    let mut simples = Vec::new();
    let mut functions = BTreeSet::new();
    walk::each(&script.body, &mut |command| {
        simples.extend(walk::simples(command));
        if let CommandKind::Function { name, .. } = &command.kind {
            functions.insert(&**name);
        }
    });
    simples.retain(|simple| {
        walk::name(simple)
            .is_some_and(|name| LOOKED_AT.contains(&&*name) && !functions.contains(&*name))
    });
    simples.into_iter().filter_map(no_time).collect()
}

fn no_time(simple: &Simple) -> Option<Warning> {
    let (name, args) = simple.words.split_first()?;
    let said: Vec<String> = args.iter().map_while(constant).collect();
    let words: Vec<&str> = said.iter().map(|word| word.trim()).collect();
    let is_all = words.len() == args.len();
    let (wrong, hint) = match &*literal::word(name)? {
        "sleep" => (
            is_all && parse_pause(&words.join(" ")).is_none(),
            hint!("it takes seconds or a duration, like `5`, `0.5` or `2 minutes`"),
        ),
        // What comes after the words that are known is a unit or the message.
        "defer" => (
            (is_all || !words.is_empty()) && parse_deferral(&words).is_none(),
            hint!("it takes a time above zero and then a message, like `30`, `2 minutes busy`"),
        ),
        _ => return None,
    };
    let end = args.get(said.len().saturating_sub(1)).unwrap_or(name).span.end;
    let message = "this is no length of time: it always fails";
    wrong
        .then(|| Warning::new(Slug::NotAPause, Span::new(name.span.start, end), message).hint(hint))
}

/// What a word is, unless it depends on variables or files.
fn constant(word: &Word) -> Option<String> {
    let text = literal::word(word)?;
    let is_pattern = literal::bare(word).is_some() && text.contains(['*', '?', '[']);
    (!is_pattern).then(|| text.into_owned())
}
