//! Errors in scripts, found before a script runs.

use std::sync::Arc;

use super::span::{Source, Span};
use crate::hint::Hint;
use crate::slug::Slug;

/// Error in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Slug of the error, which selects its page in the error index.
    pub slug: Slug,
    /// Span of the error.
    pub span: Span,
    /// Description of the error, in one line.
    pub message: String,
    /// Text below the marked place, such as the expected words.
    pub label: Option<String>,
    /// Another place that explains the error, with a note.
    pub related: Option<(Span, String)>,
    /// Proposed correction.
    pub hint: Option<Hint>,
}

impl SyntaxError {
    /// Creates an error at `span`.
    pub fn new(slug: Slug, span: Span, message: impl Into<String>) -> Self {
        Self { slug, span, message: message.into(), label: None, related: None, hint: None }
    }

    /// Sets the text below the marked place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds another place with a note.
    #[must_use]
    pub fn related(mut self, span: Span, note: impl Into<String>) -> Self {
        self.related = Some((span, note.into()));
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// All errors of one script, in the order of the text; never empty.
#[derive(Clone, Debug)]
pub struct SyntaxErrors {
    /// Text of the script.
    pub source: Arc<Source>,
    /// Errors of the script.
    pub errors: Vec<SyntaxError>,
}
