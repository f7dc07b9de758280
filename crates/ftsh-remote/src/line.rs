//! Lines of a node among the output of its branch. Each has a mark with the nonce, a letter, a
//! checksum, and bytes as hexadecimal digits.

use std::fmt::Write;

use super::nonce::Nonce;

/// First bytes of each line, before the nonce. No terminal displays the first byte, and no text
/// contains the byte.
const MARK: &str = "\x1eftsh:";
/// Letter of a record.
pub(crate) const RECORD: char = 'r';
/// Letter of a request for more time.
pub(crate) const REQUEST: char = 'l';
/// Letter of the message that *go* came too late.
pub(crate) const TOO_LATE: char = 't';

/// Returns the first bytes of a node's line.
pub(crate) fn prefix(nonce: &Nonce) -> String {
    format!("{MARK}{nonce}:")
}

/// Returns the line which reports that *go* came after the end of the lease. The branch does not
/// begin.
pub fn too_late(nonce: &Nonce) -> String {
    write(nonce, TOO_LATE, &[])
}

/// Encodes bytes as a line.
pub(crate) fn write(nonce: &Nonce, kind: char, content: &[u8]) -> String {
    let mut line = format!("{}{kind}{:08x}", prefix(nonce), checksum(kind as u8, content));
    for byte in content {
        // Writing to a string cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line.push('\n');
    line
}

/// Decodes the letter and the bytes of a line, without prefix and line break. Returns none if the
/// line is damaged.
pub(crate) fn read(line: &[u8]) -> Option<(char, Vec<u8>)> {
    let (kind, rest) = line.split_first()?;
    if rest.len() % 2 != 0 {
        return None;
    }
    let digit = |byte: &u8| Some(char::from(*byte).to_digit(16)? as u8);
    let byte = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
    let bytes: Vec<u8> = rest.chunks(2).map(byte).collect::<Option<_>>()?;
    let (expected, content) = bytes.split_first_chunk::<4>()?;
    let is_whole = u32::from_be_bytes(*expected) == checksum(*kind, content);
    is_whole.then(|| (char::from(*kind), content.to_vec()))
}

/// Returns the checksum of a letter and bytes.
fn checksum(kind: u8, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(content);
    hasher.finalize()
}
