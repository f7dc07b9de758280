//! What comes of a policy in a long outage.

use std::time::Duration;

use anyhow::Result;
use ftsh_syntax::backoff::{Policy, PolicyKind};
use rand::RngExt;

use super::Options;
use crate::common::statistics::Quantiles;
use crate::common::{Crowd, random};
use crate::scenario::outage;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Retries a second by time, in seconds.
    pub rates: Vec<(f64, f64)>,
    /// The most retries a second in any interval.
    pub peak: f64,
    /// For how many seconds the rate is over [`HEADROOM`] times the capacity.
    pub over: f64,
    /// Retries a second in the second half of the outage.
    pub long_run: f64,
    /// What the rate is not above in 99 % of the intervals of that half.
    pub long_run_p99: f64,
    /// From the end of an outage that is as long to the first contact, in seconds.
    pub notice: Quantiles,
}

/// How much more than the capacity chance may bring: an interval of 100 requests at the capacity has
/// up to 125 of them in 99 of 100 cases, if they come at random.
pub const HEADROOM: f64 = 1.25;

/// Requests that arrive in an interval at the capacity.
const PER_INTERVAL: f64 = 100.0;

/// Where delays are far longer than intervals have to be, they are longer too.
const MOST_INTERVALS: f64 = 5000.0;

/// So many clients stand for all if there are more.
const MOST_CLIENTS: u32 = 20_000;

/// The outage lasts for so many times the longest delay.
const LENGTH: u32 = 16;

/// Simulates an outage that is long for this policy.
pub fn check(options: &Options, policy: &Policy, place: u64) -> Checked {
    let clients = options.clients.min(MOST_CLIENTS);
    // Each stands for so many.
    let weight = f64::from(options.clients) / f64::from(clients);
    let interval = PER_INTERVAL * weight / options.capacity;
    let outage = length(policy, interval);
    let seconds = outage.as_secs_f64();
    let interval = interval.max(seconds / MOST_INTERVALS);
    let intervals = (seconds / interval) as usize;
    let mut counts = vec![0_u32; intervals + 1];
    let mut notice = Vec::with_capacity(clients as usize);
    for client in 0..clients {
        let mut random = random(options.common.seed, &[place, u64::from(client)]);
        outage::retry(policy, outage, &mut random, |at| {
            counts[((at.as_secs_f64() / interval) as usize).min(intervals)] += 1;
        });
        // Another outage that ends somewhere in the second half of this one.
        let end = outage.mul_f64(1.0 - 0.5 * random.random::<f64>());
        notice.push(outage::retry(policy, end, &mut random, |_| {}).as_secs_f32());
    }
    // The last is not whole.
    counts.truncate(intervals.max(1));
    let rate = |count: &u32| f64::from(*count) * weight / interval;
    let later = &counts[counts.len() / 2..];
    let quantiles = Quantiles::new(later.iter().map(|count| rate(count) as f32).collect());
    let over = counts.iter().filter(|count| rate(count) > HEADROOM * options.capacity).count();
    Checked {
        rates: counts
            .iter()
            .enumerate()
            .map(|(at, it)| ((at as f64 + 0.5) * interval, rate(it)))
            .collect(),
        peak: counts.iter().map(rate).fold(0.0, f64::max),
        over: over as f64 * interval,
        long_run: quantiles.mean().unwrap_or_default(),
        long_run_p99: quantiles.at(0.99).unwrap_or_default(),
        notice: Quantiles::new(notice),
    }
}

/// How long an outage must be for delays to be at their longest for a while, and for a few hundred
/// intervals.
fn length(policy: &Policy, interval: f64) -> Duration {
    let intervals = Duration::try_from_secs_f64(interval * 200.0).unwrap_or(Duration::MAX);
    policy.cap().saturating_mul(LENGTH).max(intervals)
}

/// Refuses what retries so rapidly that its simulation would not end.
pub fn refuse_rapid(options: &Options, policy: &Policy) -> Result<()> {
    let weight = f64::from(options.clients) / f64::from(options.clients.min(MOST_CLIENTS));
    let outage = length(policy, PER_INTERVAL * weight / options.capacity);
    let crowd = Crowd::from(policy.clone());
    outage::check(&crowd, f64::from(options.clients.min(MOST_CLIENTS)) * 20.0, outage)
}

/// The mean delay in the long run as a part of the longest.
pub fn mean_part(kind: PolicyKind) -> f64 {
    const DELAYS: u32 = 20_000;
    let mut policy = Policy::new(kind);
    policy.from = Duration::from_millis(1);
    policy.to = Duration::from_secs(1000);
    let mut random = random(0, &[]);
    let mut state = policy.start();
    let mut now = Duration::ZERO;
    let mut after = |count: u32, now: &mut Duration| {
        let start = *now;
        for _ in 0..count {
            *now = now.saturating_add(policy.next_delay(&mut state, *now, &mut random));
        }
        now.saturating_sub(start).as_secs_f64()
    };
    after(1000, &mut now);
    after(DELAYS, &mut now) / f64::from(DELAYS) / policy.to.as_secs_f64()
}
