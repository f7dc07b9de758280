//! Advice with a mistake or a warning.

use std::fmt;

/// Advice, made by [`hint!`]. Code stands between backquotes, `…` where something is left out.
///
/// `tests/hints.rs` runs the code of every hint, and fails for a hint that none of its scripts leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The advice, for people.
    text: String,
    /// File and line of the `hint!` in the program.
    site: &'static str,
}

impl Hint {
    /// The hint that `hint!` makes.
    pub const fn new(text: String, site: &'static str) -> Self {
        Self { text, site }
    }

    /// File and line of the `hint!` in the program, like `crates/ftsh-ide/src/lint/flow.rs:91`.
    pub const fn site(&self) -> &'static str {
        self.site
    }

    /// Pieces of code that the hint names, in order.
    pub fn code(&self) -> impl Iterator<Item = &str> {
        self.text.split('`').skip(1).step_by(2)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Makes a [`Hint`] of the same arguments as `format!`.
#[macro_export]
macro_rules! hint {
    ($($text:tt)+) => {
        $crate::hint::Hint::new(format!($($text)+), concat!(file!(), ":", line!()))
    };
}
pub use crate::hint;
