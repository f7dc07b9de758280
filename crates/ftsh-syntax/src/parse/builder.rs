//! State of the steps from pairs of the grammar to the tree.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::documents::Documents;
use super::meant::NameCounts;
use super::{KnownNames, MAX_NESTING, Pair, Result};
use crate::ast::Name;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

/// Builder of the tree, one line after another.
#[expect(clippy::struct_excessive_bools, reason = "each can be true of any line")]
pub(super) struct Builder<'s> {
    /// Whole text.
    pub(super) text: &'s str,
    /// Position of the current line in the text, from which pairs count.
    pub(super) base: usize,
    /// Here-documents of the text.
    pub(super) documents: Documents<'s>,
    /// Indentation of the here-document around the current line, which is no part of its texts.
    pub(super) indent: &'s str,
    /// Functions defined by some line of the script or before the script.
    pub(super) functions: HashSet<&'s str>,
    /// Variables of the text, once a command has one.
    pub(super) names: OnceCell<NameCounts<'s>>,
    /// True if functions may be defined elsewhere.
    pub(super) is_open: bool,
    /// True if the text is no whole script.
    pub(super) is_part: bool,
    /// True if the names of used files are known.
    pub(super) has_used: bool,
    /// True if no statement precedes the current one.
    pub(super) is_first: bool,
    /// True if only `args` and `use` precede the current statement.
    pub(super) is_in_head: bool,
    /// True if a `$(` of the current line has no `)` in the text.
    pub(super) endless_group: bool,
    /// Position of an unterminated string in the current line.
    pub(super) endless_string: Option<usize>,
    /// First string over several lines, which may have swallowed the lines after it.
    pub(super) long_string: Option<Span>,
    nesting: usize,
}

impl<'s> Builder<'s> {
    pub(super) fn new(text: &'s str, known: KnownNames<'s>) -> Self {
        Self {
            text,
            base: 0,
            documents: Documents::new(text),
            indent: "",
            functions: function_names(text)
                .into_iter()
                .chain(known.functions.iter().copied())
                .collect(),
            names: OnceCell::new(),
            is_open: known.is_open || text.contains("source"),
            is_part: known.is_part,
            has_used: known.has_used,
            is_first: false,
            is_in_head: false,
            endless_group: false,
            endless_string: None,
            long_string: None,
            nesting: 0,
        }
    }

    /// Returns a builder of the lines up to `end`, which takes over the names.
    pub(super) fn enclosed(&mut self, end: usize) -> Self {
        let text = &self.text[..end];
        Self {
            text,
            documents: Documents::new(text),
            functions: std::mem::take(&mut self.functions),
            names: OnceCell::new(),
            is_part: true,
            endless_string: None,
            ..*self
        }
    }

    /// Returns the span of a pair in the whole text.
    pub(super) fn span(&self, pair: &Pair) -> Span {
        let span = pair.as_span();
        Span::new(self.base + span.start(), self.base + span.end())
    }

    /// Returns the text of a pair as a name.
    pub(super) fn name(pair: &Pair) -> Name {
        pair.as_str().into()
    }

    /// Builds a pair that may contain pairs of its own kind.
    pub(super) fn nested<T>(
        &mut self,
        span: Span,
        build: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.nesting == MAX_NESTING {
            return Err(too_nested(span).into());
        }
        self.nesting += 1;
        let result = build(self);
        self.nesting -= 1;
        result
    }
}

/// Returns the error for parentheses or `${…}` nested too deep.
pub(super) fn too_nested(span: Span) -> SyntaxError {
    SyntaxError::new(
        Slug::TooLarge,
        span,
        format!("parentheses and `${{…}}` nest at most {MAX_NESTING} deep"),
    )
    .hint(hint!("assign a part of the expression to a variable first"))
}

/// Returns every word after `function `.
///
/// Words in strings and comments are included. They only suppress hints.
fn function_names(text: &str) -> HashSet<&str> {
    text.match_indices("function")
        .filter_map(|(at, word)| {
            let rest = text[at + word.len()..].trim_start_matches([' ', '\t']);
            rest.split([' ', '\t', '\r', '\n', ';', '(']).next()
        })
        .collect()
}
