//! From text to a syntax tree.
//!
//! [`reader`] takes the text apart line by line, each with one parse of the grammar; [`block`] pairs
//! heads with their `end`s on a stack of its own. So every line with a mistake is reported, and
//! neither the length nor the nesting of a script costs native stack.

mod backoff;
mod bashisms;
mod block;
pub mod braces;
mod builder;
mod channel;
mod command;
mod document;
mod documents;
mod duration;
mod expected;
mod expr;
mod jump;
mod line;
pub mod literal;
mod loop_;
mod misspelled;
mod operator;
mod pipeline;
mod plain;
mod reader;
mod structure;
mod substitutions;
mod try_;
mod word;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::ast::Script;
use super::error::{SyntaxError, SyntaxErrors};
use super::span::{Source, Span};
use crate::hint::hint;
use crate::slug::Slug;

/// What pest makes of the grammar; apart, since the derived code has no documentation.
#[allow(missing_docs, reason = "derived")]
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/ftsh.pest"]
    pub(super) struct Grammar;
}

use grammar::{Grammar, Rule};

type Pair<'i> = pest::iterators::Pair<'i, Rule>;
type Pairs<'i> = pest::iterators::Pairs<'i, Rule>;

/// What a step of the parser yields. One mistake a line is enough: what follows it is guesswork.
type Result<T> = std::result::Result<T, Box<SyntaxError>>;

/// Structures inside structures.
const MAX_BLOCK_DEPTH: usize = 1000;
/// Parentheses and `${name:-word}`s inside each other.
const MAX_NESTING: usize = 100;
/// Operators above each other in a tree; a chain of n operators is n deep.
const MAX_EXPRESSION_DEPTH: usize = 1000;
/// Mistakes before the rest of a text isn't read: it must be something else than a script. For each
/// one, pest looks through the whole rest.
const MAX_MISTAKES: usize = 200;
/// The grammar's steps for one line: some hundred for each byte of the longest line one could mean.
/// The grammar never tries the same text more than a few times, so this is a second rope.
const MAX_STEPS: usize = 500_000_000;

/// Parses the script `text`, called `name` in messages.
pub fn parse(name: &str, text: &str) -> std::result::Result<Script, SyntaxErrors> {
    parse_among(name, text, Among::default())
}

/// What there is already where a text is run, as at a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Among<'n> {
    /// The functions.
    pub functions: &'n [&'n str],
    /// The channels.
    pub channels: &'n [&'n str],
}

/// The same of a text that is run where there are functions and channels.
pub fn parse_among(
    name: &str,
    text: &str,
    among: Among,
) -> std::result::Result<Script, SyntaxErrors> {
    let source = Arc::new(Source::new(name, text));
    if let Some(at) = text.find('\0') {
        let error = SyntaxError::new(
            Slug::NotText,
            Span::new(at, at + 1),
            "a script can't contain a NUL byte",
        );
        return Err(SyntaxErrors { source, errors: vec![error] });
    }
    pest::set_call_limit(std::num::NonZeroUsize::new(MAX_STEPS));
    match reader::script(source.text(), among) {
        Ok(body) => Ok(Script { source, body }),
        Err(errors) => Err(SyntaxErrors { source, errors }),
    }
}

/// What a text needs before it can be run, as someone types it line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The `end` of a structure; the keyword whose commands come next: `try`, `catch`, `else` …
    Block(&'static str),
    /// The closing quote of a string.
    Quote(char),
    /// The last line of a here-document.
    Document,
    /// The next stage of a pipeline.
    Pipeline,
    /// The line that a `\` joins to this one.
    Line,
}

/// What `text` lacks to be a script, if something is missing at its end and nothing else is wrong.
pub fn unfinished(text: &str) -> Option<Unfinished> {
    unfinished_among(text, Among::default())
}

/// The same where there are functions and channels.
pub fn unfinished_among(text: &str, among: Among) -> Option<Unfinished> {
    pest::set_call_limit(std::num::NonZeroUsize::new(MAX_STEPS));
    reader::unfinished(text, among.functions)
}

/// Parses a script that may not be UTF-8.
pub fn parse_bytes(name: &str, bytes: &[u8]) -> std::result::Result<Script, SyntaxErrors> {
    parse_bytes_among(name, bytes, Among::default())
}

/// The same where there are functions and channels.
pub fn parse_bytes_among(
    name: &str,
    bytes: &[u8],
    among: Among,
) -> std::result::Result<Script, SyntaxErrors> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return parse_among(name, text, among),
        Err(error) => error,
    };
    // Enough of the text to show the line.
    let at = error.valid_up_to();
    let line = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n);
    let text = String::from_utf8_lossy(&bytes[..line]);
    let width = char::REPLACEMENT_CHARACTER.len_utf8();
    let message = format!("the script isn't UTF-8: byte {at} is {:#04x}", bytes[at]);
    let error = SyntaxError::new(Slug::NotText, Span::new(at, at + width), message).hint(hint!(
        "save the script as UTF-8; other bytes can come from variables, files and `printf`"
    ));
    Err(SyntaxErrors { source: Arc::new(Source::new(name, text)), errors: vec![error] })
}
