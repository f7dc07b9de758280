//! Channels: rules followed jointly by shells that do not know each other. The code is pure: time
//! is an argument, and nothing blocks.
//!
//! All shells share a [`ChannelState`], and each follows the rules it declares itself. Waiting
//! attempts are served in order of arrival, and occupy nothing while waiting.

mod crowd;
pub mod state;
pub mod stored;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::crowd::LocalChannel;

/// Moment, as the time since an origin common to all shells that share a channel.
pub type Moment = Duration;

/// Rules that a shell follows in a channel.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rules {
    /// `at most N`: the maximum number of attempts at once; at least 1.
    pub places: Option<u64>,
    /// `rate N per D`
    pub rate: Option<Rate>,
    /// `budget P%`: the number of retries per hundred first attempts; above 0, at most 100.
    pub budget: Option<f64>,
    /// `breaker N failures D`
    pub breaker: Option<Breaker>,
}

impl Rules {
    /// Returns true if an attempt may have to wait in the queue.
    pub fn may_wait(&self) -> bool {
        self.places.is_some() || self.rate.is_some()
    }
}

/// Rate of attempts, which also bounds a burst after an idle period.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// Number of attempts; at least 1.
    pub count: u64,
    /// Period; above zero.
    pub per: Duration,
}

/// Rule that suspends attempts after failures.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Breaker {
    /// Number of failures in a row; at least 1.
    pub failures: u64,
    /// Duration of the suspension; above zero.
    pub open: Duration,
}

/// Kind of an attempt, for the budget of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The first attempt of a `try` outside of retried attempts, which earns budget.
    First,
    /// The first attempt of another `try`.
    Inner,
    /// A second or later attempt, which needs budget.
    Retry,
}

/// Decision about an attempt.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Admission {
    /// The attempt may begin now.
    Admitted,
    /// Refused: no budget for a retry.
    NoBudget,
    /// Refused for at least this time: too many failures.
    Broken(Duration),
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The attempt succeeded.
    Succeeded,
    /// The attempt failed.
    Failed,
    /// The attempt was canceled or deferred.
    Neither,
}
