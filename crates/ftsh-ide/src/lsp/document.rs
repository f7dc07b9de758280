//! A text that an editor has open.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use bstr::ByteSlice;
use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};

use super::position::Lines;
use ftsh_syntax::error::{SyntaxError, SyntaxErrors};
use ftsh_syntax::slug::Slug;
use ftsh_syntax::{LONGEST, Script, Source, Span, TOO_LONG, parse};

/// A text, and what is made of it when somebody asks.
#[derive(Debug)]
pub struct Document {
    /// What the editor calls it.
    pub uri: Uri,
    /// Which of its versions this is, if the editor counts them.
    pub version: Option<i32>,
    text: String,
    lines: Lines,
    parsed: OnceCell<Result<Script, SyntaxErrors>>,
}

impl Document {
    /// A text as it was opened.
    pub fn new(uri: Uri, version: Option<i32>, text: String) -> Self {
        Self { uri, version, lines: Lines::of(&text), text, parsed: OnceCell::new() }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes over what was typed.
    pub fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        self.version = Some(version);
        for change in changes {
            match change.range {
                None => self.text = change.text,
                Some(range) => {
                    let (start, end) = (self.offset(range.start), self.offset(range.end));
                    self.text.replace_range(start..end.max(start), &change.text);
                }
            }
            self.lines = Lines::of(&self.text);
        }
        self.parsed = OnceCell::new();
    }

    /// The tree, or what is wrong.
    ///
    /// # Errors
    ///
    /// It isn't a script (yet).
    pub fn parsed(&self) -> Result<&Script, &SyntaxErrors> {
        let parsed = self.parsed.get_or_init(|| {
            if self.text.len() <= LONGEST {
                return parse(self.uri.as_str(), &self.text);
            }
            let errors = vec![SyntaxError::new(Slug::TooLarge, Span::new(0, 0), TOO_LONG)];
            Err(SyntaxErrors { source: Arc::new(Source::new(self.uri.as_str(), "")), errors })
        });
        parsed.as_ref()
    }

    /// The byte at a place.
    pub fn offset(&self, place: Position) -> usize {
        self.lines.offset(&self.text, place)
    }

    /// Where a span is, to an editor.
    pub fn range(&self, span: Span) -> Range {
        self.lines.range(&self.text, span)
    }

    /// The directory of the file, if it is one.
    pub fn directory(&self) -> Option<PathBuf> {
        let path = self.uri.path().as_estr().decode().into_bytes();
        let is_file = self.uri.scheme().is_some_and(|scheme| scheme.as_str() == "file");
        let path = path.to_path().ok().filter(|path| is_file && path.is_absolute())?;
        path.parent().map(ToOwned::to_owned)
    }
}
