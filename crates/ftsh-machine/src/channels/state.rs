//! State of a channel, and decisions about attempts.

use std::time::Duration;

use super::{Admission, Breaker, Claim, Moment, Passed, Rate, Rules};

/// Maximum number of saved retries, and the initial number.
const MAX_TOKENS: f64 = 10.0;
/// Retries earned per second without any first attempt.
const TOKENS_PER_SECOND: f64 = 0.1;
/// Tolerance for rounding errors in sums of fractions.
const SLACK: f64 = 1e-6;
/// Minimum duration of a wait, against rounding to zero.
const MIN_WAIT: Duration = Duration::from_micros(1);

/// State shared by all users of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelState {
    /// Number of recent attempts that count for the rate, decreasing with time.
    pub(super) begun: Option<Gauge>,
    /// Number of available retries; `None` before the first count.
    pub(super) tokens: Option<Gauge>,
    /// Number of failures in a row, of all shells.
    pub(super) failures: u64,
    /// Moment of the last failure.
    pub(super) failed: Moment,
    /// Opened breaker, respected by shells with a breaker.
    pub(super) opened: Option<Opened>,
}

/// Amount that changes with time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gauge {
    pub(super) amount: f64,
    pub(super) at: Moment,
}

/// Open breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// Number of failures that opened the breaker.
    pub(super) failures: u64,
    pub(super) at: Moment,
}

/// Occupancy of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Number of attempts of all shells.
    pub attempts: u64,
    /// True if an attempt is the probe of an open breaker.
    pub probing: bool,
}

/// Decision about the attempt at the front of the queue.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelVerdict {
    /// The attempt is admitted.
    Admitted {
        /// True for the probe, whose success closes the breaker.
        probe: bool,
    },
    /// The attempt is refused.
    Refused(Admission),
    /// The attempt waits until another one leaves.
    Full,
    /// The attempt waits until this moment.
    NotBefore(Moment),
}

impl ChannelState {
    /// Decides about the attempt at the front of the queue. The rules are checked in order:
    /// breaker, places, budget, rate. Budget and rate are consumed only by an admitted attempt.
    pub fn admit(
        &mut self,
        rules: &Rules,
        claim: Claim,
        inside: Inside,
        now: Moment,
    ) -> ChannelVerdict {
        let mut probe = false;
        if let Some(breaker) = rules.breaker
            && let Some(opened) = self.opened(breaker)
        {
            let left = opened.saturating_add(breaker.open).saturating_sub(now);
            // The duration of a probe is unknown, so the remaining time may be zero.
            if inside.probing || !left.is_zero() {
                return ChannelVerdict::Refused(Admission::Broken(left));
            }
            probe = true;
        }
        if rules.places.is_some_and(|places| inside.attempts >= places) {
            return ChannelVerdict::Full;
        }
        let tokens = self.tokens(now);
        let is_retry = claim == Claim::Retry;
        if rules.budget.is_some() && is_retry && tokens < 1.0 - SLACK {
            return ChannelVerdict::Refused(Admission::NoBudget);
        }
        if let Some(rate) = rules.rate {
            let begun = self.begun(rate, now);
            if begun + 1.0 > rate.count as f64 + SLACK {
                return ChannelVerdict::NotBefore(now.saturating_add(time_for(begun, rate)));
            }
            self.begun = Some(Gauge { amount: begun + 1.0, at: now });
        }
        if let Some(percent) = rules.budget {
            let change = match claim {
                Claim::First => percent / 100.0,
                Claim::Inner => 0.0,
                Claim::Retry => -1.0,
            };
            let amount = (tokens + change).clamp(0.0, MAX_TOKENS);
            self.tokens = Some(Gauge { amount, at: now });
        }
        ChannelVerdict::Admitted { probe }
    }

    /// Records the result of an admitted attempt.
    pub fn leave(&mut self, rules: &Rules, passed: Passed, probe: bool, now: Moment) {
        match passed {
            Passed::Succeeded => (self.failures, self.opened) = (0, None),
            Passed::Failed => {
                self.failures = self.failures.saturating_add(1);
                self.failed = now;
                if let Some(opened) = self.opened.as_mut().filter(|_| probe) {
                    opened.at = now;
                }
                if let Some(breaker) = rules.breaker {
                    self.opened(breaker);
                }
            }
            Passed::Neither => {}
        }
    }

    /// Returns the moment at which a breaker opened, if open. Later failures, of attempts that
    /// began before or ignore the breaker, do not prolong the suspension.
    fn opened(&mut self, breaker: Breaker) -> Option<Moment> {
        let failures = breaker.failures;
        if self.failures < failures {
            return None;
        }
        // Another shell's breaker may have opened earlier, after fewer failures.
        if self.opened.is_none_or(|opened| opened.failures < failures) {
            self.opened = Some(Opened { failures, at: self.failed });
        }
        self.opened.map(|opened| opened.at)
    }

    fn begun(&self, rate: Rate, now: Moment) -> f64 {
        let Some(Gauge { amount, at }) = self.begun else { return 0.0 };
        let per_second = rate.count as f64 / rate.per.as_secs_f64();
        let left = amount - now.saturating_sub(at).as_secs_f64() * per_second;
        if left > 0.0 { left } else { 0.0 } // also for NaN
    }

    /// Returns the number of available retries.
    pub fn tokens(&self, now: Moment) -> f64 {
        let Some(Gauge { amount, at }) = self.tokens else { return MAX_TOKENS };
        let earned = now.saturating_sub(at).as_secs_f64() * TOKENS_PER_SECOND;
        (amount + earned).min(MAX_TOKENS)
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns the moment at which the breaker opened, if open.
    pub fn open_since(&self) -> Option<Moment> {
        self.opened.map(|opened| opened.at)
    }
}

/// Returns the time until another attempt may begin.
fn time_for(begun: f64, rate: Rate) -> Duration {
    let count = rate.count as f64;
    let seconds = (begun + 1.0 - count) / count * rate.per.as_secs_f64();
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).saturating_add(MIN_WAIT)
}
