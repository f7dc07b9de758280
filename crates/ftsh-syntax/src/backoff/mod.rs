//! Backoff policies: the delays between attempts.
//!
//! The code is pure: callers pass random numbers and wait themselves.
//!
//! In the formulas, T is `from`, M is `to`, F is `by`, P is `jitter`, n counts the previous delays,
//! U(a, b) is uniform, N(m, s) is normal with standard deviation s, and `prev` is the previous
//! delay.
//!
//! Each policy is one file in `policies/`, listed in `policies/mod.rs`, and implements
//! [`BackoffPolicy`]. [`Policy`] holds parameters.

mod backoff_policy;
mod bounds;
mod clause;
mod delay;
mod growth;
mod nanos;
mod parameters;
mod percent;
mod policies;
mod policy;
mod policy_error;
mod registry;
#[cfg(test)]
mod stable;
mod table;
#[cfg(test)]
mod tests;

pub use backoff_policy::{BackoffPolicy, Description};
pub use bounds::Bound;
pub use clause::Clause;
pub use delay::{Backoff, PolicyPosition, deferral, last_attempt};
pub use parameters::Parameters;
pub use policies::PolicyKind;
pub use policy::{Clauses, Policy};
pub use policy_error::PolicyError;
pub use table::{help, reference_table};
