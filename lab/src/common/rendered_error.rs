//! Errors already rendered by the shell.

use std::error::Error;
use std::fmt;

/// An error in the words of the shell, shown without changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedError(
    /// Lines that end in a newline.
    pub String,
);

impl fmt::Display for RenderedError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RenderedError {}
