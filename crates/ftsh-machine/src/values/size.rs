//! Size limits of values, and checks for available memory.

use bstr::BString;
use thiserror::Error;

use super::suspend::Suspend;
use ftsh_syntax::slug::Slug;

pub use crate::outcome::MAX_VALUE_LEN;

/// Maximum length of a failed attempt's output kept for messages, in bytes.
pub const MAX_REPORTED_OUTPUT: usize = 64 * 1024;

/// Maximum number of lines of a failed attempt in the log and in reports.
pub const MAX_REPORTED_LINES: usize = 5;

/// Maximum number of words of a command. The words of a loop are generated lazily.
pub const MAX_WORDS: usize = 1_000_000;
/// Maximum overhead of a word in memory, in bytes.
const WORD_OVERHEAD: usize = 128;
/// Size below which memory is not checked. Without so little memory the shell cannot continue
/// anyway.
const UNCHECKED_SIZE: usize = 64 * 1024;

/// Error of a value that exceeds the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a value can have at most 64 MiB, and this one has {0} bytes")]
pub struct ValueTooLong(pub usize);

impl From<ValueTooLong> for Suspend {
    fn from(error: ValueTooLong) -> Self {
        Self::expression(Slug::LargeValue, error)
    }
}

fn check(bytes: usize) -> Result<(), Suspend> {
    if bytes > MAX_VALUE_LEN { Err(Suspend::from(ValueTooLong(bytes))) } else { Ok(()) }
}

/// Returns the failure of a missing allocation.
pub fn no_memory(bytes: usize) -> Suspend {
    Suspend::expression(Slug::NoMemory, format!("there is too little memory for {bytes} bytes"))
}

/// Appends bytes to a text.
///
/// # Errors
///
/// Fails if the text would become too long, or memory is short.
pub fn append(text: &mut BString, bytes: &[u8]) -> Result<(), Suspend> {
    let length = text.len() + bytes.len();
    check(length)?;
    text.try_reserve(bytes.len()).map_err(|_| no_memory(length))?;
    text.extend_from_slice(bytes);
    Ok(())
}

/// Copies bytes. Fails if memory is short.
pub fn copy(bytes: &[u8]) -> Result<BString, Suspend> {
    let mut text = BString::default();
    text.try_reserve_exact(bytes.len()).map_err(|_| no_memory(bytes.len()))?;
    text.extend_from_slice(bytes);
    Ok(text)
}

/// Joins words with blanks, and appends `end`.
pub fn join<W: AsRef<[u8]>>(
    words: impl Iterator<Item = W> + Clone,
    end: &[u8],
) -> Result<BString, Suspend> {
    let length = words.clone().map(|word| word.as_ref().len() + 1).sum::<usize>() + end.len();
    check(length.saturating_sub(1))?;
    let mut text = BString::default();
    text.try_reserve_exact(length).map_err(|_| no_memory(length))?;
    for (index, word) in words.enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(word.as_ref());
    }
    text.extend_from_slice(end);
    Ok(text)
}

/// Checks the memory for the words of a text before the text is split. Each word is a small
/// allocation, whose failure could not be reported.
pub fn room_for_words(text: &[u8]) -> Result<(), Suspend> {
    if text.len() < UNCHECKED_SIZE {
        return Ok(());
    }
    let begins = |pair: &[u8]| pair[0].is_ascii_whitespace() && !pair[1].is_ascii_whitespace();
    let words = 1 + text.windows(2).filter(|pair| begins(pair)).count();
    if words > MAX_WORDS {
        return Err(too_many_words());
    }
    let bytes = text.len() + words * WORD_OVERHEAD;
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| no_memory(bytes))
}

/// Returns the failure of a command with too many words.
pub fn too_many_words() -> Suspend {
    Suspend::expression(
        Slug::LargeValue,
        format!("a command can have at most {MAX_WORDS} words; a for loop can go through more"),
    )
}

/// Returns true if an allocation of `bytes` would succeed.
pub fn can_allocate(bytes: usize) -> bool {
    bytes < UNCHECKED_SIZE || Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}
