//! Positions in source text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// Range of bytes in a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Position of the first byte.
    pub start: usize,
    /// Position after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the range from `start` up to `end`, without `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the smallest span that covers both spans.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self::new(self.start.min(other.start), self.end.max(other.end))
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// Text with a name and the positions of its lines.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "(String, String)")]
pub struct Source {
    name: Arc<str>,
    text: String,
    line_starts: Vec<usize>,
}

impl fmt::Debug for Source {
    /// Formats the name only, because the text would hide everything else.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Source({:?})", self.name)
    }
}

impl Serialize for Source {
    /// Serializes the name and the text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.name, &self.text).serialize(serializer)
    }
}

impl From<(String, String)> for Source {
    fn from((name, text): (String, String)) -> Self {
        Self::new(&name, text)
    }
}

impl Source {
    /// Creates a source with a `name` for messages and logs.
    pub fn new(name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// Returns the name, usually the path of a file.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of the line with byte `at`, from 1.
    pub fn line(&self, at: usize) -> u32 {
        u32::try_from(self.line_starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    /// Returns the text of line `number` (from 1), without its line ending; empty if there is no
    /// such line.
    pub fn line_text(&self, number: u32) -> &str {
        match self.line_starts.get((number as usize).wrapping_sub(1)) {
            Some(_) => &self.text[Range::from(self.line_span(number))],
            None => "",
        }
    }

    /// Returns the range of bytes of line `number` (from 1), without its line ending.
    ///
    /// # Panics
    ///
    /// Panics if there is no such line.
    pub fn line_span(&self, number: u32) -> Span {
        let index = number as usize - 1;
        let start = self.line_starts[index];
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        Span::new(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_one_and_exclude_their_ending() {
        let source = Source::new("s", "ab\r\ncd\n");
        assert_eq!((source.line(0), source.line(3), source.line(4), source.line(7)), (1, 1, 2, 3));
        assert_eq!(source.line_span(1), Span::new(0, 2));
        assert_eq!(source.line_span(2), Span::new(4, 6));
        assert_eq!(source.line_span(3), Span::new(7, 7));
    }
}
