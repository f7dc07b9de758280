//! State of a relay, which forwards the output of branches line by line. Also the escaping of words
//! as fields.

use std::fmt::Write;

use crate::effect::OperationId;

/// Relay of the output of a `forall`.
#[derive(Debug)]
pub struct Relay {
    /// Id of the relay's operation, which ends with the relay.
    pub operation: OperationId,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Branches run, or may still begin.
    Open,
    /// All branches have ended, and the rest of their output is being written.
    Finishing,
    /// All output is written, writing failed, or the relay was abandoned.
    Done,
}

impl Relay {
    /// Creates an open relay.
    pub fn new(operation: OperationId) -> Self {
        Self { operation, progress: Progress::Open }
    }

    /// Finishes the relay, because no more branches begin. Returns false if already finished.
    pub fn finish(&mut self) -> bool {
        let is_news = self.progress == Progress::Open;
        if is_news {
            self.progress = Progress::Finishing;
        }
        is_news
    }

    /// Ends the relay. Returns false if already ended.
    pub fn end(&mut self) -> bool {
        std::mem::replace(&mut self.progress, Progress::Done) != Progress::Done
    }

    /// Returns true if the relay is not awaited any more.
    pub fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }
}

/// Escapes a word as a field of a line, from which `printf %b` restores the word. A backslash
/// becomes `\\`, a newline `\n`, a tab `\t`, a carriage return `\r`. Every byte of another control
/// character, or outside UTF-8, becomes `\x` with two hexadecimal digits.
pub fn field(word: &[u8]) -> String {
    let mut field = String::with_capacity(word.len());
    let hex = |field: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a string cannot fail.
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
