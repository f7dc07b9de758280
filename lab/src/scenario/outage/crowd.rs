//! Retries of a crowd's clients, and their return after an outage.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::duration::Exact;
use rayon::prelude::*;

use super::OutageOptions;
use crate::common::statistics::Quantiles;
use crate::common::{ClientCrowd, Random, TrialProgress, random};

/// Results of a crowd.
#[derive(Clone, Debug)]
pub struct Retries {
    /// Number of retries in each bucket of the outage, per trial.
    pub arrivals: Vec<f64>,
    /// Time from the end of the outage to the first contact.
    pub contact: Contact,
    /// The same time for the clients of each policy.
    pub parts: Vec<Contact>,
}

/// Quantiles of the time to the first contact, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Contact {
    /// Median.
    pub median: f64,
    /// 99 % quantile.
    pub p99: f64,
    /// Maximum.
    pub worst: f64,
}

impl Contact {
    fn new(seconds: Vec<f32>) -> Self {
        let quantiles = Quantiles::new(seconds);
        let at = |part| quantiles.at(part).unwrap_or(f64::NAN);
        Self { median: at(0.5), p99: at(0.99), worst: at(1.0) }
    }
}

/// Maximum number of simulated retries.
const MOST_RETRIES: f64 = 2e10;

/// Maximum number of buckets.
const MOST_BUCKETS: u128 = 100_000;

/// Number of clients simulated together.
const CHUNK: u32 = 8192;

/// Counts of the clients so far.
struct ContactTally {
    arrivals: Vec<u64>,
    /// Times for each policy, in seconds.
    contacts: Vec<Vec<f32>>,
}

impl ContactTally {
    fn add(mut self, other: Self) -> Self {
        for (count, more) in self.arrivals.iter_mut().zip(other.arrivals) {
            *count += more;
        }
        for (contacts, more) in self.contacts.iter_mut().zip(other.contacts) {
            contacts.extend(more);
        }
        self
    }
}

/// Simulates each of the crowds.
pub fn simulate(options: &OutageOptions, crowds: &[ClientCrowd]) -> Result<Vec<Retries>> {
    if options.outage.as_nanos() / options.bucket.as_nanos() >= MOST_BUCKETS {
        let [outage, bucket] = [options.outage, options.bucket].map(Exact);
        bail!(
            "an outage of {outage} has over {MOST_BUCKETS} intervals of {bucket}: use a longer --bucket"
        );
    }
    let repeats = options.common.trials(1);
    for crowd in crowds {
        check(crowd, f64::from(options.clients) * f64::from(repeats), options.outage)?;
    }
    let chunks = options.clients.div_ceil(CHUNK);
    let progress = TrialProgress::new(crowds.len() * repeats as usize * chunks as usize);
    let simulate = |(at, crowd): (usize, &ClientCrowd)| {
        let place = |trial, chunk| [at as u64, u64::from(trial), u64::from(chunk)];
        let cases: Vec<_> =
            (0..repeats).flat_map(|trial| (0..chunks).map(move |chunk| (trial, chunk))).collect();
        retries(options, crowd, repeats, &cases, |trial, chunk| {
            progress.step();
            random(options.common.seed, &place(trial, chunk))
        })
    };
    Ok(crowds.iter().enumerate().map(simulate).collect())
}

fn retries(
    options: &OutageOptions,
    crowd: &ClientCrowd,
    repeats: u32,
    cases: &[(u32, u32)],
    random: impl Fn(u32, u32) -> Random + Sync,
) -> Retries {
    let width = options.bucket.as_secs_f64();
    let buckets = (options.outage.as_secs_f64() / width).ceil().max(1.0) as usize;
    let none =
        || ContactTally { arrivals: vec![0; buckets], contacts: vec![Vec::new(); crowd.0.len()] };
    // Sums of integers and sorted values do not depend on the order of the parts.
    let tally = cases
        .par_iter()
        .fold(none, |mut tally, (trial, chunk)| {
            let mut random = random(*trial, *chunk);
            let first = chunk * CHUNK;
            for client in first..first.saturating_add(CHUNK).min(options.clients) {
                let member = client as usize % crowd.0.len();
                let arrived = |at: Duration| {
                    let bucket = (at.as_secs_f64() / width) as usize;
                    tally.arrivals[bucket.min(buckets - 1)] += 1;
                };
                let back = retry(&crowd.0[member], options.outage, &mut random, arrived);
                tally.contacts[member].push(back.as_secs_f32());
            }
            tally
        })
        .reduce(none, ContactTally::add);
    let arrivals = tally.arrivals.iter().map(|count| *count as f64 / f64::from(repeats)).collect();
    let contact = Contact::new(tally.contacts.concat());
    Retries { arrivals, contact, parts: tally.contacts.into_iter().map(Contact::new).collect() }
}

/// Simulates the retries of one client; retries before the end of the outage fail at once. Returns
/// the time from the end to the first success.
pub fn retry(
    policy: &Policy,
    outage: Duration,
    random: &mut Random,
    mut arrived: impl FnMut(Duration),
) -> Duration {
    let mut state = policy.start();
    let mut now = Duration::ZERO;
    loop {
        now = now.saturating_add(policy.next_delay(&mut state, now, random));
        if now >= outage {
            return now.saturating_sub(outage);
        }
        arrived(now);
    }
}

/// Refuses crowds whose retries are too many for a simulation.
pub fn check(crowd: &ClientCrowd, clients: f64, outage: Duration) -> Result<()> {
    const SAMPLES: usize = 64;
    const MOST_EACH: u64 = 100_000;
    let mut random = random(0, &[]);
    let mut retries = 0_u64;
    for client in 0..SAMPLES {
        let policy = crowd.policy(client);
        let mut state = policy.start();
        let mut now = Duration::ZERO;
        let mut own = 0;
        while now < outage && own < MOST_EACH {
            let delay = policy.next_delay(&mut state, now, &mut random);
            now = now.saturating_add(delay);
            own += 1;
        }
        // The rate would not decrease later.
        let rest = outage.as_secs_f64() / now.as_secs_f64().max(1e-9);
        retries = retries.saturating_add((own as f64 * rest.max(1.0)) as u64);
    }
    let total = retries as f64 / SAMPLES as f64 * clients;
    if total > MOST_RETRIES {
        let outage = Exact(outage);
        bail!(
            "`{crowd}` makes about {total:.0e} retries in an outage of {outage}, too many to \
             simulate: choose longer delays, a shorter outage or fewer clients"
        );
    }
    Ok(())
}
