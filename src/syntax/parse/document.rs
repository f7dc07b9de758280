//! Here-documents: `<<WORD` and the lines up to `WORD`.

use std::collections::HashMap;

use pest::Parser;

use super::builder::Builder;
use super::{Grammar, Result, Rule, expected, literal};
use crate::syntax::ast::{Part, Target, Word};
use crate::syntax::error::SyntaxError;
use crate::syntax::span::Span;

/// Where here-documents are.
pub(super) struct Documents<'s> {
    text: &'s str,
    /// Where the next one begins: after the line that names it, or after the one before.
    pub(super) at: usize,
    /// Whether one never ends: then there is nothing but its text to come.
    pub(super) endless: bool,
    /// Where the lines of each text begin; made when first needed.
    lines: Option<HashMap<&'s str, Vec<usize>>>,
}

impl<'s> Documents<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self { text, at: 0, endless: false, lines: None }
    }

    /// Takes the lines up to the one that is `delimiter`; says where they are.
    fn take(&mut self, delimiter: &str) -> Option<Span> {
        let text = self.text;
        let places = self.lines.get_or_insert_with(|| index(text)).get(delimiter)?;
        let end = *places.get(places.partition_point(|place| *place < self.at))?;
        let lines = Span::new(self.at, end);
        self.at = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
        Some(lines)
    }

    /// Passes over the here-documents of a line that couldn't be parsed, so that they aren't taken
    /// for commands.
    pub(super) fn pass(&mut self, line: &str) {
        for (at, operator) in line.match_indices("<<") {
            let rest = line[at + operator.len()..].trim_start_matches(['-', ' ', '\'', '"', '\\']);
            let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            if let Some(word) = word.filter(|word| !word.is_empty()) {
                self.take(word);
            }
        }
    }
}

fn index(text: &str) -> HashMap<&str, Vec<usize>> {
    let mut lines = HashMap::<_, Vec<_>>::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.entry(line.trim_end_matches(['\r', '\n'])).or_default().push(at);
        at += line.len();
    }
    lines
}

impl Builder<'_> {
    /// The target of `<<word` at `span`.
    pub(super) fn here_document(&mut self, span: Span, word: &Word) -> Result<Target> {
        let Some(delimiter) = literal::word(word).filter(|text| !text.contains('\n')) else {
            return Err(Box::new(
                SyntaxError::new(word.span, "the end of a here-document is a plain word")
                    .hint("`<<EOF` takes the lines up to one that is `EOF`"),
            ));
        };
        let Some(lines) = self.documents.take(&delimiter) else {
            self.documents.endless = true;
            return Err(Box::new(
                SyntaxError::new(span, "a here-document that never ends")
                    .label(format!("no line after this one is `{delimiter}`"))
                    .hint("the line that ends it holds nothing else, not even blanks"),
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
        Ok(Target::HereDocument { delimiter, body: Word { span: lines, parts: vec![part] } })
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
