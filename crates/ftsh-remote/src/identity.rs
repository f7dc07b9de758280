//! Which program this is: places in a script hold for the same program only.

use std::fmt;
use std::io::{self, Read};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use ftsh_machine::BEHAVIOR;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its version, for people.
    version: String,
    /// Which machine it has, as [`BEHAVIOR`].
    behavior: u32,
    /// How long its file is.
    length: u64,
    /// What stands for all of that.
    checksum: u32,
}

impl Identity {
    /// This program, whose file this is.
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
