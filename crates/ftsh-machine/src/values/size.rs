//! How large values can be, and memory for them that may not be there.

use bstr::BString;
use thiserror::Error;

use crate::tasks::suspend::Suspend;

/// So much of what a failed attempt has written is told, in bytes.
pub const MOST_TOLD: usize = 64 * 1024;

/// How many bytes a value can have, and the words of a command together.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// How many words a command can have. The words of a loop are never all there at once.
pub const MOST_WORDS: usize = 1_000_000;
/// What a word takes besides its bytes, at most.
const PER_WORD: usize = 128;
/// What is smaller than this is there, or the shell is at its end anyway.
const SMALL: usize = 64 * 1024;

/// A value of so many bytes can't be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a value can have at most 64 MiB, and this one has {0} bytes")]
pub struct TooLong(pub usize);

fn check(bytes: usize) -> Result<(), Suspend> {
    if bytes > LONGEST { Err(Suspend::expression(TooLong(bytes))) } else { Ok(()) }
}

/// Why there is nothing.
pub fn none(bytes: usize) -> Suspend {
    Suspend::expression(format!("there is too little memory for {bytes} bytes"))
}

/// Adds bytes to a text, if it may be so long and there is memory.
pub fn append(text: &mut BString, bytes: &[u8]) -> Result<(), Suspend> {
    let length = text.len() + bytes.len();
    check(length)?;
    text.try_reserve(bytes.len()).map_err(|_| none(length))?;
    text.extend_from_slice(bytes);
    Ok(())
}

/// A copy.
pub fn copy(bytes: &[u8]) -> Result<BString, Suspend> {
    let mut text = BString::default();
    text.try_reserve_exact(bytes.len()).map_err(|_| none(bytes.len()))?;
    text.extend_from_slice(bytes);
    Ok(text)
}

/// The words with blanks between them, and `end`.
pub fn join<W: AsRef<[u8]>>(
    words: impl Iterator<Item = W> + Clone,
    end: &[u8],
) -> Result<BString, Suspend> {
    let length = words.clone().map(|word| word.as_ref().len() + 1).sum::<usize>() + end.len();
    check(length.saturating_sub(1))?;
    let mut text = BString::default();
    text.try_reserve_exact(length).map_err(|_| none(length))?;
    for (index, word) in words.enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(word.as_ref());
    }
    text.extend_from_slice(end);
    Ok(text)
}

/// Whether there is memory for the words that a text is about to be split into. Each is small, and
/// nobody can be told in the middle that there is none for the next.
pub fn room_for_words(text: &[u8]) -> Result<(), Suspend> {
    if text.len() < SMALL {
        return Ok(());
    }
    let begins = |pair: &[u8]| pair[0].is_ascii_whitespace() && !pair[1].is_ascii_whitespace();
    let words = 1 + text.windows(2).filter(|pair| begins(pair)).count();
    if words > MOST_WORDS {
        return Err(too_many_words());
    }
    let bytes = text.len() + words * PER_WORD;
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| none(bytes))
}

/// Why a command can't have so many words.
pub fn too_many_words() -> Suspend {
    Suspend::expression(format!(
        "a command can have at most {MOST_WORDS} words; a for loop can go through more"
    ))
}

/// Whether there is memory for so many bytes.
pub fn is_to_be_had(bytes: usize) -> bool {
    bytes < SMALL || Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}
