//! Lint of indexes behind the name of a list without braces.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{ArgumentKind, CommandKind, Parameter, Quoted, VariableUse, Word, WordPart};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

/// Lists that the shell sets.
const OWN: [&str; 2] = ["failed", "succeeded"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut lists: HashSet<&str> = OWN.into();
    walk::each(&script.body, &mut |command| match &command.kind {
        CommandKind::List { name, .. } => _ = lists.insert(name),
        CommandKind::Args(declaration) => {
            let rest =
                declaration.arguments.iter().filter(|it| matches!(it.kind, ArgumentKind::Rest));
            lists.extend(rest.map(|it| &*it.name));
        }
        _ => {}
    });
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        for word in walk::words(command) {
            warnings.extend(index(word, &lists));
        }
    });
    warnings
}

/// Checks a word for `$list[1]`.
fn index(word: &Word, lists: &HashSet<&str>) -> Option<Warning> {
    word.parts
        .windows(2)
        .find_map(|pair| match pair {
            [WordPart::Variable(variable), WordPart::Bare(text)] => warning(variable, text, lists),
            _ => None,
        })
        .or_else(|| {
            let mut quoted = word.parts.iter().filter_map(|part| match part {
                WordPart::Double(pieces) => Some(pieces),
                _ => None,
            });
            quoted.find_map(|pieces| {
                pieces.windows(2).find_map(|pair| match pair {
                    [Quoted::Variable(variable), Quoted::Text(text)] => {
                        warning(variable, text, lists)
                    }
                    _ => None,
                })
            })
        })
}

fn warning(variable: &VariableUse, text: &str, lists: &HashSet<&str>) -> Option<Warning> {
    let Parameter::Named(name) = &variable.parameter else { return None };
    let (index, _) = text.strip_prefix('[')?.split_once(']')?;
    // `${list}` ends the name on purpose.
    let is_plain = variable.span.end - variable.span.start == name.len() + 1;
    let fits = is_plain && variable.substitute.is_none() && lists.contains(&**name);
    fits.then(|| {
        let message = format!("`${name}` is the whole list here, and `[{index}]` is text");
        Warning::new(Slug::IndexInText, variable.span, message)
            .hint(hint!("an element has braces: `${{{name}[{index}]}}`"))
    })
}
