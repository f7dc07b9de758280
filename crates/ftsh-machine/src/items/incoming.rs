//! Words of standard input that are still to come.

use bstr::{BString, ByteSlice};

use crate::effect::OperationId;

/// Input that becomes words of a loop as it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    /// Bytes that end a word.
    end: BString,
    /// True if an empty word is no word.
    skips_empty: bool,
    /// Beginning of a word whose end has not come.
    begun: Vec<u8>,
    /// Request for more that was made and is not answered.
    pub asked: Option<OperationId>,
}

impl Incoming {
    /// Creates an input whose words are lines. Empty lines are skipped.
    pub(crate) fn lines() -> Self {
        Self { end: "\n".into(), skips_empty: true, begun: Vec::new(), asked: None }
    }

    /// Creates an input whose words end with this text, in which `\0`, `\n` and `\t` are a NUL, a newline
    /// and a tab. None if the text is empty.
    pub(crate) fn ending_with(text: &[u8]) -> Option<Self> {
        let mut end = BString::from(text.replace(r"\0", b"\0"));
        for (written, meant) in [(r"\n", b"\n"), (r"\t", b"\t")] {
            end = end.replace(written, meant).into();
        }
        (!end.is_empty()).then(|| Self { end, skips_empty: false, ..Self::lines() })
    }

    /// Returns the bytes that end a word.
    pub(crate) fn end(&self) -> &BString {
        &self.end
    }

    /// Adds the words that end in this input.
    pub(crate) fn take(&mut self, bytes: &[u8], words: &mut Vec<BString>) {
        // The end of a word may have come in two parts.
        let mut from = self.begun.len().saturating_sub(self.end.len() - 1);
        self.begun.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(at) = self.begun[from..].find(&*self.end) {
            let word = &self.begun[start..from + at];
            if !(self.skips_empty && word.is_empty()) {
                words.push(word.into());
            }
            start = from + at + self.end.len();
            from = start;
        }
        self.begun.drain(..start);
    }

    /// Returns the last word at the end of the input, which may lack its end.
    pub(crate) fn last(self) -> Option<BString> {
        (!self.begun.is_empty()).then(|| self.begun.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(mut incoming: Incoming, text: &[u8], size: usize) -> Vec<BString> {
        let mut words = Vec::new();
        text.chunks(size).for_each(|piece| incoming.take(piece, &mut words));
        words.extend(incoming.last());
        words
    }

    #[test]
    fn words_are_the_same_however_they_come() {
        let split = |by: &[u8]| Incoming::ending_with(by).expect("a separator");
        for size in 1..=12 {
            assert_eq!(
                words(Incoming::lines(), b"a b\n\n\xff\r\nc", size),
                ["a b", "\u{0}", "c"].map(|word| if word == "\0" {
                    BString::from(&b"\xff\r"[..])
                } else {
                    word.into()
                })
            );
            assert_eq!(words(split(br"\0"), b"a\0\0b\n\0", size), ["a", "", "b\n"]);
            assert_eq!(words(split(b"--"), b"a--b---c-", size), ["a", "b", "-c-"]);
        }
        assert!(words(Incoming::lines(), b"", 1).is_empty());
        assert!(Incoming::ending_with(b"").is_none());
    }
}
