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
    /// Returns the variable of a word that is a variable and nothing else, quoted or not.
    pub fn variable(&self) -> Option<&VariableUse> {
        match &self.parts[..] {
            [WordPart::Variable(variable)] => Some(variable),
            [WordPart::Double(pieces)] => match &pieces[..] {
                [Quoted::Variable(variable)] => Some(variable),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the variable of a word that is `${name[@]}` or a slice and nothing else, quoted or not.
    pub fn all_of_list(&self) -> Option<&VariableUse> {
        self.variable().filter(|variable| variable.is_all())
    }

    /// Returns true if the word consists of all arguments: `$@`, `$*` or `"$@"`.
    pub fn is_all_arguments(&self) -> bool {
        let is_plain = |it: &VariableUse| it.index.is_none() && it.substitute.is_none();
        match &self.parts[..] {
            [WordPart::Variable(all)] => {
                matches!(all.parameter, Parameter::At | Parameter::Star) && is_plain(all)
            }
            [WordPart::Double(quoted)] => {
                matches!(&quoted[..], [Quoted::Variable(all)]
                    if all.parameter == Parameter::At && is_plain(all))
            }
            _ => false,
        }
    }

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
    /// `${f(x)}`, `$((1 + 2))` or `$(command)`: an expression that begins with a call, a
    /// [`Group`](super::ExprKind::Group), or a [`Collected`](super::ExprKind::Collected), with the
    /// value as text that is never split.
    Call(Box<Expr>),
}

/// Part of a double-quoted string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// Text after unescaping.
    Text(String),
    /// `$name`.
    Variable(Box<VariableUse>),
    /// `${f(x)}`, `$((1 + 2))` or `$(command)`, as [`WordPart::Call`].
    Call(Box<Expr>),
}

/// Use of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableUse {
    /// Span of the use, from the `$`.
    pub span: Span,
    /// Parameter after the `$`.
    pub parameter: Parameter,
    /// Index of `${name[index]}`.
    pub index: Option<Index>,
    /// Mark and word of `${name:-word}`, `${name:+word}` or `${name:?text}`; of `$(name)`, the
    /// command.
    ///
    /// Inside double quotes, a [`WordPart::Bare`] of the word is plain text, and so is a `'`.
    pub substitute: Option<(Substitute, Vec<WordPart>)>,
}

/// Part of a list that a variable refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// `[@]`: each element as a word.
    All,
    /// `[2..4]`, `[2..]`, `[..-2]`: each element from a position to another as a word.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
    /// `[1]`, `[$i .add. 1]`: the element at a position. Positions count from 1, and negative ones
    /// from the end.
    At(Box<Expr>),
}

impl VariableUse {
    /// Returns true for `${name[@]}` and `${name[2..4]}`, which are words of their own.
    pub fn is_all(&self) -> bool {
        matches!(self.index, Some(Index::All | Index::Slice(..)))
    }
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
    /// `$(name)`: the variable is unset, and the command `name` prints the value.
    Command,
}

/// Returns the expressions of all `${f(x)}` and the indexes of all `${name[index]}` in parts of a
/// word, in the order of the text.
pub fn calls(parts: &[WordPart]) -> Vec<&Expr> {
    let mut found = Vec::new();
    add_calls(parts, &mut found);
    found
}

/// Appends the [`calls`] in a word.
#[inline]
pub fn add_calls<'t>(parts: &'t [WordPart], found: &mut Vec<&'t Expr>) {
    let is_text = |part: &WordPart| {
        matches!(part, WordPart::Bare(_) | WordPart::Escaped(_) | WordPart::Single(_))
    };
    if !parts.iter().all(is_text) {
        add_calls_of_parts(parts, found);
    }
}

fn add_calls_of_parts<'t>(parts: &'t [WordPart], found: &mut Vec<&'t Expr>) {
    let variable = |variable: &'t VariableUse, found: &mut Vec<&'t Expr>| {
        match &variable.index {
            Some(Index::At(index)) => found.push(index),
            Some(Index::Slice(from, to)) => found.extend(from.iter().chain(to).map(|it| &**it)),
            Some(Index::All) | None => {}
        }
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
