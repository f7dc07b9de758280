//! Identity of a program. Positions in a script are valid only within the same program.

use std::fmt;
use std::io::{self, Read};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use ftsh_machine::BEHAVIOR;

/// Identity of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version, for people.
    version: String,
    /// Behavior of the machine, as [`BEHAVIOR`].
    behavior: u32,
    /// Length of the program file in bytes.
    length: u64,
    /// Checksum of the program file.
    checksum: u32,
}

impl Identity {
    /// Returns the identity of this program, read from the program file.
    pub fn of(mut file: impl Read) -> io::Result<Self> {
        let (mut hasher, mut length) = (Hasher::new(), 0);
        let mut bytes = vec![0; 1 << 16];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => {
                    hasher.update(&bytes[..read]);
                    length += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let version = env!("CARGO_PKG_VERSION").into();
        Ok(Self { version, behavior: BEHAVIOR, length, checksum: hasher.finalize() })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({:08x})", self.version, self.checksum)
    }
}
