//! Series of delays of a policy.

use std::time::Duration;

use rand::{Rng, RngExt};

use super::policies::{PolicyKind, PolicyState};
use super::policy::Policy;

/// Delays of one `try`, in order.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: Policy,
    state: PolicyPosition,
}

impl Backoff {
    /// Returns the series from its first delay.
    pub fn new(policy: Policy) -> Self {
        let state = policy.start();
        Self { policy, state }
    }

    /// Returns the kind of the policy.
    pub fn kind(&self) -> PolicyKind {
        self.policy.kind
    }

    /// Returns the next delay. `elapsed` is the time since the first failure.
    pub fn next_delay(&mut self, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        self.policy.next_delay(&mut self.state, elapsed, rng)
    }
}

/// Position in a series of delays. The policy is stored separately, so that a million clients of
/// one policy take 24 bytes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyPosition(PolicyState);

impl Policy {
    /// Returns the state before the first delay.
    pub fn start(&self) -> PolicyPosition {
        PolicyPosition(self.kind.start(self.parameters()))
    }

    /// Returns the next delay and advances `state`.
    ///
    /// `elapsed` is the time since the first failure, including the time that attempts took.
    pub fn next_delay(
        &self,
        state: &mut PolicyPosition,
        elapsed: Duration,
        rng: &mut impl Rng,
    ) -> Duration {
        state.0.next_delay(self.parameters(), elapsed, rng)
    }
}

/// Returns another delay if a delay does not fit into the time `left` before a deadline, or `None`
/// if the delay fits.
///
/// One last attempt follows the other delay, which is drawn from the time left. Clients with the
/// same deadline therefore do not meet at the deadline.
pub fn last_attempt(delay: Duration, left: Duration, rng: &mut impl Rng) -> Option<Duration> {
    (delay >= left).then(|| left.mul_f64(rng.random::<f64>()))
}

/// Returns the delay of an attempt deferred `by` a time: from `by` to one and a half times `by`.
///
/// The random part spreads clients with the same deferral. `left`, the time before a deadline, is
/// longer than `by`, and the delay ends before the deadline.
pub fn deferral(by: Duration, left: Duration, rng: &mut impl Rng) -> Duration {
    let spread = (by / 2).min(left.saturating_sub(by));
    by.saturating_add(spread.mul_f64(rng.random::<f64>()))
}
