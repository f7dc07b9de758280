//! Here-documents: `<<WORD` and the lines up to `WORD`.

use pest::Parser;
use smallvec::smallvec;

use super::builder::Builder;
use super::{Grammar, Result, Rule, expected, literal};
use crate::ast::{Part, Target, Word};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;

impl Builder<'_> {
    /// The target of `<<word` at `span`.
    pub(super) fn here_document(&mut self, span: Span, word: &Word) -> Result<Target> {
        let Some(delimiter) = literal::word(word).filter(|text| !text.contains('\n')) else {
            return Err(Box::new(
                SyntaxError::new(
                    Slug::HereDocumentEnd,
                    word.span,
                    "the end of a here-document is a plain word",
                )
                .hint(hint!("`<<EOF` takes the lines up to one that is `EOF`")),
            ));
        };
        let Some(lines) = self.documents.take(&delimiter) else {
            self.documents.endless = true;
            return Err(Box::new(
                SyntaxError::new(
                    Slug::UnclosedHereDocument,
                    span,
                    "a here-document that never ends",
                )
                .label(format!("no line after this one is `{delimiter}`"))
                .hint(hint!("the line that ends it holds nothing else, not even blanks")),
            ));
        };
        let text = &self.text[lines.start..lines.end];
        let quoted = !word.parts.iter().all(|part| matches!(part, Part::Bare(_)));
        let part = if quoted {
            Part::Single(unix_lines(text))
        } else {
            let document = Grammar::parse(Rule::document, text)
                .map_err(|error| expected::explain(self.text, lines.start, lines.start, &error))?
                .next()
                .expect("a document that was parsed")
                .into_inner();
            let base = std::mem::replace(&mut self.base, lines.start);
            let pieces = self.quoted(document, &['$', '\\', '`']);
            self.base = base;
            Part::Double(pieces?)
        };
        Ok(Target::HereDocument {
            delimiter: delimiter.into_owned(),
            body: Word { span: lines, parts: smallvec![part] },
        })
    }
}

/// Line endings as newlines alone.
fn unix_lines(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", line.trim_end_matches('\r')),
            None => line.to_owned(),
        })
        .collect()
}
