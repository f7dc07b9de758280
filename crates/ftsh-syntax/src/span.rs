//! Places in source text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A range of bytes in a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
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

/// A named text and where its lines begin.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: String,
    line_starts: Vec<usize>,
}

impl fmt::Debug for Source {
    /// Its name: the text would hide everything else.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Source({:?})", self.name)
    }
}

impl Source {
    /// A source called `name` in messages and logs.
    pub fn new(name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, line_starts }
    }

    /// The name, usually a file's path.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of the line that holds byte `at`, from 1.
    pub fn line(&self, at: usize) -> u32 {
        u32::try_from(self.line_starts.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    /// The text of line `number` (from 1), without its line ending; empty if there is none.
    pub fn line_text(&self, number: u32) -> &str {
        match self.line_starts.get((number as usize).wrapping_sub(1)) {
            Some(_) => &self.text[Range::from(self.line_span(number))],
            None => "",
        }
    }

    /// The range of bytes of line `number` (from 1), without its line ending.
    ///
    /// # Panics
    ///
    /// If there is no such line.
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
