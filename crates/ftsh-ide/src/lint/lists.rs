//! Lint of braces that make a list in other shells, and are text here.

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{CommandKind, ExprKind, Simple, Word, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::parse::{braces, literal};
use ftsh_syntax::slug::Slug;

/// Programs that expand braces themselves.
const EXPANDERS: [&str; 6] = ["awk", "curl", "find", "jq", "perl", "rg"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
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
    });
    warnings
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
