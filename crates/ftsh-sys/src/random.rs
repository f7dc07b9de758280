//! Chance, from the system.

use std::io;

/// A number that nobody can foretell. By a call that neither keeps a descriptor open nor needs
/// `/dev`.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0_u8; size_of::<u64>()];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn fill(bytes: &mut [u8; 8]) -> io::Result<()> {
    // SAFETY: no more is written than there is room for; so few are never cut short.
    let result = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
