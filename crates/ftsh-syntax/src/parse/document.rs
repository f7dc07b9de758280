//! Here-documents: `<<WORD` and the lines before `WORD`.

use std::borrow::Cow;

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
    /// Builds the target of `<<word` at `span`, or of `<<-word` if `indented`.
    pub(super) fn here_document(
        &mut self,
        span: Span,
        word: &Word,
        indented: bool,
    ) -> Result<RedirectionTarget> {
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
        let (all, around) = (self.text, self.indent);
        let end = format!("{}{delimiter}", if indented { "" } else { around });
        let Some(lines) = self.documents.take(&end, indented) else {
            self.documents.endless = true;
            return Err(Box::new(
                SyntaxError::new(Slug::UnclosedHereDocument, span, "unterminated here-document")
                    .label(format!("no line `{delimiter}` follows"))
                    .hint(hint!(
                        "the last line must be the delimiter alone; after `<<-{delimiter}` spaces may come before it"
                    )),
            ));
        };
        let text = &all[lines.start..lines.end];
        let rest = &all[lines.end..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let indent = if indented { &rest[..blanks] } else { around };
        check_indentation(lines, text, indent, &delimiter)?;
        let quoted = !word.parts.iter().all(|part| matches!(part, WordPart::Bare(_)));
        let part = if quoted {
            WordPart::Single(unix_lines(&unindented(text, indent, true)))
        } else {
            let document = Grammar::parse(Rule::document, text)
                .map_err(|error| expected::explain(self.text, lines.start, lines.start, &error))?
                .next()
                .expect("a document that was parsed")
                .into_inner();
            let base = std::mem::replace(&mut self.base, lines.start);
            self.indent = indent;
            let pieces = self.quoted(document, &['$', '\\', '`'], true);
            (self.base, self.indent) = (base, around);
            WordPart::Double(pieces?)
        };
        Ok(RedirectionTarget::HereDocument {
            delimiter: delimiter.into_owned(),
            indent: indented.then(|| indent.strip_prefix(around).unwrap_or(indent).to_owned()),
            body: Word { span: lines, parts: smallvec![part] },
        })
    }
}

/// Refuses a line with less indentation than the delimiter, unless the line is empty.
fn check_indentation(lines: Span, text: &str, indent: &str, delimiter: &str) -> Result<()> {
    let mut at = lines.start;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let has_less = !line.starts_with(indent) && !content.trim_matches([' ', '\t']).is_empty();
        if has_less {
            let message =
                format!("this line has less indentation than the last one, `{delimiter}`");
            let span = Span::new(at, at + content.len());
            return Err(Box::new(SyntaxError::new(Slug::IndentedHereDocument, span, message)));
        }
        at += line.len();
    }
    Ok(())
}

/// Returns a part of a document without indentation. The part begins a line if `starts`.
pub(super) fn unindented<'t>(text: &'t str, indent: &str, starts: bool) -> Cow<'t, str> {
    if indent.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_start = starts || index > 0;
        // Lines of blanks may have less.
        let same = line.bytes().zip(indent.bytes()).take_while(|(one, other)| one == other).count();
        out.push_str(if is_start { &line[same..] } else { line });
    }
    Cow::Owned(out)
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
