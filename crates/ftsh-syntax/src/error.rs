//! What is wrong with a script, before it runs.

use std::sync::Arc;

use super::span::{Source, Span};
use crate::hint::Hint;
use crate::slug::Slug;

/// One mistake in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Kind of mistake.
    pub slug: Slug,
    /// Where.
    pub span: Span,
    /// What is wrong, in one line.
    pub message: String,
    /// What was expected at the underlined place, when that says more than the message.
    pub label: Option<String>,
    /// Another place that explains the mistake, with what to say of it.
    pub related: Option<(Span, String)>,
    /// How to say it in ftsh.
    pub hint: Option<Hint>,
}

impl SyntaxError {
    /// A mistake at `span`.
    pub fn new(slug: Slug, span: Span, message: impl Into<String>) -> Self {
        Self { slug, span, message: message.into(), label: None, related: None, hint: None }
    }

    /// Says what was expected at the underlined place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Points at another place.
    #[must_use]
    pub fn related(mut self, span: Span, note: impl Into<String>) -> Self {
        self.related = Some((span, note.into()));
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// All the mistakes of one script, in the order of the text; never empty.
#[derive(Clone, Debug)]
pub struct SyntaxErrors {
    /// The script.
    pub source: Arc<Source>,
    /// Its mistakes.
    pub errors: Vec<SyntaxError>,
}
