//! Lint of lists in places of text: indexes without braces, `length`, and text beside a list.

use std::collections::HashSet;

use super::{Warning, walk};
use ftsh_syntax::Script;
use ftsh_syntax::ast::{
    ArgumentKind, CommandKind, Expr, ExprKind, Parameter, Quoted, Simple, VariableUse, Word,
    WordPart,
};
use ftsh_syntax::hint::hint;
use ftsh_syntax::slug::Slug;

/// Lists that the shell sets.
const OWN: [&str; 3] = ["failed", "failed_errors", "succeeded"];

pub(super) fn check(script: &Script) -> Vec<Warning> {
    let mut lists: HashSet<&str> = OWN.into();
    let mut texts: HashSet<&str> = HashSet::new();
    walk::each(&script.body, &mut |command| match &command.kind {
        CommandKind::List { name, .. } => _ = lists.insert(name),
        CommandKind::Assign { name, .. } => _ = texts.insert(name),
        CommandKind::Args(declaration) => {
            let rest =
                declaration.arguments.iter().filter(|it| matches!(it.kind, ArgumentKind::Rest));
            lists.extend(rest.map(|it| &*it.name));
        }
        _ => {}
    });
    let mut warnings = Vec::new();
    walk::each(&script.body, &mut |command| {
        let words = walk::words(command);
        warnings.extend(words.iter().filter_map(|word| index(word, &lists)));
        for expr in walk::expressions(command) {
            length(expr, &lists, &mut warnings);
        }
        let items = walk::items(command).iter().filter_map(|item| match &item.kind {
            ExprKind::Word(word) => Some(word),
            _ => None,
        });
        let is_list = |name: &str| lists.contains(name) && !texts.contains(name);
        // `export x=$list` takes one value.
        let is_plain = |simple: &&Simple| walk::name(simple).as_deref() != Some("export");
        let simples = walk::simples(command).filter(is_plain);
        let words = simples.flat_map(|simple| &simple.words).chain(items);
        let words = words.filter(|word| index(word, &lists).is_none());
        warnings.extend(words.filter_map(|word| beside(word, is_list)));
    });
    warnings
}

/// Checks an expression and its operands for `length($list)`.
fn length(expr: &Expr, lists: &HashSet<&str>, warnings: &mut Vec<Warning>) {
    if let ExprKind::Call { name, args } = &expr.kind
        && &**name == "length"
        && let [Expr { kind: ExprKind::Word(word), .. }] = &args[..]
        && let [WordPart::Variable(variable)] = &word.parts[..]
        && let Parameter::Named(list) = &variable.parameter
        && (variable.index.is_none() || variable.is_all())
        && lists.contains(&**list)
    {
        let message = "`length` counts the characters of all elements, as one text";
        let warning = Warning::new(Slug::ListLength, expr.span, message);
        warnings.push(warning.hint(hint!("the number of elements is `count(${list})`")));
    }
    for operand in walk::operands(expr) {
        length(operand, lists, warnings);
    }
}

/// Checks a word for `x$list`.
fn beside(word: &Word, is_list: impl Fn(&str) -> bool) -> Option<Warning> {
    let list = word.parts.iter().find_map(|part| match part {
        WordPart::Variable(variable) if variable.index.is_none() => match &variable.parameter {
            Parameter::Named(name) if is_list(name) => Some(name),
            _ => None,
        },
        _ => None,
    });
    let name = list.filter(|_| word.parts.len() > 1)?;
    let message = format!("`${name}` becomes one word for each element, so no text can touch it");
    Some(Warning::new(Slug::ListBesideText, word.span, message).hint(hint!(
        "in double quotes it is one text: `\"${name}\"`; or write `${{join(\", \", ${name})}}`"
    )))
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
