//! Conditions that end an attempt because of its processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Conditions on the processes of a scope and of the scopes inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Time without progress, by `stalled`. Time without any process does not count.
    pub stalled: Option<Duration>,
    /// Memory of all processes together in bytes, by `memory`.
    pub memory: Option<u64>,
}

impl Watch {
    /// Returns true if there is not a condition.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the tighter conditions of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            stalled: self.stalled.into_iter().chain(other.stalled).min(),
            memory: self.memory.into_iter().chain(other.memory).min(),
        }
    }
}

/// Memory of the processes of a scope, above the limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Bytes of all processes together.
    pub used: u64,
    /// Name of the largest process.
    pub largest: String,
    /// Bytes of the largest process.
    pub size: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_conditions_hold() {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        let outer = Watch { stalled: minutes(2), memory: Some(1000) };
        let inner = Watch { stalled: minutes(3), memory: None };
        assert_eq!(outer.and(inner), outer);
        assert_eq!(inner.and(Watch::default()), inner);
        assert!(Watch::default().is_empty());
    }
}
