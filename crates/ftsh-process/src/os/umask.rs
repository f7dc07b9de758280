//! The umask that the shell was started with. While it runs that never changes: those of tasks are given to
//! each file and each program.

use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::stat::{Mode, umask as exchange};

/// Larger than any umask.
const UNKNOWN: u32 = u32::MAX;

static OWN: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The rights that new files don't get, unless the script says otherwise. The system tells only by
/// changing it, so it is to be asked for the first time while there is one thread.
pub fn umask() -> u16 {
    let known = OWN.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known as u16;
    }
    let own = exchange(Mode::S_IRWXG | Mode::S_IRWXO);
    assume_umask(own.bits() as u16);
    own.bits() as u16
}

/// From now on it is as if the shell had been started with this one. To be called while there is one
/// thread.
pub fn assume_umask(umask: u16) {
    exchange(Mode::from_bits_truncate(umask.into()));
    OWN.store(umask.into(), Ordering::Relaxed);
}
