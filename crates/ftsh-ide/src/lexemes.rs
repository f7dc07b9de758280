//! Parts of tokens: quotes, variables, names, and the operators of redirections.

use std::ops::Range;

use ftsh_syntax::engine::EngineId;
use ftsh_syntax::vocabulary::{FILE_CLAUSES, is_name, loop_clauses};

/// Part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenPart {
    /// Quoted string; true if the closing quote is present.
    Quoted(bool),
    /// Use of a variable, such as `$name`.
    Variable,
}

/// Returns the length of the redirection at the start of a text, without its target; 0 if there is
/// none.
pub fn redirection(text: &str) -> usize {
    const OPERATORS: [&str; 17] = [
        "<<<", "<<-", "<<", "->>&", "->>", "->&", "->", "-<<", "-<", ">>&", "&>>", ">>", ">&",
        "&>", "<&", "<", ">",
    ];
    let digit = usize::from(text.starts_with(|c: char| c.is_ascii_digit()));
    let operator = OPERATORS.iter().find(|operator| text[digit..].starts_with(**operator));
    operator.map_or(0, |operator| digit + operator.len())
}

/// Returns the end of a string in single quotes, and true if the string is terminated.
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

/// Returns the end of a string in double quotes, and adds the string and its variables to `parts`.
pub fn double(text: &str, start: usize, parts: &mut Vec<(Range<usize>, TokenPart)>) -> usize {
    let index = parts.len();
    parts.push((start..start, TokenPart::Quoted(false)));
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
                    parts.push((at..end, TokenPart::Variable));
                }
                at = end;
            }
            _ => at += c.len_utf8(),
        }
    }
    parts[index] = (start..at, TokenPart::Quoted(closed));
    at
}

/// Returns the end of the variable or call that begins with the `$` at `start`.
pub fn variable(text: &str, start: usize) -> usize {
    let rest = &text[start + 1..];
    if let Some(length) = name_of_call(rest) {
        return enclosed(text, start + 1 + length, '}');
    }
    let name = |text: &str| {
        text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
    };
    let close = match rest.chars().next() {
        Some('{') => '}',
        Some('(') => return enclosed(text, start + 2, ')'),
        Some('#' | '*' | '@' | '$' | '0'..='9') => return start + 2,
        _ => return start + 1 + name(rest),
    };
    let end = rest.find([close, '\n', '"']).unwrap_or(rest.len());
    start + 1 + end + usize::from(rest[end..].starts_with(close))
}

/// Returns the length of `{name(` at the start of a text, without the parenthesis.
fn name_of_call(text: &str) -> Option<usize> {
    let is_blank = |c| matches!(c, ' ' | '\t');
    let inside = text.strip_prefix('{')?.trim_start_matches(is_blank);
    let is_in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let after = inside.trim_start_matches(is_in_name);
    let rest = after.trim_start_matches(is_blank);
    (after.len() < inside.len() && rest.starts_with('(')).then(|| text.len() - rest.len())
}

/// Returns the end of the `${f(x)}` or `$(command)` whose content is at `start`. The text may hold
/// strings, and further calls and commands.
fn enclosed(text: &str, start: usize, close: char) -> usize {
    let mut open = vec![close];
    let mut at = start;
    while let (Some(c), Some(last)) = (text[at..].chars().next(), open.last().copied()) {
        match c {
            '\\' => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '\'' if last != '"' => at = single(text, at).0,
            '"' if last != '"' => {
                open.push('"');
                at += 1;
            }
            '\n' if last == '}' => return at,
            '$' if text[at + 1..].starts_with(['{', '(']) => {
                open.push(if text[at + 1..].starts_with('{') { '}' } else { ')' });
                at += 2;
            }
            '(' if last == ')' => {
                open.push(')');
                at += 1;
            }
            c => {
                if c == last {
                    open.pop();
                }
                at += c.len_utf8();
            }
        }
    }
    at
}

/// Returns the length of the name, if a word begins with `name=`.
pub fn assigned(word: &str) -> Option<usize> {
    let (name, _) = word.split_once('=')?;
    is_name(name).then_some(name.len())
}

/// Returns true if a word belongs to a clause of a loop, together with the word before or after it.
pub(crate) fn is_of_loop(
    keyword: &str,
    before: Option<&str>,
    word: &str,
    next: Option<&str>,
) -> bool {
    let is_engine = |name: &str| EngineId::named(name).is_some();
    let is_on =
        word == "on" && next.is_some_and(is_engine) || before == Some("on") && is_engine(word);
    let mut own = loop_clauses().filter(|(owner, _)| *owner == keyword);
    let is_file = FILE_CLAUSES.contains(&word) && before != Some("in");
    keyword == "forall" && (is_on || is_file)
        || own.any(|(_, [first, second])| {
            word == first && next == Some(second) || word == second && before == Some(first)
        })
}
