//! Positions of the bodies of here-documents.

use std::collections::HashMap;

use crate::span::Span;

/// Index of a text by its lines, for the delimiters of here-documents.
pub(super) struct Documents<'s> {
    text: &'s str,
    /// Position of the next here-document: after its line, or after the previous document.
    pub(super) at: usize,
    /// True if a here-document is unterminated; the rest of the text is then its body.
    pub(super) endless: bool,
    /// Positions of lines by their text, built on first use.
    lines: Option<HashMap<&'s str, Vec<usize>>>,
}

impl<'s> Documents<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self { text, at: 0, endless: false, lines: None }
    }

    /// Returns the span of the lines before `delimiter`, and advances to the line after it.
    pub(super) fn take(&mut self, delimiter: &str) -> Option<Span> {
        let text = self.text;
        let places = self.lines.get_or_insert_with(|| index(text)).get(delimiter)?;
        let end = *places.get(places.partition_point(|place| *place < self.at))?;
        let lines = Span::new(self.at, end);
        self.at = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
        Some(lines)
    }

    /// Skips the here-documents of a line that does not parse, so that their lines are not parsed
    /// as commands.
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
