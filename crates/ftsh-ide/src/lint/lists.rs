//! Lint of words that are a list in other shells, and one text here: braces and `$(…)`.

use std::collections::BTreeSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    Block, CommandKind, Expr, ExprKind, Name, Parameter, Simple, Substitute, Word, WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::{braces, literal};
use ftsh_syntax::slug::Slug;

/// Programs that expand braces themselves.
const EXPANDERS: [&str; 6] = ["awk", "curl", "find", "jq", "perl", "rg"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let assigned = assigned(&script.body);
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for simple in walk::simples(command) {
            let found = simple.words.iter().filter_map(list);
            warnings.extend(found.filter(|_| !expands_braces(simple)));
        }
        if let CommandKind::Assign { value: Some(value), .. } = &command.kind
            && let ExprKind::Word(word) = &value.kind
        {
            warnings.extend(list(word));
        }
        let words = match &command.kind {
            CommandKind::For(details) => &details.list,
            CommandKind::List { words, .. } => words,
            _ => return,
        };
        warnings
            .extend(words.iter().filter_map(|it| collected(it, script.source.text(), &assigned)));
    });
    walk::each(&script.body, &mut |command| {
        for word in walk::words(command) {
            walk::variables(&word.parts, &mut |variable, _| {
                if let (Parameter::Named(name), Some((Substitute::Command, _))) =
                    (&variable.parameter, &variable.substitute)
                    && assigned.contains(name)
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
fn collected(expr: &Expr, text: &str, assigned: &BTreeSet<&Name>) -> Option<Warning> {
    let ExprKind::Word(word) = &expr.kind else { return None };
    match &word.parts[..] {
        [WordPart::Call(call)] if matches!(call.kind, ExprKind::Collected(_)) => {}
        [WordPart::Variable(variable)]
            if matches!(&variable.substitute, Some((Substitute::Command, _)))
                && !matches!(&variable.parameter, Parameter::Named(name) if assigned.contains(name)) =>
            {}
        _ => return None,
    }
    let written = &text[word.span.start..word.span.end];
    let warning = Warning::new(Slug::OutputAsWord, word.span, "what a command prints is one word");
    Some(if written.contains('\n') {
        warning
    } else {
        warning.hint(hint!("for each line, `lines({written})`"))
    })
}

/// Returns the names that a block assigns.
fn assigned(block: &Block) -> BTreeSet<&Name> {
    let mut names = BTreeSet::new();
    walk::each(block, &mut |command| match &command.kind {
        CommandKind::Assign { name, .. } | CommandKind::List { name, .. } => _ = names.insert(name),
        CommandKind::For(details) => _ = names.insert(&details.variable),
        _ => {}
    });
    names
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
