//! Secret numbers of records and of starts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Random bytes that cannot be guessed, written as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// Creates a nonce of two random numbers.
    pub fn new([one, other]: [u64; 2]) -> Self {
        Self((u128::from(one) << 64 | u128::from(other)).to_ne_bytes())
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
