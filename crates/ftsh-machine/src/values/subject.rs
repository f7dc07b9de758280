//! Texts searched by regular expressions. An expression matches characters, and a byte that is not
//! UTF-8 counts as the character U+FFFD. Otherwise `.` and `[^/]` would silently skip such a byte.

use std::ops::{Deref, Range};

use bstr::{BStr, BString, ByteSlice};

use super::{size, value_error::ValueError};

/// Character in place of a byte that is not UTF-8.
const STAND_IN: &str = "\u{FFFD}";

/// Text with the searchable form of the text.
#[derive(Debug)]
pub(crate) struct Subject<T> {
    text: T,
    decoded: Option<Decoded>,
}

/// Text with a stand-in for each byte that is not UTF-8.
#[derive(Debug)]
struct Decoded {
    text: BString,
    /// Positions of the stand-ins, ascending.
    stand_ins: Vec<usize>,
}

impl<T: Deref<Target: AsRef<[u8]>>> Subject<T> {
    /// Prepares a text for a pattern. A pattern with bytes, such as `(?-u:\xFF)`, searches the
    /// original text.
    ///
    /// # Errors
    ///
    /// One line for people, if memory is short.
    pub(crate) fn new(text: T, pattern: &BStr) -> Result<Self, ValueError> {
        let bytes = (*text).as_ref();
        let matches_bytes = || pattern.to_str().is_ok_and(|it| regex::Regex::new(it).is_err());
        let decoded = if bytes.is_utf8() || matches_bytes() { None } else { Some(decode(bytes)?) };
        Ok(Self { text, decoded })
    }

    /// Returns the text to search.
    pub(crate) fn searched(&self) -> &[u8] {
        self.decoded.as_ref().map_or((*self.text).as_ref(), |decoded| &decoded.text)
    }

    /// Returns the part of the original text at a range of the searched text.
    pub(crate) fn original(&self, range: Range<usize>) -> &[u8] {
        let range = match &self.decoded {
            Some(decoded) => decoded.position(range.start)..decoded.position(range.end),
            None => range,
        };
        (*self.text).as_ref().get(range).unwrap_or_default()
    }
}

impl Decoded {
    /// Converts a position between characters to a position in the original text.
    fn position(&self, at: usize) -> usize {
        at - (STAND_IN.len() - 1) * self.stand_ins.partition_point(|stand_in| *stand_in < at)
    }
}

fn decode(bytes: &[u8]) -> Result<Decoded, ValueError> {
    let count: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    let length = bytes.len() + (STAND_IN.len() - 1) * count;
    if !size::can_allocate(length + count * size_of::<usize>()) {
        return Err(ValueError::NoRoom(length));
    }
    let (mut text, mut stand_ins) = (Vec::with_capacity(length), Vec::with_capacity(count));
    for chunk in bytes.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        for _ in chunk.invalid() {
            stand_ins.push(text.len());
            text.extend_from_slice(STAND_IN.as_bytes());
        }
    }
    Ok(Decoded { text: text.into(), stand_ins })
}

#[cfg(test)]
mod tests {
    use regex::bytes::Regex;

    use super::*;

    /// Returns the first match, in the original text.
    fn first<'t>(text: &'t [u8], pattern: &str) -> Option<&'t [u8]> {
        let subject = Subject::new(text, pattern.into()).expect("memory");
        let found = Regex::new(pattern).expect("a pattern").find(subject.searched())?.range();
        let (start, length) =
            (subject.original(0..found.start).len(), subject.original(found).len());
        Some(&text[start..start + length])
    }

    #[test]
    fn a_byte_that_is_not_utf_8_counts_as_a_character() {
        for (text, pattern, found) in [
            (&b"bad\xff\xfe.txt"[..], "([^/]*)$", Some(&b"bad\xff\xfe.txt"[..])),
            (b"a/bad\xff\xfe.txt", "[^/]*$", Some(b"bad\xff\xfe.txt")),
            (b"\xff\xfe", "^..$", Some(b"\xff\xfe")),
            (b"\xff\xfe", "^.$", None),
            (b"x\xffy", r"\W", Some(b"\xff")),
            (b"x\xffy", r"\w$", Some(b"y")),
            (b"x\xff y", r"\S+", Some(b"x\xff")),
            (b"x\xffy", "[a-z]+$", Some(b"y")),
            // Whole characters stay whole.
            ("é\u{e9}".as_bytes(), "^..$", Some("éé".as_bytes())),
            (b"\xc3\xa9\xff", "^..$", Some(b"\xc3\xa9\xff")),
            (b"\xc3\xa9b\xff", "[^é]+", Some(b"b\xff")),
            (b"\xe9t\xe9", "^.t.$", Some(b"\xe9t\xe9")),
            (b"\xff\xc3\xa9\xffz", "é.", Some(b"\xc3\xa9\xff")),
            // A truncated character.
            (b"a\xe2\x82", "^a..$", Some(b"a\xe2\x82")),
            // Patterns with bytes.
            (b"a\xff\xfe", r"(?-u:\xfe)", Some(b"\xfe")),
            (b"a\xc3\xa9\xfe", r"(?-u)^....$", Some(b"a\xc3\xa9\xfe")),
        ] {
            assert_eq!(first(text, pattern), found, "{} {pattern}", text.as_bstr());
        }
    }
}
