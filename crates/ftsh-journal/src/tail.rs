//! What is behind a frame that isn't whole: nothing, unless the file is damaged.
//!
//! Good frames could begin at any byte there, be as long as they like, and what a torn frame was to hold may be
//! anything. To make a checksum of each that is thinkable would take hours for some megabytes of it. So sums
//! are made once, from the beginning up to every few bytes, and those of the parts come of them by arithmetic.

use std::ops::Range;

use crc32fast::Hasher;

use super::entry::Head;
use super::frame::{self, HEAD, salt};

/// The polynomial of the checksums, the lowest power first.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// 1, and the eighth power: what a byte more comes to.
const ONE: u32 = 1 << 31;
const BYTE: u32 = 1 << 23;
/// So many bytes have one sum.
const PIECE: usize = 64;
/// Powers for lengths below this are at hand, and for its multiples.
const SHORT: usize = 4096;
/// What a frame holds at least: its head.
const LEAST: usize = HEAD + 3;

/// Where the first good frame begins behind the one at `at`, which isn't: one that was written later than the
/// last good one. What is older is a copy, as a script can make of its own journal.
pub fn later(bytes: &[u8], run: u64, at: usize, last: Option<Head>) -> Option<usize> {
    // No frame begins in the room behind them.
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let rest = bytes.get(at..)?;
    let (expected, effects) = last.map_or((0, 0), |last| (last.number + 1, last.effects));
    let mut sums = None;
    (1..end.saturating_sub(at))
        .find(|&later| {
            let Some((content, sum)) = frame::possible(rest, later) else { return false };
            let Ok((head, _)) = postcard::take_from_bytes::<Head>(&rest[content.clone()]) else {
                return false;
            };
            // As many as there is room for.
            let most = expected + (later / LEAST) as u64;
            (expected..=most).contains(&head.number)
                && head.effects >= effects
                && sums.get_or_insert_with(|| Sums::of(rest)).holds(salt(run), content, sum)
        })
        .map(|later| at + later)
}

/// Copies are made in pieces of so many bytes, or of a multiple of that.
const BLOCK: usize = 512;
/// Less of nothing could be anything.
const HOLE: usize = 8;

/// Whether there is a hole as in a copy that was made while more was written: one piece has what was there when it
/// was read, and then the room that was made for more, the next one what was there later.
pub fn has_hole(bytes: &[u8], between: Range<usize>) -> bool {
    let first = (between.start + HOLE).next_multiple_of(BLOCK);
    let mut ends = (first..=between.end).step_by(BLOCK);
    ends.any(|end| bytes[end - HOLE..end].iter().all(|byte| *byte == 0))
}

/// Checksums of all parts of some bytes.
struct Sums<'a> {
    bytes: &'a [u8],
    /// The sum of all before each piece.
    before: Vec<u32>,
    /// What as many bytes more come to, and as many times [`SHORT`].
    short: Vec<u32>,
    long: Vec<u32>,
}

impl<'a> Sums<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut hasher = Hasher::new();
        let before = bytes.chunks(PIECE).map(|piece| {
            let sum = hasher.clone().finalize();
            hasher.update(piece);
            sum
        });
        let before = before.collect();
        let powers = |base: u32, count: usize| -> Vec<u32> {
            let powers = std::iter::successors(Some(ONE), |power| Some(product(base, *power)));
            powers.take(count).collect()
        };
        let short = powers(BYTE, SHORT);
        let long = powers(product(BYTE, short[SHORT - 1]), bytes.len() / SHORT + 1);
        Self { bytes, before, short, long }
    }

    /// The sum of the first bytes.
    fn up_to(&self, end: usize) -> u32 {
        let piece = (end / PIECE).min(self.before.len() - 1);
        let mut hasher = Hasher::new_with_initial(self.before[piece]);
        hasher.update(&self.bytes[piece * PIECE..end]);
        hasher.finalize()
    }

    /// Whether this is the sum of that part, with a salt.
    fn holds(&self, salt: u32, part: Range<usize>, sum: u32) -> bool {
        // What comes first in two sums of the same last bytes is all that they differ by.
        let length = part.len();
        let power = product(self.short[length % SHORT], self.long[length / SHORT]);
        product(power, self.up_to(part.start) ^ salt) == self.up_to(part.end) ^ sum
    }
}

/// Of two polynomials, modulo the one of the checksums.
fn product(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for power in (0..32).rev() {
        product ^= b & (a >> power & 1).wrapping_neg();
        b = (b >> 1) ^ ((b & 1).wrapping_neg() & POLYNOMIAL);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_any_part_is_known() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|it| ((it * it) >> 3) as u8).collect();
        let sums = Sums::of(&bytes);
        let salt = salt(0x1234_5678_9abc_def0);
        for start in [0, 1, 63, 64, 65, 5000] {
            for length in [1, 2, 63, 64, 4095, 4096, 4097, 8192, 12_345, 15_000] {
                let part = start..start + length;
                let mut hasher = Hasher::new_with_initial(salt);
                hasher.update(&bytes[part.clone()]);
                let sum = hasher.finalize();
                assert!(sums.holds(salt, part.clone(), sum), "{part:?}");
                assert!(!sums.holds(salt, part.clone(), sum ^ 1), "{part:?}");
            }
        }
    }
}
