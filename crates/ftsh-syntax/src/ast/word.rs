//! Words, with their variables and calls.

use smallvec::SmallVec;

use super::{Expr, Name, Redirect, RedirectionTarget, Simple};
use crate::span::Span;

/// Word: parts without white space between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Span of the word.
    pub span: Span,
    /// Parts, at least one. A single part, by far the most common case, needs no allocation.
    pub parts: SmallVec<[WordPart; 1]>,
}

impl Word {
    /// Returns the text if the value of the word is the same text in every environment.
    ///
    /// The word is then one part without quotes, patterns and home directory.
    pub fn literal_text(&self) -> Option<&str> {
        let is_active = |byte: &u8| matches!(byte, b'*' | b'?' | b'[');
        match &self.parts[..] {
            [WordPart::Bare(text)]
                if !text.starts_with('~') && !text.as_bytes().iter().any(is_active) =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

/// Part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordPart {
    /// Unquoted text. `*`, `?` and `[…]` are patterns, and a leading `~` is a home directory.
    ///
    /// Two bare parts in a row come from lines joined inside a word, and mean the same as one part.
    Bare(String),
    /// `\c`
    Escaped(char),
    /// `'…'`, with the text after unescaping.
    Single(String),
    /// `"…"`.
    Double(Vec<Quoted>),
    /// `$name`, unquoted.
    Variable(Box<VariableUse>),
    /// `${f(x)}`: an expression that begins with a call, with the value as text that is never split.
    Call(Box<Expr>),
}

/// Part of a double-quoted string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// Text after unescaping.
    Text(String),
    /// `$name`.
    Variable(Box<VariableUse>),
    /// `${f(x)}`: an expression that begins with a call.
    Call(Box<Expr>),
}

/// Use of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableUse {
    /// Span of the use, from the `$`.
    pub span: Span,
    /// Parameter after the `$`.
    pub parameter: Parameter,
    /// Mark and word of `${name:-word}`, `${name:+word}` or `${name:?text}`.
    ///
    /// Inside double quotes, a [`WordPart::Bare`] of the word is plain text, and so is a `'`.
    pub substitute: Option<(Substitute, Vec<WordPart>)>,
}

/// Parameter that a `$` refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `$name`
    Named(Name),
    /// `$0`, `$1`, …
    Positional(u32),
    /// `$#`
    Count,
    /// `$*`
    Star,
    /// `$@`
    At,
    /// `$$`
    Pid,
}

/// Condition for the use of a substitute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// `:-`: the variable is unset or empty.
    Default,
    /// `:+`: the variable is set and not empty.
    Alternative,
    /// `:?`: the variable is unset or empty, which fails with the substitute as message.
    Required,
}

/// Returns the expressions of all `${f(x)}` in parts of a word, in the order of the text.
pub fn calls(parts: &[WordPart]) -> Vec<&Expr> {
    let mut found = Vec::new();
    add_calls(parts, &mut found);
    found
}

fn add_calls<'t>(parts: &'t [WordPart], found: &mut Vec<&'t Expr>) {
    let variable = |variable: &'t VariableUse, found: &mut Vec<&'t Expr>| {
        if let Some((_, parts)) = &variable.substitute {
            add_calls(parts, found);
        }
    };
    for part in parts {
        match part {
            WordPart::Bare(_) | WordPart::Escaped(_) | WordPart::Single(_) => {}
            WordPart::Variable(used) => variable(used, found),
            WordPart::Call(expr) => found.push(expr),
            WordPart::Double(pieces) => {
                for piece in pieces {
                    match piece {
                        Quoted::Text(_) => {}
                        Quoted::Variable(used) => variable(used, found),
                        Quoted::Call(expr) => found.push(expr),
                    }
                }
            }
        }
    }
}

impl Simple {
    /// Returns all words of the command, also those of assignments and redirections.
    pub fn all_words(&self) -> impl Iterator<Item = &Word> {
        let assigned = self.assignments.iter().map(|(_, word)| word);
        let targets = self.redirects.iter().filter_map(Redirect::word);
        assigned.chain(&self.words).chain(targets)
    }
}

impl Redirect {
    /// Returns the word of the target, or the text of a here-document.
    pub fn word(&self) -> Option<&Word> {
        match &self.target {
            RedirectionTarget::File(word)
            | RedirectionTarget::Variable(word)
            | RedirectionTarget::HereDocument { body: word, .. }
            | RedirectionTarget::HereString(word) => Some(word),
            RedirectionTarget::Descriptor(_) => None,
        }
    }
}
