//! Random numbers of the system.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns an unpredictable number. The call needs neither a descriptor nor `/dev`.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0_u8; size_of::<u64>()];
    // The kernel never returns fewer bytes than these few.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
