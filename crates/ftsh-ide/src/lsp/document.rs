//! Text that an editor has open.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::ByteSlice;
use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};

use super::position::LineIndex;
use crate::DiskFiles;
use ftsh_syntax::error::{SyntaxError, SyntaxErrors};
use ftsh_syntax::slug::Slug;
use ftsh_syntax::uses::{joined, parse_with_files};
use ftsh_syntax::{MAX_SCRIPT_LENGTH, SCRIPT_TOO_LONG, Script, Source, Span, parse};

/// Text with its syntax tree, parsed on first use.
#[derive(Debug)]
pub struct Document {
    /// Address of the text.
    pub uri: Uri,
    /// Version of the text, if the editor counts versions.
    pub version: Option<i32>,
    text: String,
    lines: LineIndex,
    parsed: OnceCell<Result<Script, SyntaxErrors>>,
}

impl Document {
    /// Creates a document from a text just opened.
    pub fn new(uri: Uri, version: Option<i32>, text: String) -> Self {
        Self { uri, version, lines: LineIndex::of(&text), text, parsed: OnceCell::new() }
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Applies changes of the editor.
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
            self.lines = LineIndex::of(&self.text);
        }
        self.parsed = OnceCell::new();
    }

    /// Returns the syntax tree.
    ///
    /// # Errors
    ///
    /// Returns the errors of a text that is not a valid script.
    pub fn parsed(&self) -> Result<&Script, &SyntaxErrors> {
        let parsed = self.parsed.get_or_init(|| {
            if self.text.len() <= MAX_SCRIPT_LENGTH {
                return self.parse();
            }
            let errors = vec![SyntaxError::new(Slug::TooLarge, Span::new(0, 0), SCRIPT_TOO_LONG)];
            Err(SyntaxErrors { source: Arc::new(Source::new(self.uri.as_str(), "")), errors })
        });
        parsed.as_ref()
    }

    /// Parses the text, with the files that it uses if the text is a file.
    fn parse(&self) -> Result<Script, SyntaxErrors> {
        let name = self.uri.as_str();
        let Some(directory) = self.directory() else { return parse(name, &self.text) };
        let mut files = DiskFiles::new(name, directory.clone());
        let errors = match parse_with_files(name, self.text.as_bytes(), &mut files) {
            Err(errors) if **errors.source.name() != *name => errors,
            parsed => return parsed,
        };
        // An error in another file is shown at the `use` of the file.
        let script = parse(name, &self.text)?;
        let is_it = |path: &str| joined(&directory, path).to_str() == Some(&**errors.source.name());
        let mut uses = script.uses();
        let first = uses.next();
        let found = first.into_iter().chain(uses).find(|(_, it)| is_it(&it.path)).or(first);
        let Some((span, first)) = found.zip(errors.errors.first()).map(|(it, e)| (it.0, e)) else {
            return Err(errors);
        };
        let (file, line) = (errors.source.name(), errors.source.line(first.span.start));
        let message = format!("{file}, line {line}: {}", first.message);
        let error = SyntaxError {
            label: first.label.clone(),
            hint: first.hint.clone(),
            ..SyntaxError::new(first.slug, span, message)
        };
        Err(SyntaxErrors { source: Arc::clone(&script.source), errors: vec![error] })
    }

    /// Returns the byte offset of a position.
    pub fn offset(&self, place: Position) -> usize {
        self.lines.offset(&self.text, place)
    }

    /// Converts a span to a range of the editor.
    pub fn range(&self, span: Span) -> Range {
        self.lines.range(&self.text, span)
    }

    /// Returns the directory of the document's file, if there is one.
    pub fn directory(&self) -> Option<PathBuf> {
        self.path()?.parent().map(ToOwned::to_owned)
    }

    /// Returns the path of the document's file, if there is one.
    pub fn path(&self) -> Option<PathBuf> {
        let path = self.uri.path().as_estr().decode().into_bytes();
        let is_file = self.uri.scheme().is_some_and(|scheme| scheme.as_str() == "file");
        let path = path.to_path().ok().filter(|path| is_file && path.is_absolute())?;
        Some(path.to_owned())
    }
}

/// Returns the address of a file with an absolute path.
pub(super) fn file_uri(path: &Path) -> Option<Uri> {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri.parse().ok().filter(|_| path.is_absolute())
}
