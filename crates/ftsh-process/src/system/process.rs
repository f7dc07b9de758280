//! Umask of the shell's own process, and exit statuses of others.

use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::stat::{Mode, umask as exchange};

use ftsh_machine::event::CommandStatus;
use ftsh_sys::ExitStatus;

/// Larger than any umask.
const UNKNOWN: u32 = u32::MAX;

static OWN: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Returns the umask at the start of the shell. The system reports the umask only when changing it,
/// so the first call must come while the process has one thread.
pub fn umask() -> u16 {
    let known = OWN.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known as u16;
    }
    let own = exchange(Mode::S_IRWXG | Mode::S_IRWXO);
    assume_umask(own.bits() as u16);
    own.bits() as u16
}

/// Sets the umask as if the shell had started with it. Must be called while the process has one
/// thread.
pub fn assume_umask(umask: u16) {
    exchange(Mode::from_bits_truncate(umask.into()));
    OWN.store(umask.into(), Ordering::Relaxed);
}

/// Converts an exit status of the kernel to one of the machine.
pub(crate) fn command_status(ended: ExitStatus) -> CommandStatus {
    match ended {
        ExitStatus::Exited(code) => CommandStatus::Exited(code),
        ExitStatus::Signaled(signal) => CommandStatus::Signaled(signal),
    }
}
