//! What tokens are made of: quotes, variables, names, and the signs of redirections.

use std::ops::Range;

use ftsh_syntax::vocabulary::is_name;

/// A part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// In quotes; whether the closing one is there.
    Quoted(bool),
    /// `$name` and its like.
    Variable,
}

/// How long the redirection at the start of a text is, without its target; 0 if there is none.
pub fn redirection(text: &str) -> usize {
    const OPERATORS: [&str; 17] = [
        "<<<", "<<-", "<<", "->>&", "->>", "->&", "->", "-<<", "-<", ">>&", "&>>", ">>", ">&",
        "&>", "<&", "<", ">",
    ];
    let digit = usize::from(text.starts_with(|c: char| c.is_ascii_digit()));
    let operator = OPERATORS.iter().find(|operator| text[digit..].starts_with(**operator));
    operator.map_or(0, |operator| digit + operator.len())
}

/// Where a string in single quotes ends, and whether it does.
pub fn single(text: &str, start: usize) -> (usize, bool) {
    let mut escaped = false;
    for (at, c) in text[start + 1..].char_indices() {
        match c {
            '\'' if !escaped => return (start + at + 2, true),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (text.len(), false)
}

/// Where a string in double quotes ends; notes it, and what is in it.
pub fn double(text: &str, start: usize, parts: &mut Vec<(Range<usize>, Part)>) -> usize {
    let index = parts.len();
    parts.push((start..start, Part::Quoted(false)));
    let mut at = start + 1;
    let mut closed = false;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                closed = true;
                at += 1;
                break;
            }
            '\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '$' => {
                let end = variable(text, at);
                if end > at + 1 {
                    parts.push((at..end, Part::Variable));
                }
                at = end;
            }
            _ => at += c.len_utf8(),
        }
    }
    parts[index] = (start..at, Part::Quoted(closed));
    at
}

/// Where the variable ends that begins with the `$` at `start`.
pub fn variable(text: &str, start: usize) -> usize {
    let rest = &text[start + 1..];
    let name = |text: &str| {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
    };
    let close = match rest.chars().next() {
        Some('{') => '}',
        Some('(') => ')',
        Some('#' | '*' | '@' | '$' | '0'..='9') => return start + 2,
        _ => return start + 1 + name(rest),
    };
    let end = rest.find([close, '\n', '"']).unwrap_or(rest.len());
    start + 1 + end + usize::from(rest[end..].starts_with(close))
}

/// How long the name is, if a word begins with `name=`.
pub fn assigned(word: &str) -> Option<usize> {
    let (name, _) = word.split_once('=')?;
    is_name(name).then_some(name.len())
}
