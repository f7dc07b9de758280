//! Parser: text to a syntax tree.
//!
//! `reader` splits the text into lines, each of which takes one parse by the grammar. `block`
//! matches heads with their `end`s on a stack of its own. Every line with an error is therefore
//! reported, and neither the length nor the nesting of a script costs native stack.

mod arguments;
mod atomic_in;
mod backoff;
mod bashisms;
mod block;
pub mod braces;
mod brackets;
mod branch_files;
mod builder;
mod channel;
mod command;
mod cursor;
mod document;
mod documents;
mod duration;
mod expected;
mod expr;
mod jump;
mod line;
pub mod literal;
mod loop_;
mod meant;
mod misspelled;
mod modifier;
mod near_clause;
mod operator;
mod pipeline;
mod plain;
mod plain_try;
mod questions;
mod reader;
mod size;
mod structure;
mod substitutions;
mod try_;
mod uses;
mod word;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::ast::Script;
use super::error::{SyntaxError, SyntaxErrors};
use super::span::{Source, Span};
use crate::hint::hint;
use crate::slug::Slug;

pub use arguments::argument_name;
use ftsh_grammar::{Grammar, Rule};

type Pair<'i> = pest::iterators::Pair<'i, Rule>;
type Pairs<'i> = pest::iterators::Pairs<'i, Rule>;

/// Result of a step of the parser, with one error a line: everything behind the error is guesswork.
type Result<T> = std::result::Result<T, Box<SyntaxError>>;

/// Maximum depth of structures inside structures.
const MAX_BLOCK_DEPTH: usize = 1000;
/// Maximum depth of parentheses and `${name:-word}` inside each other.
const MAX_NESTING: usize = 100;
/// Maximum depth of operators in a tree; a chain of n operators is n deep.
const MAX_EXPRESSION_DEPTH: usize = 1000;
/// Number of errors after which the rest of a text is not read, because the text is no script.
///
/// For each error, pest scans the whole rest.
const MAX_ERRORS: usize = 200;
/// Maximum number of steps of the grammar for one line: some hundred for each byte of a very long
/// line.
///
/// The grammar never tries the same text more than a few times. The limit is a second safety.
const MAX_STEPS: usize = 500_000_000;

/// Parses the script `text`, called `name` in messages.
pub fn parse(name: &str, text: &str) -> std::result::Result<Script, SyntaxErrors> {
    parse_with(name, text, KnownNames::default())
}

/// Names defined before a text runs, as at a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownNames<'n> {
    /// Functions.
    pub functions: &'n [&'n str],
    /// Channels.
    pub channels: &'n [&'n str],
    /// True if more functions may be defined before a call runs, as at a prompt.
    pub is_open: bool,
    /// True for the text of a prompt and of a sourced file, which can't declare arguments.
    pub is_part: bool,
    /// True if the functions and channels of the files that the text uses are known. Otherwise any
    /// name may be theirs.
    pub has_used: bool,
}

/// Parses a script that runs where `known` functions and channels are defined.
pub fn parse_with(
    name: &str,
    text: &str,
    known: KnownNames,
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
    match reader::script(source.text(), known) {
        Ok(body) => Ok(Script::new(source, body)),
        Err(errors) => Err(SyntaxErrors { source, errors }),
    }
}

/// Missing part of a text that a user types line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// `end` of a structure, with the keyword of the current block: `try`, `catch`, `else` …
    Block(&'static str),
    /// Closing quote of a string.
    Quote(char),
    /// Last line of a here-document.
    Document,
    /// Next stage of a pipeline.
    Pipeline,
    /// Line that a `\` joins to the last line.
    Line,
}

/// Returns the missing part at the end of `text`, if the text has no other error.
pub fn unfinished(text: &str) -> Option<Unfinished> {
    unfinished_with(text, KnownNames::default())
}

/// Returns the missing part of a text that runs where `known` functions and channels are defined.
pub fn unfinished_with(text: &str, known: KnownNames) -> Option<Unfinished> {
    pest::set_call_limit(std::num::NonZeroUsize::new(MAX_STEPS));
    reader::unfinished(text, known)
}

/// Parses a script that may not be UTF-8.
pub fn parse_bytes(name: &str, bytes: &[u8]) -> std::result::Result<Script, SyntaxErrors> {
    parse_bytes_with(name, bytes, KnownNames::default())
}

/// Parses a script that may not be UTF-8, where `known` functions and channels are defined.
pub fn parse_bytes_with(
    name: &str,
    bytes: &[u8],
    known: KnownNames,
) -> std::result::Result<Script, SyntaxErrors> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return parse_with(name, text, known),
        Err(error) => error,
    };
    // The text up to the end of the line is enough to display the line.
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
