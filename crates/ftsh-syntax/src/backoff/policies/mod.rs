//! Registry of the policies: a `mod` line and a line of `registry!` for each.
//!
//! The modules are declared outside the macro because `rustfmt` does not find them inside.

mod decorrelated;
mod equal;
mod ethernet;
mod exponential;
mod fixed;
mod full;
mod none;
mod normal;
mod proportional;
mod slotted;
mod windowed;

use std::time::Duration;

use rand::Rng;

use super::backoff_policy::{BackoffPolicy, Description};
use super::bounds::Bound;
use super::clause::Clause;
use super::parameters::Parameters;
use super::registry::registry;

// In the order of the reference. Records of remote branches hold the position of a policy: a new
// policy is added at the end.
registry! {
    Ethernet: ethernet,
    Exponential: exponential,
    Full: full,
    Equal: equal,
    Decorrelated: decorrelated,
    Normal: normal,
    Proportional: proportional,
    Slotted: slotted,
    Windowed: windowed,
    Fixed: fixed,
    None: none,
}

impl PolicyKind {
    /// Returns the policy's name in scripts.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Returns the policy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the clauses that the policy takes.
    pub fn clauses(self) -> &'static [Clause] {
        self.description().clauses
    }

    /// Returns true if the policy takes this clause.
    pub fn takes(self, clause: Clause) -> bool {
        self.clauses().contains(&clause)
    }
}
