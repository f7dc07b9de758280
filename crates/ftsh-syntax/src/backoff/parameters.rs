//! Parameters of the formulas.

use std::time::Duration;

/// Values of all clauses of a policy. A policy does not read the values of clauses that it does
/// not take; journals record them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// T
    pub from: Duration,
    /// M
    pub to: Duration,
    /// F, at least 1.
    pub by: f64,
    /// P, from 0 to 1.
    pub jitter: f64,
}
