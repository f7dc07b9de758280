//! Percentages as text.

use std::fmt;

/// Fraction displayed as a percentage, without the noise of binary fractions.
pub(super) struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", (self.0 * 1e8).round() / 1e6)
    }
}
