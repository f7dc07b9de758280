//! Positions as editors count them: lines from 0, and UTF-16 code units in them from 0.

use lsp_types::{Position, Range};

use ftsh_syntax::Span;

/// Positions of the lines of a text.
#[derive(Debug)]
pub struct LineIndex {
    /// Spans of the lines without their endings, in order.
    spans: Vec<Span>,
}

impl LineIndex {
    /// Finds the lines of a text, which end with `
    /// `, `\r
    /// ` or `\r`.
    pub fn of(text: &str) -> Self {
        let mut spans = Vec::new();
        let mut start = 0;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let length = match byte {
                b'\r' if bytes.get(at + 1) == Some(&b'\n') => 2,
                b'\r' | b'\n' => 1,
                _ => {
                    at += 1;
                    continue;
                }
            };
            spans.push(Span::new(start, at));
            at += length;
            start = at;
        }
        spans.push(Span::new(start, text.len()));
        Self { spans }
    }

    /// Returns the byte offset of a position.
    ///
    /// A position after the end of a line or of the text is clamped to the end, and a position
    /// inside of a character to its start.
    pub fn offset(&self, text: &str, place: Position) -> usize {
        let Some(line) = self.spans.get(place.line as usize) else { return text.len() };
        let mut units = 0;
        for (at, c) in text[line.start..line.end].char_indices() {
            units += c.len_utf16();
            if units > place.character as usize {
                return line.start + at;
            }
        }
        line.end
    }

    /// Returns the position of a byte offset. An offset inside of a character or a line ending is
    /// rounded down.
    pub fn position(&self, text: &str, offset: usize) -> Position {
        let number = self.spans.partition_point(|line| line.start <= offset).saturating_sub(1);
        let line = self.spans[number];
        let before = text[line.start..line.end]
            .char_indices()
            .take_while(|(at, c)| line.start + at + c.len_utf8() <= offset);
        let units: usize = before.map(|(_, c)| c.len_utf16()).sum();
        Position::new(clamped(number), clamped(units))
    }

    /// Returns the positions of both ends of a span.
    pub fn range(&self, text: &str, span: Span) -> Range {
        Range::new(self.position(text, span.start), self.position(text, span.end.max(span.start)))
    }
}

fn clamped(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_units_of_utf16() {
        // Characters of one unit and one, two and three bytes, and a character of two units and
        // four bytes.
        let text = "aé世🦀b\n🦀";
        let lines = LineIndex::of(text);
        let offsets = [0, 1, 3, 6, 6, 10, 11, 11];
        for (column, offset) in offsets.into_iter().enumerate() {
            let place = Position::new(0, column as u32);
            assert_eq!(lines.offset(text, place), offset, "{column}");
        }
        let columns: Vec<u32> = [0, 1, 2, 3, 6, 7, 9, 10, 11]
            .map(|offset| lines.position(text, offset).character)
            .to_vec();
        assert_eq!(columns, [0, 1, 1, 2, 3, 3, 3, 5, 6]);
        assert_eq!(lines.position(text, 16), Position::new(1, 2));
        assert_eq!(lines.offset(text, Position::new(1, 1)), 12);
        assert_eq!(lines.offset(text, Position::new(7, 0)), text.len());
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = "a\r\nb\rc\n";
        let lines = LineIndex::of(text);
        let starts = [0, 1, 2, 3].map(|line| lines.offset(text, Position::new(line, 0)));
        assert_eq!(starts, [0, 3, 5, 7]);
        let ends = [0, 1, 2, 3].map(|line| lines.offset(text, Position::new(line, 9)));
        assert_eq!(ends, [1, 4, 6, 7]);
        assert_eq!(lines.position(text, 2), Position::new(0, 1));
    }

    proptest! {
        #[test]
        fn places_and_bytes_are_the_same(text in "[a\r\né世🦀]{0,12}") {
            let lines = LineIndex::of(&text);
            for (offset, c) in text.char_indices() {
                if c != '\n' || !text[..offset].ends_with('\r') {
                    prop_assert_eq!(lines.offset(&text, lines.position(&text, offset)), offset);
                }
            }
            prop_assert_eq!(lines.offset(&text, lines.position(&text, text.len())), text.len());
            // Every position is valid.
            for line in 0..14 {
                for column in 0..28 {
                    let offset = lines.offset(&text, Position::new(line, column));
                    prop_assert!(text.is_char_boundary(offset));
                }
            }
            for offset in 0..text.len() + 3 {
                lines.position(&text, offset);
            }
        }
    }
}
