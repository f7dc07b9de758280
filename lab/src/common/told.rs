//! What the shell itself says.

use std::error::Error;
use std::fmt;

/// An error in the shell's own words, which are shown as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told(
    /// Lines that end in a newline.
    pub String,
);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Told {}
