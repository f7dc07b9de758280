//! Locks on bytes beyond the text of a channel's file.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

pub(super) use crate::locks::{Bytes, find, one, try_lock, unlock, wait_until_free};
use ftsh_machine::channels::stored::MAX_NUMBER;

/// First byte for the numbers of waiters.
const QUEUE: u64 = MAX_NUMBER;
/// First byte for the numbers of passes.
const INSIDE: u64 = 2 * MAX_NUMBER;
/// Lock for changes of the text.
pub(super) const STATE: Bytes = one(3 * MAX_NUMBER);
/// Lock of the probe of an open breaker.
pub(super) const PROBE: Bytes = one(3 * MAX_NUMBER + 1);

/// Returns the byte of a waiter.
pub(super) fn waiter(number: u64) -> Bytes {
    one(QUEUE + number)
}

pub(super) fn waiters(numbers: Range<u64>) -> Bytes {
    (QUEUE + numbers.start, QUEUE + numbers.end)
}

/// Returns the byte of a pass.
pub(super) fn attempt(number: u64) -> Bytes {
    one(INSIDE + number)
}

/// Bytes of all passes.
pub(super) const ATTEMPTS: Bytes = (INSIDE, INSIDE + MAX_NUMBER);

/// All bytes with locks.
#[cfg(test)]
pub(super) const ALL: Bytes = (QUEUE, 4 * MAX_NUMBER);

/// Returns the last byte in a range that another open file description has locked, if any.
pub(super) fn last(fd: BorrowedFd, (mut start, end): Bytes) -> io::Result<Option<Bytes>> {
    let mut last = None;
    while let Some((_, after)) = find(fd, (start, end))? {
        let at = after.min(end) - 1;
        last = Some(one(at));
        start = at + 1;
    }
    Ok(last)
}

/// Returns the first byte in a range that another shell has locked.
pub(super) fn first(fd: BorrowedFd, (start, mut end): Bytes) -> io::Result<Option<u64>> {
    let mut first = None;
    while let Some((at, _)) = find(fd, (start, end))? {
        end = at.max(start);
        first = Some(end);
    }
    Ok(first)
}

/// Counts the bytes in a range that other shells have locked.
pub(super) fn count(fd: BorrowedFd, bytes: Bytes) -> io::Result<u64> {
    count_up_to(u64::MAX, fd, bytes)
}

/// Counts the bytes that other shells have locked. Stops when `most` are found.
pub(super) fn count_up_to(most: u64, fd: BorrowedFd, bytes: Bytes) -> io::Result<u64> {
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
