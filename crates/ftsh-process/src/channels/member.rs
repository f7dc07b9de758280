//! Waiters and passes of a channel, with their locks.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::file::ChannelFile;
use super::locks::{Bytes, PROBE, attempt, find, try_lock, unlock, waiter, waiters};
use super::wait::WaitReason;
use ftsh_machine::channels::stored::{MAX_NUMBER, Stored};
use ftsh_machine::channels::{Admission, Rules};
use ftsh_machine::effect::Entry;

/// Decision about a waiter.
pub(super) enum Decision {
    Admitted(HeldPass),
    Refused(Admission),
    Waits(WaitReason),
}

/// Attempt that waits for a pass.
pub(super) struct ChannelWaiter {
    pub entry: Entry,
    /// Position in the queue of all shells, once assigned.
    number: Option<u64>,
    /// True if the wait was reported to the machine.
    pub queue_reported: bool,
}

impl ChannelWaiter {
    /// Creates a waiter without a number.
    pub(super) fn new(entry: Entry) -> Self {
        Self { entry, number: None, queue_reported: false }
    }

    /// Returns true if an earlier waiter of another shell has not been passed over.
    pub(super) fn is_behind_others(&self, file: &ChannelFile, stored: &Stored) -> io::Result<bool> {
        let own = self.number.unwrap_or(MAX_NUMBER);
        let before = waiters(stored.first.min(own)..own);
        Ok(find(file.as_fd(), before)?.is_some())
    }

    /// Returns the waiter's number, assigned if necessary.
    pub(super) fn number(&mut self, file: &ChannelFile, stored: &mut Stored) -> io::Result<u64> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        let number = take(file, stored, waiter)?;
        self.number = Some(number);
        Ok(number)
    }

    /// True if the waiter has a number.
    pub(super) fn has_number(&self) -> bool {
        self.number.is_some()
    }

    /// Releases the waiter's lock.
    pub(super) fn give_up(&self, file: &ChannelFile) {
        if let Some(number) = self.number {
            let _ = unlock(file.as_fd(), waiter(number));
        }
    }

    /// Drops the waiter's number.
    pub(super) fn drop_number(&mut self) {
        self.number = None;
    }
}

/// Returns the next number whose byte can be locked. After the loss of a channel's state, another
/// shell may still hold a lock on a reused number.
fn take(file: &ChannelFile, stored: &mut Stored, byte: fn(u64) -> Bytes) -> io::Result<u64> {
    loop {
        let number = stored.next;
        stored.next = (number + 1) % MAX_NUMBER;
        if try_lock(file.as_fd(), byte(number))? {
            return Ok(number);
        }
    }
}

/// Pass of an attempt.
pub(super) struct HeldPass {
    /// Number of the pass.
    pub number: u64,
    /// True for the probe of an open breaker.
    pub probe: bool,
    /// Rules of the attempt.
    pub rules: Arc<Rules>,
    /// File with its lock.
    pub file: Arc<ChannelFile>,
}

impl HeldPass {
    /// Turns a waiter into a pass.
    pub(super) fn take(
        waiter: &ChannelWaiter,
        probe: bool,
        file: &Arc<ChannelFile>,
        stored: &mut Stored,
    ) -> io::Result<Self> {
        let number = match waiter.number {
            Some(number) if try_lock(file.as_fd(), attempt(number))? => number,
            _ => take(file, stored, attempt)?,
        };
        let pass = Self { number, probe, rules: waiter.entry.rules.clone(), file: file.clone() };
        if probe && !try_lock(file.as_fd(), PROBE)? {
            pass.release();
            return Err(io::ErrorKind::WouldBlock.into()); // the lock was free under the same lock on the text
        }
        stored.inside = stored.inside.saturating_add(1);
        Ok(pass)
    }

    /// Releases the pass's locks.
    pub(super) fn release(&self) {
        let _ = unlock(self.file.as_fd(), attempt(self.number));
        if self.probe {
            let _ = unlock(self.file.as_fd(), PROBE);
        }
    }
}
