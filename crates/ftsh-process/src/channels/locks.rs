//! Locks on bytes far beyond the text of a file.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

pub use super::super::os::locks::{Bytes, find, one, try_lock, unlock, wait_until_free};
use ftsh_machine::channels::NUMBERS;

/// Who waits has the byte of its number here.
const QUEUE: u64 = NUMBERS;
/// Who is inside has the byte of its number here.
const INSIDE: u64 = 2 * NUMBERS;
/// Who changes the text.
pub const STATE: Bytes = one(3 * NUMBERS);
/// The probe of an open breaker.
pub const PROBE: Bytes = one(3 * NUMBERS + 1);

/// The byte of whoever waits with this number.
pub fn waiter(number: u64) -> Bytes {
    one(QUEUE + number)
}

/// All who wait with numbers in this range.
pub fn waiters(numbers: Range<u64>) -> Bytes {
    (QUEUE + numbers.start, QUEUE + numbers.end)
}

/// The byte of an attempt that is inside.
pub fn attempt(number: u64) -> Bytes {
    one(INSIDE + number)
}

/// All that are inside.
pub const ATTEMPTS: Bytes = (INSIDE, INSIDE + NUMBERS);

/// All there are.
#[cfg(test)]
pub const ALL: Bytes = (QUEUE, 4 * NUMBERS);

/// The last of somebody else's locks among these, if there is one.
pub fn last(fd: BorrowedFd, (mut start, end): Bytes) -> io::Result<Option<Bytes>> {
    let mut last = None;
    while let Some((_, after)) = find(fd, (start, end))? {
        let at = after.min(end) - 1;
        last = Some(one(at));
        start = at + 1;
    }
    Ok(last)
}

/// Returns the first of these bytes that another shell has locked.
pub fn first(fd: BorrowedFd, (start, mut end): Bytes) -> io::Result<Option<u64>> {
    let mut first = None;
    while let Some((at, _)) = find(fd, (start, end))? {
        end = at.max(start);
        first = Some(end);
    }
    Ok(first)
}

/// How many of these somebody else has locked.
pub fn count(fd: BorrowedFd, bytes: Bytes) -> io::Result<u64> {
    count_up_to(u64::MAX, fd, bytes)
}

/// Counts the bytes that other shells have locked. Stops when `most` are found.
pub fn count_up_to(most: u64, fd: BorrowedFd, bytes: Bytes) -> io::Result<u64> {
    let mut count = 0;
    let mut left = vec![bytes];
    while count < most
        && let Some((start, end)) = left.pop()
    {
        if let Some(found) = find(fd, (start, end))? {
            let (first, after) = (found.0.max(start), found.1.min(end));
            count += after - first;
            left.extend([(start, first), (after, end)]);
        }
    }
    Ok(count)
}
