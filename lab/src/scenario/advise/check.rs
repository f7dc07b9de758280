//! Simulation of a policy in a long outage.

use std::time::Duration;

use anyhow::Result;
use ftsh_syntax::backoff::{Policy, PolicyKind};
use rand::RngExt;

use super::AdviseOptions;
use crate::common::statistics::Quantiles;
use crate::common::{ClientCrowd, random};
use crate::scenario::outage;

/// Results of the simulation.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Retries per second by time, in seconds.
    pub rates: Vec<(f64, f64)>,
    /// Maximum number of retries per second in any interval.
    pub peak: f64,
    /// Number of seconds with a rate above [`HEADROOM`] times the capacity.
    pub over: f64,
    /// Retries per second in the second half of the outage.
    pub long_run: f64,
    /// Rate that 99 % of the intervals in the second half do not exceed.
    pub long_run_p99: f64,
    /// Time from the end of an outage of this length to the first contact, in seconds.
    pub notice: Quantiles,
}

/// Factor by which chance may exceed the capacity. An interval with 100 expected requests has at
/// most 125 of them in 99 % of cases.
pub const HEADROOM: f64 = 1.25;

/// Requests in an interval at the capacity.
const PER_INTERVAL: f64 = 100.0;

/// Maximum number of intervals; with long delays, intervals become longer.
const MOST_INTERVALS: f64 = 5000.0;

/// Maximum number of simulated clients, which stand for all.
const MOST_CLIENTS: u32 = 20_000;

/// Length of the outage as a multiple of the longest delay.
const LENGTH: u32 = 16;

/// Simulates an outage that is long for this policy.
pub fn check(options: &AdviseOptions, policy: &Policy, place: u64) -> Checked {
    let clients = options.clients.min(MOST_CLIENTS);
    // Each simulated client stands for several.
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
        // Another outage that ends in the second half of this one.
        let end = outage.mul_f64(1.0 - 0.5 * random.random::<f64>());
        notice.push(outage::retry(policy, end, &mut random, |_| {}).as_secs_f32());
    }
    // The last interval is incomplete.
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

/// Returns the length of the outage, long enough for the longest delays and for a few hundred
/// intervals.
fn length(policy: &Policy, interval: f64) -> Duration {
    let intervals = Duration::try_from_secs_f64(interval * 200.0).unwrap_or(Duration::MAX);
    policy.cap().saturating_mul(LENGTH).max(intervals)
}

/// Refuses a policy whose retries are too rapid for a simulation.
pub(super) fn refuse_rapid(options: &AdviseOptions, policy: &Policy) -> Result<()> {
    let weight = f64::from(options.clients) / f64::from(options.clients.min(MOST_CLIENTS));
    let outage = length(policy, PER_INTERVAL * weight / options.capacity);
    let crowd = ClientCrowd::from(policy.clone());
    outage::check(&crowd, f64::from(options.clients.min(MOST_CLIENTS)) * 20.0, outage)
}

/// Returns the mean delay in the long run as a part of the longest one.
pub(super) fn mean_part(kind: PolicyKind) -> f64 {
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
