//! Channels: what those who don't know of each other obey together. Pure: time comes in, nothing waits.
//!
//! All share a [`State`]; each obeys the rules that it declares itself. Who may have to wait is served in
//! order of coming, and holds nothing while it waits.

mod crowd;
mod state;
mod stored;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::crowd::Crowd;
pub use self::state::{Inside, State, Verdict};
pub use self::stored::{Damaged, NUMBERS, SIZE, Stored};

/// A moment: so long after one that all who share a channel agree on.
pub type Moment = Duration;

/// What a shell obeys in a channel.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rules {
    /// `at most N` at once; at least one.
    pub places: Option<u64>,
    /// `rate N per D`
    pub rate: Option<Rate>,
    /// `budget P%`: how many retries there may be for a hundred first attempts; above 0, at most 100.
    pub budget: Option<f64>,
    /// `breaker N failures D`
    pub breaker: Option<Breaker>,
}

impl Rules {
    /// Whether an attempt that is not refused may have to wait: such attempts stand in a queue.
    pub fn may_wait(&self) -> bool {
        self.places.is_some() || self.rate.is_some()
    }
}

/// So many may begin in a time, and so many at once after a while without any.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// How many; at least one.
    pub count: u64,
    /// In what time; above zero.
    pub per: Duration,
}

/// When attempts aren't made any more.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Breaker {
    /// After so many failures in a row; at least one.
    pub failures: u64,
    /// For how long; above zero.
    pub open: Duration,
}

/// Who wants to go through a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The first attempt of a `try` that isn't itself inside a retried one: it earns budget.
    First,
    /// The first attempt of another `try`.
    Inner,
    /// A second or later attempt: it needs budget.
    Retry,
}

/// Whether an attempt may be made.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// It may, now.
    Admitted,
    /// It may not: there is no budget for a retry.
    NoBudget,
    /// It may not, for so long at least: there were too many failures.
    Broken(Duration),
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cancelled or deferred.
    Neither,
}
