//! Assembly of tagged lines from pieces of output.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

/// Length of the beginning of a line that is held. Longer lines are forwarded in parts.
const MAX_HELD_LINE: usize = 64 * 1024;

/// Output of one source.
#[derive(Debug)]
pub(crate) struct LineAssembler {
    /// Tag of the lines; none if output is forwarded unchanged.
    tag: Option<Arc<BString>>,
    /// Beginning of an incomplete line.
    held: Vec<u8>,
    /// True after the beginning of a long line was forwarded. Other output must wait for its end.
    is_open: bool,
}

impl LineAssembler {
    /// Creates an empty state. Without a tag, lines do not matter.
    pub(crate) fn new(tag: Option<Arc<BString>>) -> Self {
        Self { tag, held: Vec::new(), is_open: false }
    }

    /// True if an incomplete line was forwarded.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Adds output, and appends the complete lines to `out`.
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.tag.is_none() {
            return out.extend_from_slice(bytes);
        }
        for piece in bytes.lines_with_terminator() {
            let is_end = piece.ends_with(b"\n");
            if self.is_open {
                out.extend_from_slice(piece);
                self.is_open = !is_end;
                continue;
            }
            if self.held.is_empty() && is_end {
                self.begin(out);
                out.extend_from_slice(piece);
                continue;
            }
            self.held.extend_from_slice(piece);
            if is_end || self.held.len() > MAX_HELD_LINE {
                self.begin(out);
                out.append(&mut self.held);
                self.is_open = !is_end;
            }
        }
    }

    /// Completes an incomplete line with a newline.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            self.begin(out);
            out.append(&mut self.held);
            self.is_open = true;
        }
        if std::mem::take(&mut self.is_open) {
            out.push(b'\n');
        }
    }

    fn begin(&self, out: &mut Vec<u8>) {
        if let Some(tag) = &self.tag {
            out.extend_from_slice(tag);
            out.push(b'\t');
        }
    }
}

/// Returns as many whole lines from the beginning of `bytes` as fit into `most` bytes, but at least
/// one.
pub(crate) fn first_lines(bytes: &[u8], most: usize) -> &[u8] {
    let within = &bytes[..bytes.len().min(most)];
    let end = within.rfind_byte(b'\n').or_else(|| bytes.find_byte(b'\n'));
    &bytes[..end.map_or(bytes.len(), |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> LineAssembler {
        LineAssembler::new(Some(Arc::new("a".into())))
    }

    #[test]
    fn pieces_become_whole_lines() {
        let text = b"one\n\ntwo\xff\nthree";
        let expected = b"a\tone\na\t\na\ttwo\xff\na\tthree\n";
        for size in 1..=text.len() {
            let (mut lines, mut out) = (lines(), Vec::new());
            for piece in text.chunks(size) {
                lines.take(piece, &mut out);
                assert!(out.is_empty() || out.ends_with(b"\n"), "{:?}", out.as_bstr());
            }
            lines.end(&mut out);
            assert_eq!(out.as_bstr(), expected.as_bstr());
            lines.end(&mut out);
            assert_eq!(out.as_bstr(), expected.as_bstr(), "nothing is added twice");
        }
    }

    #[test]
    fn a_long_line_is_forwarded_in_pieces() {
        let (mut lines, mut out) = (lines(), Vec::new());
        let long = vec![b'x'; MAX_HELD_LINE];
        lines.take(&long, &mut out);
        assert!(out.is_empty() && !lines.is_open());
        for (piece, is_open) in [(&b"yy"[..], true), (b"z", true), (b"\nshort\nsh", false)] {
            lines.take(piece, &mut out);
            assert_eq!(lines.is_open(), is_open);
        }
        lines.end(&mut out);
        let expected = [b"a\t", &long[..], b"yyz\na\tshort\na\tsh\n"].concat();
        assert!(out == expected);
        lines.take(&long, &mut out);
        lines.take(&long, &mut out);
        assert!(lines.is_open());
        out.clear();
        lines.end(&mut out);
        assert_eq!(out, b"\n");
        assert!(!lines.is_open());
    }

    #[test]
    fn as_many_lines_as_there_is_room_for() {
        assert_eq!(first_lines(b"ab\ncd\nef", 7), b"ab\ncd\n");
        assert_eq!(first_lines(b"ab\ncd\nef", 3), b"ab\n");
        assert_eq!(first_lines(b"abcdef\ng", 3), b"abcdef\n");
        assert_eq!(first_lines(b"abcdef", 3), b"abcdef");
        assert_eq!(first_lines(b"", 3), b"");
    }
}
