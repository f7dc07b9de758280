//! A mistake in a head, in one line that marks the word.

use std::ffi::{OsStr, OsString};

use anyhow::Error;

use crate::cli::messages::usage;
use crate::cli::options::{flags, names};
use ftsh_syntax::SyntaxError;
use ftsh_syntax::diagnostic::printable;
use ftsh_syntax::slug::Slug;

/// Place that a line marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// No place.
    None,
    /// The word with this number.
    Word(usize),
    /// The end of the words.
    End,
}

/// Returns words as one types them in a Bourne shell, with a place marked by `«` and `»`.
pub(super) fn marked(words: &[OsString], mark: Mark) -> String {
    let shown = words.iter().enumerate().map(|(at, word)| {
        let word = printable(&typed(word));
        if mark == Mark::Word(at) { format!("«{word}»") } else { word }
    });
    let end = (mark == Mark::End).then(|| "«»".to_owned());
    shown.chain(end).collect::<Vec<_>>().join(" ")
}

/// Returns a word as one types it in a Bourne shell.
fn typed(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "%+,-./:=@_{}".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns the line for a mistake that the parser has found.
pub(super) fn line(words: &[OsString], mark: Mark, error: &SyntaxError, form: &str) -> String {
    let place = marked(words, mark);
    if let Mark::Word(at @ 1..) = mark
        && (error.slug, &words[at - 1]) == (Slug::NotADuration, &"try".into())
    {
        let word = words[at].display();
        return format!(
            "{place}: `{word}` is neither a number of attempts nor a time, like `5 times` and `5 minutes`"
        );
    }
    let mut line = format!("{place}: {}", error.message);
    // A head has one line, and the command comes after `--`.
    let hint = error.hint.as_ref().filter(|hint| !hint.to_string().contains("next line"));
    match (hint, &error.label) {
        (Some(hint), _) => line += &format!("; {hint}"),
        (None, Some(label)) if mark != Mark::End => line += &format!("; {label}"),
        (None, _) => line += &format!("; write `ftsh {form}`"),
    }
    line
}

/// Returns the error for an option of ftsh inside heads, if the mark is at an option.
pub(super) fn option(words: &[OsString], mark: Mark) -> Option<Error> {
    let Mark::Word(at) = mark else { return None };
    let word = words[at].to_string_lossy();
    let name = word.split('=').next().unwrap_or_default();
    let is_option = flags::command().get_arguments().flat_map(names).any(|option| option == name);
    let first = words[0].display();
    is_option.then(|| {
        let place = marked(words, mark);
        let text =
            format!("{place}: `{name}` is an option of ftsh; write the option before `{first}`");
        usage(Slug::PrefixHead, text)
    })
}
