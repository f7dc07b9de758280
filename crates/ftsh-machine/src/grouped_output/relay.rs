//! What is known of a relay, which writes on what branches print, line by line; and words as fields.

use std::fmt::Write;

use crate::effect::OperationId;

/// What writes on what the branches of a `forall` print.
#[derive(Debug)]
pub struct Relay {
    /// Its name, and what tells of its end.
    pub operation: OperationId,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There are branches, or there may be.
    Open,
    /// All have ended, and what they printed is being written.
    Finishing,
    /// All is written, can't be, or is somebody else's matter.
    Done,
}

impl Relay {
    /// It begins.
    pub fn new(operation: OperationId) -> Self {
        Self { operation, progress: Progress::Open }
    }

    /// No more branches begin; says whether that is news.
    pub fn finish(&mut self) -> bool {
        let is_news = self.progress == Progress::Open;
        if is_news {
            self.progress = Progress::Finishing;
        }
        is_news
    }

    /// There is nothing to wait for any more; says whether that is news.
    pub fn end(&mut self) -> bool {
        std::mem::replace(&mut self.progress, Progress::Done) != Progress::Done
    }

    /// Whether there is nothing to wait for.
    pub fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }
}

/// Returns a word as one field of a line, from which `printf %b` makes the word again: a backslash is
/// `\\`, a newline `\n`, a tab `\t`, a carriage return `\r`, and every byte of another control
/// character or that is not UTF-8 `\x` with two hexadecimal digits.
pub fn field(word: &[u8]) -> String {
    let mut field = String::with_capacity(word.len());
    let hex = |field: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a string can't fail.
            let _ = write!(field, r"\x{byte:02x}");
        }
    };
    for chunk in word.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => field.push_str(r"\\"),
                '\n' => field.push_str(r"\n"),
                '\t' => field.push_str(r"\t"),
                '\r' => field.push_str(r"\r"),
                _ if character.is_control() => {
                    hex(&mut field, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => field.push(character),
            }
        }
        hex(&mut field, chunk.invalid());
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_field_whatever_it_holds() {
        assert_eq!(field("a é".as_bytes()), "a é");
        assert_eq!(field(b"a\\nb\nc"), r"a\\nb\nc");
        assert_eq!(field(b"\ta\rb\x1b\x7f\xff\xc2\x85"), r"\ta\rb\x1b\x7f\xff\xc2\x85");
    }
}
