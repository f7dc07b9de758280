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
    lines: Option<LineIndex<'s>>,
    /// Positions of lines by their text without indentation, built on first use.
    indented_lines: Option<LineIndex<'s>>,
}

impl<'s> Documents<'s> {
    pub(super) fn new(text: &'s str) -> Self {
        Self { text, at: 0, endless: false, lines: None, indented_lines: None }
    }

    /// Returns the span of the lines before `delimiter`, and advances to the line after it. If
    /// `indented`, blanks may precede the delimiter.
    pub(super) fn take(&mut self, delimiter: &str, indented: bool) -> Option<Span> {
        let text = self.text;
        let lines = if indented { &mut self.indented_lines } else { &mut self.lines };
        let places = lines.get_or_insert_with(|| index(text, indented)).get(delimiter)?;
        let end = *places.get(places.partition_point(|place| *place < self.at))?;
        let lines = Span::new(self.at, end);
        self.at = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
        Some(lines)
    }

    /// Skips the here-documents of a line that does not parse, so that their lines are not parsed
    /// as commands.
    pub(super) fn pass(&mut self, line: &str) {
        for (at, operator) in line.match_indices("<<") {
            let rest = &line[at + operator.len()..];
            let indented = rest.starts_with('-');
            let rest = rest.trim_start_matches(['-', ' ', '\'', '"', '\\']);
            let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            if let Some(word) = word.filter(|word| !word.is_empty()) {
                self.take(word, indented);
            }
        }
    }
}

/// Positions of lines by their text.
type LineIndex<'s> = HashMap<&'s str, Vec<usize>>;

fn index(text: &str, indented: bool) -> LineIndex<'_> {
    let mut lines = LineIndex::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        let content = if indented { content.trim_start_matches([' ', '\t']) } else { content };
        lines.entry(content).or_default().push(at);
        at += line.len();
    }
    lines
}
