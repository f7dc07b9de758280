//! The umask that the shell was started with. It never changes: those of tasks are given to each file
//! and each program.

use std::sync::OnceLock;

use nix::sys::stat::{Mode, umask as exchange};

static OWN: OnceLock<u16> = OnceLock::new();

/// The rights that new files don't get, unless the script says otherwise. The system tells only by
/// changing it, so it is to be asked for the first time while there is one thread.
pub fn umask() -> u16 {
    *OWN.get_or_init(|| {
        let own = exchange(Mode::S_IRWXG | Mode::S_IRWXO);
        exchange(own);
        own.bits() as u16
    })
}
