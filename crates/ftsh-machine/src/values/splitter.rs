//! Lazy splitting of a text into the words of a loop's list, which may be millions.

use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::value_error::ValueError;

/// Text with the delimiter of its words.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    text: Arc<BString>,
    delimiter: Delimiter,
}

/// Delimiter of the words of a text.
#[derive(Clone, Debug)]
enum Delimiter {
    /// White space of any length.
    Blanks,
    /// Terminator of each word, optional after the last.
    Ends(&'static [u8]),
    /// Separator between words, which may be empty.
    Between(Arc<BString>),
}

impl Splitter {
    /// Splits a text into words at blanks.
    pub(crate) fn words(text: Arc<BString>) -> Self {
        Self { text, delimiter: Delimiter::Blanks }
    }

    /// Splits a text into lines.
    pub(crate) fn lines(text: Arc<BString>) -> Self {
        Self { text, delimiter: Delimiter::Ends(b"\n") }
    }

    /// Splits a text at a separator; an empty text has no pieces. A NUL terminates pieces, as in
    /// lists written by `find -print0`.
    ///
    /// # Errors
    ///
    /// Fails if the separator is empty.
    pub(crate) fn split(text: Arc<BString>, separator: &[u8]) -> Result<Self, ValueError> {
        let delimiter = match separator {
            b"" => return Err(ValueError::NoSeparator),
            b"\\0" | b"\0" => Delimiter::Ends(b"\0"),
            b"\\n" => Delimiter::Between(Arc::new("\n".into())),
            b"\\t" => Delimiter::Between(Arc::new("\t".into())),
            separator => Delimiter::Between(Arc::new(separator.into())),
        };
        Ok(Self { text, delimiter })
    }

    /// Returns the next word from a position, and advances the position.
    pub(crate) fn next(&self, at: &mut u64) -> Option<&[u8]> {
        let start = *at as usize;
        let rest = self.text.get(start..)?;
        let (from, to, next) = match &self.delimiter {
            Delimiter::Blanks => {
                let from = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
                let length = rest[from..].iter().position(u8::is_ascii_whitespace);
                let to = length.map_or(rest.len(), |length| from + length);
                (from, to, to)
            }
            Delimiter::Ends(_) if rest.is_empty() => return None,
            Delimiter::Ends(end) => match rest.find(end) {
                Some(to) => (0, to, to + end.len()),
                None => (0, rest.len(), rest.len()),
            },
            Delimiter::Between(_) if self.text.is_empty() => return None,
            Delimiter::Between(separator) => match rest.find(&***separator) {
                Some(to) => (0, to, to + separator.len()),
                // The position past the end marks the end of the list.
                None => (0, rest.len(), rest.len() + 1),
            },
        };
        *at = (start + next) as u64;
        Some(&rest[from..to])
    }

    /// Returns the number of words.
    pub(crate) fn count(&self) -> u64 {
        let mut at = 0;
        std::iter::from_fn(|| self.next(&mut at)).count() as u64
    }

    /// Returns the only word.
    ///
    /// # Errors
    ///
    /// One line for people, if the text has no word or several words.
    pub(crate) fn only(&self) -> Result<&[u8], ValueError> {
        let mut at = 0;
        match (self.next(&mut at), self.next(&mut at)) {
            (Some(word), None) => Ok(word),
            (None, _) => Err(ValueError::NoWord),
            (_, Some(_)) => Err(ValueError::SeveralWords),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &Splitter) -> Vec<String> {
        let mut at = 0;
        std::iter::from_fn(|| pieces.next(&mut at).map(|it| it.as_bstr().to_string())).collect()
    }

    fn text(text: &str) -> Arc<BString> {
        Arc::new(text.into())
    }

    #[test]
    fn lines_are_ended() {
        let lines = |it: &str| all(&Splitter::lines(text(it)));
        assert_eq!(lines("a b\n\n c\r\n"), ["a b", "", " c\r"]);
        assert_eq!(lines("a\nb"), ["a", "b"]);
        assert_eq!(lines("\n"), [""]);
        assert!(lines("").is_empty());
    }

    #[test]
    fn separators_part_and_a_nul_ends() {
        let split = |it: &str, by: &[u8]| all(&Splitter::split(text(it), by).expect("a separator"));
        assert_eq!(split("a,,b,", b","), ["a", "", "b", ""]);
        assert_eq!(split(",", b","), ["", ""]);
        assert_eq!(split("a", b", "), ["a"]);
        assert_eq!(split("a, b,c", b", "), ["a", "b,c"]);
        assert_eq!(split("a\0b c\0\0", b"\\0"), ["a", "b c", ""]);
        assert_eq!(split("a\tb\n", b"\\t"), ["a", "b\n"]);
        assert!(split("", b",").is_empty());
        assert!(split("", b"\0").is_empty());
        assert!(Splitter::split(text("a"), b"").is_err());
    }

    #[test]
    fn the_only_word_is_one() {
        assert_eq!(Splitter::lines(text("a b\n")).only(), Ok(&b"a b"[..]));
        assert!(Splitter::lines(text("a\nb\n")).only().is_err());
        assert!(Splitter::lines(text("")).only().is_err());
    }
}
