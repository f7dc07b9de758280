//! Learned limits: their places and keys.

use std::fmt;
use std::time::Duration;

use ftsh_syntax::ast::Name;

/// Key of a learned limit in the history of its file.
///
/// The key depends on the source text of the head without `or D`, on the function around it, and on
/// the number of equal heads before it there. Values of variables are no part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey(u64);

impl LimitKey {
    /// Parses 16 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_key = text.len() == 16 && text.bytes().all(is_digit);
        is_key.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self)
    }

    /// Returns the key of a head.
    fn of(head: &str, function: Option<&str>, ordinal: usize) -> Self {
        let ordinal = ordinal.to_string();
        let parts = [function.unwrap_or_default(), ordinal.as_str(), head];
        Self(digest(parts.join("\0").as_bytes()))
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Returns a digest of bytes by FNV-1a, which stays the same in all versions.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A learned limit of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedLimit {
    /// Key in the history of the file.
    pub key: LimitKey,
    /// Position of the head in the source.
    pub start: usize,
    /// Line of the head.
    pub line: u32,
    /// Source text of the head without `or D`, with single blanks.
    pub head: String,
    /// Function around the head.
    pub function: Option<Name>,
    /// True for `hedge after usual`.
    pub is_hedge: bool,
    /// Length after `or`, if the script holds the length literally.
    pub most: Option<Duration>,
}

/// Learned limits found so far.
#[derive(Debug, Default)]
pub(crate) struct LimitFinder {
    pub found: Vec<LearnedLimit>,
    /// Function whose body is searched.
    pub function: Option<Name>,
}

impl LimitFinder {
    /// Adds the limit of the head from `start` on, in two parts around `or D`.
    pub(crate) fn add(
        &mut self,
        (start, line): (usize, u32),
        (before, after): (&str, &str),
        is_hedge: bool,
        most: Option<Duration>,
    ) -> LimitKey {
        let words = before.split_whitespace().chain(after.split_whitespace());
        let head = words.filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
        let function = self.function.clone();
        let is_equal = |it: &&LearnedLimit| it.head == head && it.function == function;
        let ordinal = self.found.iter().filter(is_equal).count();
        let key = LimitKey::of(&head, function.as_deref(), ordinal);
        self.found.push(LearnedLimit { key, start, line, head, function, is_hedge, most });
        key
    }
}
