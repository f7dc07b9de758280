//! Lines of a node's among what its branch prints: a mark with the nonce, a letter, a checksum, and bytes as
//! hexadecimal digits.

use std::fmt::Write;

use super::nonce::Nonce;

/// How each begins, before the nonce. No terminal shows it, and no text has it.
const MARK: &str = "\x1eftsh:";
/// What stands for a record.
pub const RECORD: char = 'r';
/// What stands for a request for more time.
pub const REQUEST: char = 'l';
/// What stands for the word to begin having come too late.
pub const TOO_LATE: char = 't';

/// How a line begins that a head takes for its node's.
pub fn prefix(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}:")
}

/// The line that tells that a branch doesn't begin: its lease was over when it was told to.
pub fn too_late(nonce: &Nonce) -> String {
    write(nonce, TOO_LATE, &[])
}

/// A line that holds these bytes.
pub fn write(nonce: &Nonce, kind: char, content: &[u8]) -> String {
    let mut line = format!("{}{kind}{:08x}", prefix(nonce), crc32fast::hash(content));
    for byte in content {
        // Writing to a string can't fail.
        let _ = write!(line, "{byte:02x}");
    }
    line.push('\n');
    line
}

/// What kind a line is and what it holds, between the prefix and its end, if it is whole.
pub fn read(line: &[u8]) -> Option<(char, Vec<u8>)> {
    let (kind, rest) = line.split_first()?;
    if rest.len() % 2 != 0 {
        return None;
    }
    let digit = |byte: &u8| Some(char::from(*byte).to_digit(16)? as u8);
    let byte = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
    let bytes: Vec<u8> = rest.chunks(2).map(byte).collect::<Option<_>>()?;
    let (checksum, content) = bytes.split_first_chunk::<4>()?;
    let is_whole = u32::from_be_bytes(*checksum) == crc32fast::hash(content);
    is_whole.then(|| (char::from(*kind), content.to_vec()))
}
