//! Classification of the bytes after the last whole frame: a torn frame, or damage.
//!
//! A good frame could begin at any byte of the tail and have any length, and a torn frame may
//! contain anything. A checksum of every possible frame would take hours for a tail of some
//! megabytes. Therefore the tail is summed once, with a sum stored for each piece. The sum of any
//! part follows from two stored sums by arithmetic.

use std::ops::Range;

use crc32fast::Hasher;

use super::entry::FrameHead;
use super::frame::{self, HEAD, salt};

/// Polynomial of the checksums, the lowest power first.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// Polynomials 1 and x⁸; a product with x⁸ extends a sum by one byte.
const ONE: u32 = 1 << 31;
const BYTE: u32 = 1 << 23;
/// Number of bytes between two stored sums.
const PIECE: usize = 64;
/// Number of stored powers for short lengths; longer lengths use multiples of this number.
const SHORT_POWERS: usize = 4096;
/// Size of the smallest frame: a header and an encoded [`FrameHead`].
const MIN_FRAME: usize = HEAD + 3;

/// Returns the position of the first good frame after the bad frame at `at`.
///
/// Only a frame written later than `last` counts. An older frame is a copy: a script can print its
/// own journal.
pub(crate) fn later(bytes: &[u8], run: u64, at: usize, last: Option<FrameHead>) -> Option<usize> {
    // Zeros at the end are preallocated room, in which no frame begins.
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let rest = bytes.get(at..)?;
    let (expected, effects) = last.map_or((0, 0), |last| (last.number + 1, last.effects));
    let mut sums = None;
    (1..end.saturating_sub(at))
        .find(|&later| {
            let Some((content, sum)) = frame::possible(rest, later) else { return false };
            let Ok((head, _)) = postcard::take_from_bytes::<FrameHead>(&rest[content.clone()])
            else {
                return false;
            };
            // The bytes in between have room for at most this many frames.
            let most = expected + (later / MIN_FRAME) as u64;
            (expected..=most).contains(&head.number)
                && head.effects >= effects
                && sums.get_or_insert_with(|| Sums::of(rest)).holds(salt(run), content, sum)
        })
        .map(|later| at + later)
}

/// Size of the pieces in which programs copy files, or a divisor of the size.
const BLOCK: usize = 512;
/// Number of zero bytes that make a hole; fewer zeros occur in ordinary content.
const HOLE: usize = 8;

/// Returns true if the range has a hole, as in a copy made during recording.
///
/// In such a copy, one piece ends in preallocated zeros and the next piece has content written
/// later.
pub(crate) fn has_hole(bytes: &[u8], between: Range<usize>) -> bool {
    let first = (between.start + HOLE).next_multiple_of(BLOCK);
    let mut ends = (first..=between.end).step_by(BLOCK);
    ends.any(|end| bytes[end - HOLE..end].iter().all(|byte| *byte == 0))
}

/// Checksums of all parts of a byte sequence.
struct Sums<'a> {
    bytes: &'a [u8],
    /// Sum of the bytes before each piece.
    before: Vec<u32>,
    /// Factors for lengths below [`SHORT_POWERS`], and factors for its multiples.
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
        let short = powers(BYTE, SHORT_POWERS);
        let long = powers(product(BYTE, short[SHORT_POWERS - 1]), bytes.len() / SHORT_POWERS + 1);
        Self { bytes, before, short, long }
    }

    /// Returns the sum of the first `end` bytes.
    fn up_to(&self, end: usize) -> u32 {
        let piece = (end / PIECE).min(self.before.len() - 1);
        let mut hasher = Hasher::new_with_initial(self.before[piece]);
        hasher.update(&self.bytes[piece * PIECE..end]);
        hasher.finalize()
    }

    /// Returns true if `sum` is the salted sum of `part`.
    fn holds(&self, salt: u32, part: Range<usize>, sum: u32) -> bool {
        // Two sums of the same last bytes differ only by the sums of the bytes before.
        let length = part.len();
        let power = product(self.short[length % SHORT_POWERS], self.long[length / SHORT_POWERS]);
        product(power, self.up_to(part.start) ^ salt) == self.up_to(part.end) ^ sum
    }
}

/// Returns the product of two polynomials, modulo the polynomial of the checksums.
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
