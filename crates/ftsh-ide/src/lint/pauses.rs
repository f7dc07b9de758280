//! Lint of literal arguments of `sleep` and `defer` that are no length of time.

use std::collections::BTreeSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, Simple, Word};
use ftsh_syntax::duration::{parse, parse_deferral};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::span::Span;

/// Commands with a length of time as their argument.
const CHECKED: [&str; 2] = ["sleep", "defer"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
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
            .is_some_and(|name| CHECKED.contains(&&*name) && !functions.contains(&*name))
    });
    simples.into_iter().filter_map(no_time).collect()
}

fn no_time(simple: &Simple) -> Option<Warning> {
    let (name, args) = simple.words.split_first()?;
    let known: Vec<String> = args.iter().map_while(constant).collect();
    let is_all = known.len() == args.len();
    let words: Vec<&str> = match known.split_first() {
        Some((first, others)) => {
            first.split_whitespace().chain(others.iter().map(|word| word.trim())).collect()
        }
        None => Vec::new(),
    };
    let (wrong, hint) = match &*literal::word(name)? {
        "sleep" => (
            is_all && parse(&words.join(" ")).is_none(),
            hint!("`sleep` takes seconds or a duration, like `5`, `0.5` or `2 minutes`"),
        ),
        // A unit or the message follows the known words.
        "defer" => (
            (is_all || !words.is_empty()) && parse_deferral(&words).is_none(),
            hint!("`defer` takes a time and then a message, like `30`, `2 minutes busy`"),
        ),
        _ => return None,
    };
    let end = args.get(known.len().saturating_sub(1)).unwrap_or(name).span.end;
    let message = "this is not a length of time: the command always fails";
    wrong
        .then(|| Warning::new(Slug::NotAPause, Span::new(name.span.start, end), message).hint(hint))
}

/// Returns the value of a word that depends neither on variables nor on files.
fn constant(word: &Word) -> Option<String> {
    let text = literal::word(word)?;
    let is_pattern = literal::bare(word).is_some() && text.contains(['*', '?', '[']);
    (!is_pattern).then(|| text.into_owned())
}
