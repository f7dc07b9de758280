//! What the steps from pairs to tree share.

use std::collections::HashSet;

use super::documents::Documents;
use super::{MAX_NESTING, Pair, Result, substitutions};
use crate::ast::Name;
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

/// Builds the tree of one line after the other.
pub(super) struct Builder<'s> {
    /// The whole text.
    pub(super) text: &'s str,
    /// Where in the text the line begins that is being built: pairs count from there.
    pub(super) base: usize,
    /// Where the bodies of here-documents are read from.
    pub(super) documents: Documents<'s>,
    /// Names that some line of the script defines as a function, and of those that are there already.
    pub(super) functions: HashSet<&'s str>,
    /// Programs whose names are not those of variables.
    pub(super) programs: Vec<&'static str>,
    /// Where a string begins that never ends, if one was just met.
    pub(super) endless_string: Option<usize>,
    /// The first string that goes on over lines: it may have swallowed what follows.
    pub(super) long_string: Option<Span>,
    nesting: usize,
}

impl<'s> Builder<'s> {
    pub(super) fn new(text: &'s str, functions: &[&'s str]) -> Self {
        Self {
            text,
            base: 0,
            documents: Documents::new(text),
            functions: function_names(text).into_iter().chain(functions.iter().copied()).collect(),
            programs: substitutions::programs(text),
            endless_string: None,
            long_string: None,
            nesting: 0,
        }
    }

    /// Where a pair stands in the whole text.
    pub(super) fn span(&self, pair: &Pair) -> Span {
        let span = pair.as_span();
        Span::new(self.base + span.start(), self.base + span.end())
    }

    /// The pair's text as a name.
    pub(super) fn name(pair: &Pair) -> Name {
        pair.as_str().into()
    }

    /// Builds something that may contain itself.
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

/// The mistake of nesting parentheses or `${…}` too deep.
pub(super) fn too_nested(span: Span) -> SyntaxError {
    SyntaxError::new(
        Slug::TooLarge,
        span,
        format!("parentheses and `${{…}}` nest at most {MAX_NESTING} deep"),
    )
    .hint(hint!("assign a part of it to a variable first"))
}

/// Every word after `function `. It may find too many, in strings and comments; that only
/// silences advice.
fn function_names(text: &str) -> HashSet<&str> {
    text.match_indices("function")
        .filter_map(|(at, word)| {
            let rest = text[at + word.len()..].trim_start_matches([' ', '\t']);
            rest.split([' ', '\t', '\r', '\n', ';', '(']).next()
        })
        .collect()
}
