//! Hints of errors and warnings.

use std::fmt;

/// Hint, made by [`hint!`]. Code stands between backquotes, with `…` for omitted parts.
///
/// `tests/hints.rs` runs the code of every hint, and fails for a hint without a test script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Text of the hint.
    text: String,
    /// File and line of the `hint!` in the program.
    site: &'static str,
}

impl Hint {
    /// Creates a hint; called by `hint!`.
    pub const fn new(text: String, site: &'static str) -> Self {
        Self { text, site }
    }

    /// Returns file and line of the `hint!` in the program, like
    /// `crates/ftsh-ide/src/lint/flow.rs:91`.
    pub const fn site(&self) -> &'static str {
        self.site
    }

    /// Returns the pieces of code in the hint, in order.
    pub fn code(&self) -> impl Iterator<Item = &str> {
        self.text.split('`').skip(1).step_by(2)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Makes a [`Hint`] from the arguments of `format!`.
#[macro_export]
macro_rules! hint {
    ($($text:tt)+) => {
        $crate::hint::Hint::new(format!($($text)+), concat!(file!(), ":", line!()))
    };
}
pub use crate::hint;
