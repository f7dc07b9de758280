//! Chance, from the system.

use std::io;

/// A number that nobody can foretell. By a call that neither keeps a descriptor open nor needs
/// `/dev`.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0_u8; size_of::<u64>()];
    // SAFETY: no more is written than there is room for.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        // So few are never cut short.
        _ => Ok(u64::from_ne_bytes(bytes)),
    }
}
