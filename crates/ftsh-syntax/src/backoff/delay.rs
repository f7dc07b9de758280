//! The delays of a policy, one after the other.
//!
//! Lengths of time are computed as floating-point nanoseconds: exact up to 100 days, and they
//! saturate where integers would overflow. Whatever the parameters, a conversion at the end
//! makes an honest [`Duration`] of them.

use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::{Kind, Policy};

/// The delays of one `try`, in order.
#[derive(Clone, Debug)]
pub struct Backoff {
    policy: Policy,
    state: State,
}

impl Backoff {
    /// Starts over.
    pub fn new(policy: Policy) -> Self {
        let state = policy.start();
        Self { policy, state }
    }

    /// The next delay. `elapsed` is the time since the first failure, which only `windowed` needs:
    /// its windows go on while attempts run.
    pub fn next_delay(&mut self, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        self.policy.next_delay(&mut self.state, elapsed, rng)
    }
}

/// How far a series of delays has come. Kept apart from the policy so that a million clients of
/// one policy take 16 bytes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// What the next delay is made of: T·Fⁿ, the previous delay, the number of slots or the
    /// length of the next window.
    scale: f64,
    /// When the last window ends, since the first failure.
    window_end: f64,
}

/// `slotted` draws from at most this many slots.
pub(super) const MOST_SLOTS: f64 = 1024.0;

impl Policy {
    /// The state before the first delay.
    pub fn start(&self) -> State {
        let first = nanos(self.from);
        let scale = match self.kind {
            Kind::Slotted => 2.0,
            // A window without length would never end.
            Kind::Windowed => first.max(1.0).min(self.longest_window()),
            Kind::Normal => 0.0,
            Kind::Decorrelated => first,
            Kind::Ethernet
            | Kind::Exponential
            | Kind::Full
            | Kind::Equal
            | Kind::Proportional
            | Kind::Fixed
            | Kind::None => first.min(nanos(self.to)),
        };
        State { scale, window_end: 0.0 }
    }

    /// The delay after `state`, which moves on. See [`Kind`] for the formulas.
    pub fn next_delay(&self, state: &mut State, elapsed: Duration, rng: &mut impl Rng) -> Duration {
        let from = nanos(self.from);
        let to = nanos(self.to);
        let mut uniform = || rng.random::<f64>();
        let delay = match self.kind {
            Kind::Ethernet => self.grow(state) * (1.0 + uniform()),
            Kind::Exponential => self.grow(state),
            Kind::Full => self.grow(state) * uniform(),
            Kind::Equal => self.grow(state) * (0.5 + 0.5 * uniform()),
            Kind::Decorrelated => {
                state.scale = (from + (3.0 * state.scale - from) * uniform()).min(to);
                state.scale
            }
            Kind::Normal => return duration(self.normal(state, rng)),
            Kind::Proportional => {
                return duration(self.grow(state) * (1.0 + self.jitter * (2.0 * uniform() - 1.0)));
            }
            Kind::Slotted => {
                let slots = state.scale;
                state.scale = (2.0 * slots).min(MOST_SLOTS);
                from * (slots * uniform()).floor()
            }
            Kind::Windowed => self.windowed(state, nanos(elapsed), uniform()),
            Kind::Fixed => return self.from,
            Kind::None => return Duration::ZERO,
        };
        duration(delay).min(self.to)
    }

    /// min(T·Fⁿ, M)
    fn grow(&self, state: &mut State) -> f64 {
        let value = state.scale;
        state.scale = (value * self.by).min(nanos(self.to));
        value
    }

    fn normal(&self, state: &mut State, rng: &mut impl Rng) -> f64 {
        let value = if state.scale > 0.0 {
            let value = (state.scale * self.by).min(nanos(self.to));
            let noise: f64 = rng.sample(StandardNormal);
            (value + noise * self.jitter * value).max(0.0)
        } else {
            // The first delay; or the noise made the last one 0, and its multiples would be 0 for
            // ever.
            nanos(self.from.min(self.to))
        };
        state.scale = value;
        value
    }

    fn windowed(&self, state: &mut State, now: f64, uniform: f64) -> f64 {
        let longest = self.longest_window();
        let mut length = state.scale;
        let mut start = state.window_end;
        while start + length <= now && length < longest {
            start += length;
            length = (2.0 * length).min(longest);
        }
        if start + length <= now {
            start += ((now - start) / length).floor() * length;
        }
        let end = start + length;
        state.window_end = end;
        state.scale = (2.0 * length).min(longest);
        let earliest = start.max(now);
        earliest + (end - earliest) * uniform - now
    }

    pub(super) fn longest_window(&self) -> f64 {
        nanos(self.to) / 2.0
    }
}

/// Fits a delay into the time that is `left` before a deadline: nothing if it does, else another
/// delay, after which comes one last attempt. That is drawn from the time left, so that clients with
/// one deadline don't meet at it.
pub fn last_attempt(delay: Duration, left: Duration, rng: &mut impl Rng) -> Option<Duration> {
    (delay >= left).then(|| left.mul_f64(rng.random::<f64>()))
}

/// The delay of an attempt that was told to come back after `by`: between that and half as long again,
/// so that those who were told the same don't come together. None if the time that is `left` before a
/// deadline doesn't reach; what is drawn always lies before it.
pub fn deferral(by: Duration, left: Duration, rng: &mut impl Rng) -> Option<Duration> {
    let longest = (by / 2).min(left.checked_sub(by).filter(|more| !more.is_zero())?);
    Some(by + longest.mul_f64(rng.random::<f64>()))
}

/// In nanoseconds, exact up to 100 days.
pub(super) fn nanos(duration: Duration) -> f64 {
    duration.as_secs() as f64 * 1e9 + f64::from(duration.subsec_nanos())
}

/// The nearest duration there is; 0 for what is no length of time.
pub(super) fn duration(nanos: f64) -> Duration {
    if nanos >= u64::MAX as f64 {
        Duration::try_from_secs_f64(nanos / 1e9).unwrap_or(Duration::MAX)
    } else {
        // Saturates: what is negative or not a number becomes 0.
        Duration::from_nanos(nanos as u64)
    }
}
