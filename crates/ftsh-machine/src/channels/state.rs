//! What is known of a channel, and what follows from it for an attempt.

use std::time::Duration;

use super::{Admission, Breaker, Claim, Moment, Passed, Rate, Rules};

/// No more retries are saved up; a channel begins with as many.
const MOST_TOKENS: f64 = 10.0;
/// A retry that comes without any first attempt.
const TOKENS_PER_SECOND: f64 = 0.1;
/// What sums of fractions may be wrong by.
const SLACK: f64 = 1e-6;
/// A wait isn't shorter, however the fractions are rounded.
const SHORTEST: Duration = Duration::from_micros(1);

/// What a channel remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// How many of the attempts that were begun count for the rate; it runs out as time passes.
    pub(super) begun: Option<Level>,
    /// How many retries there may be; none if nobody has counted.
    pub(super) tokens: Option<Level>,
    /// Failures in a row, of anybody.
    pub(super) failures: u64,
    /// When the last one was.
    pub(super) failed: Moment,
    /// Since when attempts are refused, by those who have a breaker.
    pub(super) opened: Option<Opened>,
}

/// An amount that changes with time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub(super) amount: f64,
    pub(super) at: Moment,
}

/// A breaker that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// After so many failures.
    pub(super) failures: u64,
    pub(super) at: Moment,
}

/// Who is in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// How many attempts, of anybody.
    pub attempts: u64,
    /// Whether one of them is the probe of an open breaker.
    pub probing: bool,
}

/// What becomes of the attempt whose turn it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It goes through; as the probe whose success closes the breaker, or not.
    Admitted {
        /// Whether it is the probe.
        probe: bool,
    },
    /// It is refused.
    Refused(Admission),
    /// It waits until somebody leaves.
    Full,
    /// It waits for this moment.
    NotBefore(Moment),
}

impl State {
    /// Decides about the attempt whose turn it is. What it needs is taken only if it goes through: first
    /// the breaker, which needs nothing, then places, the budget, and the rate.
    pub fn admit(&mut self, rules: &Rules, claim: Claim, inside: Inside, now: Moment) -> Verdict {
        let mut probe = false;
        if let Some(breaker) = rules.breaker
            && let Some(opened) = self.opened(breaker)
        {
            let left = opened.saturating_add(breaker.open).saturating_sub(now);
            // The time of the probe isn't known: whoever comes may ask again.
            if inside.probing || !left.is_zero() {
                return Verdict::Refused(Admission::Broken(left));
            }
            probe = true;
        }
        if rules.places.is_some_and(|places| inside.attempts >= places) {
            return Verdict::Full;
        }
        let tokens = self.tokens(now);
        let is_retry = claim == Claim::Retry;
        if rules.budget.is_some() && is_retry && tokens < 1.0 - SLACK {
            return Verdict::Refused(Admission::NoBudget);
        }
        if let Some(rate) = rules.rate {
            let begun = self.begun(rate, now);
            if begun + 1.0 > rate.count as f64 + SLACK {
                return Verdict::NotBefore(now.saturating_add(time_for(begun, rate)));
            }
            self.begun = Some(Level { amount: begun + 1.0, at: now });
        }
        if let Some(percent) = rules.budget {
            let change = match claim {
                Claim::First => percent / 100.0,
                Claim::Inner => 0.0,
                Claim::Retry => -1.0,
            };
            let amount = (tokens + change).clamp(0.0, MOST_TOKENS);
            self.tokens = Some(Level { amount, at: now });
        }
        Verdict::Admitted { probe }
    }

    /// Takes note of how an attempt ended that went through.
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

    /// Since when a breaker is open, if it is. Failures that come later, of those who don't obey it or
    /// began before, don't keep it open for longer.
    fn opened(&mut self, breaker: Breaker) -> Option<Moment> {
        let failures = breaker.failures;
        if self.failures < failures {
            return None;
        }
        // Another one may have opened earlier, after fewer failures.
        if self.opened.is_none_or(|opened| opened.failures < failures) {
            self.opened = Some(Opened { failures, at: self.failed });
        }
        self.opened.map(|opened| opened.at)
    }

    fn begun(&self, rate: Rate, now: Moment) -> f64 {
        let Some(Level { amount, at }) = self.begun else { return 0.0 };
        let per_second = rate.count as f64 / rate.per.as_secs_f64();
        let left = amount - now.saturating_sub(at).as_secs_f64() * per_second;
        if left > 0.0 { left } else { 0.0 } // also of what is no number
    }

    /// How many retries there may be by now.
    pub fn tokens(&self, now: Moment) -> f64 {
        let Some(Level { amount, at }) = self.tokens else { return MOST_TOKENS };
        let earned = now.saturating_sub(at).as_secs_f64() * TOKENS_PER_SECOND;
        (amount + earned).min(MOST_TOKENS)
    }

    /// Failures in a row.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Since when a breaker is open, if one is.
    pub fn open_since(&self) -> Option<Moment> {
        self.opened.map(|opened| opened.at)
    }
}

/// How long until one more may begin.
fn time_for(begun: f64, rate: Rate) -> Duration {
    let count = rate.count as f64;
    let seconds = (begun + 1.0 - count) / count * rate.per.as_secs_f64();
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).saturating_add(SHORTEST)
}
