//! The delays of a policy, one after the other.

use std::time::Duration;

use rand::{Rng, RngExt};

use super::policies::Series;
use super::policy::Policy;

/// The delays of one `try`, in order.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: Policy,
    state: State,
}

impl Backoff {
    /// Returns the series from its first delay.
    pub fn new(policy: Policy) -> Self {
        let state = policy.start();
        Self { policy, state }
    }

    /// Returns the next delay. `elapsed` is the time since the first failure.
    pub fn next_delay(&mut self, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        self.policy.next_delay(&mut self.state, elapsed, rng)
    }
}

/// Position in a series of delays. The policy is stored separately, so that a million clients of
/// one policy take 24 bytes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State(Series);

impl Policy {
    /// Returns the state before the first delay.
    pub fn start(&self) -> State {
        State(self.kind.start(self.parameters()))
    }

    /// Returns the next delay and advances `state`.
    ///
    /// `elapsed` is the time since the first failure, including the time that attempts took.
    pub fn next_delay(&self, state: &mut State, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        state.0.next_delay(self.parameters(), elapsed, rng)
    }
}

/// Fits a delay into the time that is `left` before a deadline: nothing if it does, else another
/// delay, after which comes one last attempt. That is drawn from the time left, so that clients with
/// one deadline don't meet at it.
pub fn last_attempt(delay: Duration, left: Duration, rng: &mut impl Rng) -> Option<Duration> {
    (delay >= left).then(|| left.mul_f64(rng.random::<f64>()))
}

/// Returns the delay of an attempt that is deferred `by` a time: at least that and at most half as
/// long again, so that clients with the same deferral spread. `left` is the time before a deadline,
/// longer than `by`; the delay ends before the deadline.
pub fn deferral(by: Duration, left: Duration, rng: &mut impl Rng) -> Duration {
    let spread = (by / 2).min(left.saturating_sub(by));
    by.saturating_add(spread.mul_f64(rng.random::<f64>()))
}
