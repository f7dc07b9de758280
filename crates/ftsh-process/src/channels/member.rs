//! Who waits for a channel, and who is inside: what each holds of its file.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::file::ChannelFile;
use super::locks::{self, PROBE};
use super::wait::Reason;
use ftsh_machine::channels::{Admission, NUMBERS, Rules, Stored};
use ftsh_machine::effect::Entry;

/// What becomes of somebody.
pub enum Fate {
    Admitted(Pass),
    Refused(Admission),
    Waits(Reason),
}

/// Somebody who wants to go through.
pub struct Waiter {
    pub entry: Entry,
    /// Its place in the queue of all shells, once it has one.
    number: Option<u64>,
    /// Whether the machine knows that it waits.
    pub told: bool,
}

impl Waiter {
    /// It has only just come.
    pub fn new(entry: Entry) -> Self {
        Self { entry, number: None, told: false }
    }

    /// Returns true if an earlier waiter of another shell has not been passed over.
    pub fn is_behind_others(&self, file: &ChannelFile, stored: &Stored) -> io::Result<bool> {
        let own = self.number.unwrap_or(NUMBERS);
        let before = locks::waiters(stored.first.min(own)..own);
        Ok(locks::find(file.as_fd(), before)?.is_some())
    }

    /// Its number, which it is given if it has none.
    pub fn number(&mut self, file: &ChannelFile, stored: &mut Stored) -> io::Result<u64> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        let number = take(file, stored, locks::waiter)?;
        self.number = Some(number);
        Ok(number)
    }

    /// Whether it has a number.
    pub fn has_number(&self) -> bool {
        self.number.is_some()
    }

    /// It waits no more.
    pub fn give_up(&self, file: &ChannelFile) {
        if let Some(number) = self.number {
            let _ = locks::unlock(file.as_fd(), locks::waiter(number));
        }
    }

    /// It has no number any more.
    pub fn begin_anew(&mut self) {
        self.number = None;
    }
}

/// The first number whose byte can be locked. After a state was lost somebody may still hold one that
/// is given anew.
fn take(file: &ChannelFile, stored: &mut Stored, byte: fn(u64) -> locks::Bytes) -> io::Result<u64> {
    loop {
        let number = stored.next;
        stored.next = (number + 1) % NUMBERS;
        if locks::try_lock(file.as_fd(), byte(number))? {
            return Ok(number);
        }
    }
}

/// Somebody who is inside.
pub struct Pass {
    /// Its place.
    pub number: u64,
    /// Whether it is the probe of an open breaker.
    pub probe: bool,
    /// What it obeys.
    pub rules: Arc<Rules>,
    /// Where it is.
    pub file: Arc<ChannelFile>,
}

impl Pass {
    /// Somebody goes inside.
    pub fn take(
        waiter: &Waiter,
        probe: bool,
        file: &Arc<ChannelFile>,
        stored: &mut Stored,
    ) -> io::Result<Self> {
        let number = match waiter.number {
            Some(number) if locks::try_lock(file.as_fd(), locks::attempt(number))? => number,
            _ => take(file, stored, locks::attempt)?,
        };
        let pass = Self { number, probe, rules: waiter.entry.rules.clone(), file: file.clone() };
        if probe && !locks::try_lock(file.as_fd(), PROBE)? {
            pass.release();
            return Err(io::ErrorKind::WouldBlock.into()); // it was looked at under the same lock
        }
        stored.inside = stored.inside.saturating_add(1);
        Ok(pass)
    }

    /// Gives back what it holds.
    pub fn release(&self) {
        let _ = locks::unlock(self.file.as_fd(), locks::attempt(self.number));
        if self.probe {
            let _ = locks::unlock(self.file.as_fd(), PROBE);
        }
    }
}
