//! Here-documents: `<<WORD` and the lines before `WORD`.

use pest::Parser;
use smallvec::smallvec;

use super::builder::Builder;
use super::{Grammar, Result, Rule, expected, literal};
use crate::ast::{RedirectionTarget, Word, WordPart};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

impl Builder<'_> {
    /// Builds the target of `<<word` at `span`.
    pub(super) fn here_document(&mut self, span: Span, word: &Word) -> Result<RedirectionTarget> {
        let Some(delimiter) = literal::word(word).filter(|text| !text.contains('\n')) else {
            return Err(Box::new(
                SyntaxError::new(
                    Slug::HereDocumentEnd,
                    word.span,
                    "the delimiter of a here-document must be a plain word",
                )
                .hint(hint!("`<<EOF` takes the lines up to a line `EOF`")),
            ));
        };
        let Some(lines) = self.documents.take(&delimiter) else {
            self.documents.endless = true;
            return Err(Box::new(
                SyntaxError::new(Slug::UnclosedHereDocument, span, "unterminated here-document")
                    .label(format!("no line `{delimiter}` follows"))
                    .hint(hint!("the last line must be the delimiter alone, without blanks")),
            ));
        };
        let text = &self.text[lines.start..lines.end];
        let quoted = !word.parts.iter().all(|part| matches!(part, WordPart::Bare(_)));
        let part = if quoted {
            WordPart::Single(unix_lines(text))
        } else {
            let document = Grammar::parse(Rule::document, text)
                .map_err(|error| expected::explain(self.text, lines.start, lines.start, &error))?
                .next()
                .expect("a document that was parsed")
                .into_inner();
            let base = std::mem::replace(&mut self.base, lines.start);
            let pieces = self.quoted(document, &['$', '\\', '`']);
            self.base = base;
            WordPart::Double(pieces?)
        };
        Ok(RedirectionTarget::HereDocument {
            delimiter: delimiter.into_owned(),
            body: Word { span: lines, parts: smallvec![part] },
        })
    }
}

/// Returns the text with line endings as newlines alone.
fn unix_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", line.trim_end_matches('\r')),
            None => line.to_owned(),
        })
        .collect()
}
