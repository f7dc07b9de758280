//! Escaping of words as fields of a line.

use std::fmt::Write;

use bstr::BString;

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

/// Text after the rest of a line whose writer ended too early. With it no line is a field, whatever
/// the rest is.
pub const TORN: &[u8] = b"?\\?";

/// Returns the word of a field, or none if the field is not the escaped form of a word.
pub(crate) fn unescape_field(field: &[u8]) -> Option<BString> {
    let (mut word, mut rest) = (Vec::with_capacity(field.len()), field);
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            word.push(*first);
            continue;
        }
        let (name, after) = rest.split_first()?;
        rest = after;
        word.push(match name {
            b'\\' => b'\\',
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'x' => {
                let (digits, after) = rest.split_first_chunk::<2>()?;
                rest = after;
                let digits = digits.map(|digit| char::from(digit).to_digit(16));
                (digits[0]? * 16 + digits[1]?) as u8
            }
            _ => return None,
        });
    }
    Some(word.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_is_one_field() {
        assert_eq!(escape_field("a é".as_bytes()), "a é");
        assert_eq!(escape_field(b"a\\nb\nc"), r"a\\nb\nc");
        assert_eq!(unescape_field(b"\\"), None);
        assert_eq!(escape_field(b"\ta\rb\x1b\x7f\xff\xc2\x85"), r"\ta\rb\x1b\x7f\xff\xc2\x85");
    }
    #[test]
    fn a_field_gives_the_word_back() {
        let words: [&[u8]; 6] =
            [b"", b"a b", b"\\x41", b"a\n\t\r\\", b"\x00\x1b\xff\xc3", "é\u{85}".as_bytes()];
        for word in words {
            let field = escape_field(word);
            assert_eq!(unescape_field(field.as_bytes()), Some(word.into()), "{field}");
            // The end of an incomplete line never turns the line into a word.
            for end in 0..=field.len() {
                let torn = [&field.as_bytes()[..end], TORN].concat();
                assert_eq!(unescape_field(&torn), None, "{field}");
            }
        }
    }
}
