//! Backoff policies: how long to wait between attempts. Pure: random numbers come in, nothing
//! sleeps.
//!
//! In the formulas, T is `from`, M is `to`, F is `by`, P is `jitter`, n counts the delays already
//! taken, U(a, b) is uniform, N(m, s) is normal with standard deviation s, and `prev` is the delay
//! before.
//!
//! Each policy is one file in `policies/`, listed in `policies/mod.rs`, with everything that is
//! specific to the policy: [`BackoffPolicy`]. [`Policy`] holds parameters.

mod backoff_policy;
mod bounds;
mod clause;
mod delay;
mod growth;
mod mistake;
mod nanos;
mod parameters;
mod percent;
mod policies;
mod policy;
mod registry;
#[cfg(test)]
mod stable;
mod table;
#[cfg(test)]
mod tests;

pub use backoff_policy::{BackoffPolicy, Description};
pub use bounds::Bound;
pub use clause::Clause;
pub use delay::{Backoff, State, deferral, last_attempt};
pub use mistake::Mistake;
pub use parameters::Parameters;
pub use policies::Kind;
pub use policy::{Clauses, Policy};
pub use table::{help, reference_table};
