//! Where the bodies of here-documents are.

use std::collections::HashMap;

use crate::span::Span;

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
    pub(super) fn take(&mut self, delimiter: &str) -> Option<Span> {
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
