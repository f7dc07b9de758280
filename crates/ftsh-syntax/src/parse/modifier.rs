//! Words before a command that change the meaning of its end: `accept 24,3` and `keep`.

use std::collections::HashSet;

use super::{Result, literal};
use crate::ast::{AcceptedStatuses, Modifier, ModifierKind, Simple, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::{Hint, hint};
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{ALONE, DECLARATIONS, KEYWORDS, is_name};

/// Moves the modifiers at the beginning of a command's words into `modifiers`.
pub(super) fn take(simple: &mut Simple, functions: &HashSet<&str>) -> Result<()> {
    let mut taken = 0;
    while let Some((modifier, words)) = modifier(&simple.words[taken..], functions)? {
        taken += words;
        simple.modifiers.push(modifier);
    }
    simple.words.drain(..taken);
    let Some(last) = simple.modifiers.last() else { return Ok(()) };
    check_command(last, simple.words.first(), functions)
}

/// Returns a line without the modifiers at its beginning.
pub(super) fn skipped(line: &str) -> &str {
    let mut line = line;
    loop {
        let word = line.split([' ', '\t']).next().unwrap_or_default();
        let rest = line[word.len()..].trim_start();
        line = match word {
            "keep" => rest,
            "accept" => {
                rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',').trim_start()
            }
            _ => return line,
        };
    }
}

/// Returns the modifier at the beginning of the words, and the number of its words.
fn modifier(words: &[Word], functions: &HashSet<&str>) -> Result<Option<(Modifier, usize)>> {
    let [first, rest @ ..] = words else { return Ok(None) };
    let Some(name) = literal::bare(first).filter(|name| !functions.contains(name)) else {
        return Ok(None);
    };
    Ok(match name {
        "accept" => {
            let Some((word, text)) = rest.first().and_then(|word| Some((word, digits(word)?)))
            else {
                return Ok(None);
            };
            let span = Span::new(first.span.start, word.span.end);
            let kind = ModifierKind::Accept(statuses(word, text)?);
            Some((Modifier { span, kind }, 2))
        }
        "keep" if !rest.is_empty() => {
            Some((Modifier { span: first.span, kind: ModifierKind::Keep }, 1))
        }
        _ => None,
    })
}

/// Returns the text of a word that begins with a digit and consists of digits and commas.
fn digits(word: &Word) -> Option<&str> {
    let text = literal::bare(word)?;
    let is_list = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    (is_list && text.starts_with(|c: char| c.is_ascii_digit())).then_some(text)
}

fn statuses(word: &Word, text: &str) -> Result<AcceptedStatuses> {
    let refuse = |slug: Slug, message: &str| {
        let error = SyntaxError::new(slug, word.span, message.to_owned());
        Err(error.hint(hint!("write the statuses as one word: `accept 24,3 rsync …`")).into())
    };
    let mut statuses = Vec::new();
    for status in text.split(',') {
        match status.parse() {
            Ok(status) => statuses.push(status),
            Err(_) if status.is_empty() => {
                return refuse(Slug::Unexpected, "a status is missing next to a comma");
            }
            Err(_) => return refuse(Slug::OutOfRange, "a status is a number from 0 to 255"),
        }
    }
    Ok(AcceptedStatuses(statuses.into()))
}

/// Refuses anything but a command after a modifier.
fn check_command(last: &Modifier, word: Option<&Word>, functions: &HashSet<&str>) -> Result<()> {
    let name = last.kind.name();
    let Some(word) = word else {
        let message = format!("the command after `{name}` is missing");
        let error = SyntaxError::new(Slug::MissingCommand, last.span, message);
        return Err(error.hint(hint!("write the command on the same line")).into());
    };
    let refuse = |slug: Slug, message: String, hint: Hint| {
        Err(SyntaxError::new(slug, word.span, message).hint(hint).into())
    };
    if let [WordPart::Bare(text), ..] = &word.parts[..]
        && text.split_once('=').is_some_and(|(variable, _)| is_name(variable))
    {
        return refuse(
            Slug::MisplacedKeyword,
            format!("an assignment comes after `{name}`"),
            hint!("variables for the command come before `{name}`"),
        );
    }
    match literal::bare(word).filter(|word| !functions.contains(word)) {
        Some(number) if name == "accept" && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            refuse(
                Slug::MisplacedKeyword,
                "`accept` takes one word of statuses, and then a command".to_owned(),
                hint!("write the statuses as one word: `accept 24,3 rsync …`"),
            )
        }
        Some("going") if name == "keep" => refuse(
            Slug::MisplacedClause,
            "`keep going` is a clause of `forall`".to_owned(),
            hint!(
                "write `forall x in a b keep going`; a program of this name has quotes: `keep \"going\"`"
            ),
        ),
        Some("exec") => refuse(
            Slug::MisplacedKeyword,
            format!("`exec` comes after `{name}`"),
            hint!("`exec` replaces the shell; remove the `exec`"),
        ),
        Some(keyword)
            if KEYWORDS.contains(&keyword)
                || ALONE.contains(&keyword)
                || DECLARATIONS.contains(&keyword)
                || matches!(keyword, "case" | "local") =>
        {
            refuse(
                Slug::MisplacedKeyword,
                format!("`{keyword}` comes after `{name}`"),
                hint!(
                    "`{name}` takes a command; make a structure a function, and call the function"
                ),
            )
        }
        _ => Ok(()),
    }
}
