//! Escaping of words as fields of a line.

use std::fmt::Write;

/// Escapes a word as a field of a line, from which `printf %b` restores the word. A backslash
/// becomes `\\`, a newline `\n`, a tab `\t`, a carriage return `\r`. Every byte of another control
/// character, or outside UTF-8, becomes `\x` with two hexadecimal digits.
pub fn escape_field(word: &[u8]) -> String {
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
    fn any_word_is_one_field() {
        assert_eq!(escape_field("a é".as_bytes()), "a é");
        assert_eq!(escape_field(b"a\\nb\nc"), r"a\\nb\nc");
        assert_eq!(escape_field(b"\ta\rb\x1b\x7f\xff\xc2\x85"), r"\ta\rb\x1b\x7f\xff\xc2\x85");
    }
}
