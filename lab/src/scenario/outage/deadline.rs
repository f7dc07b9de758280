//! Clients that share a deadline, with and without the shell's last attempt.

use std::time::Duration;

use anyhow::Result;
use ftsh_syntax::backoff::{Policy, last_attempt};
use ftsh_syntax::duration::Exact;

use super::{OutageOptions, crowd};
use crate::common::{ClientCrowd, Panel, Random, ReportTable, TrialProgress, random, trials};
use crate::scenario::last_attempt::{DeadlineShares, OutageColumn, cases, panel, table};

/// Number of clients that makes shares precise to a percent.
const CLIENTS: u32 = 20_000;

/// Lengths of outages in the table.
const OUTAGES: [OutageColumn; 6] = [
    (500, "succeed_percent_at_50", "50 %"),
    (700, "succeed_percent_at_70", "70 %"),
    (800, "succeed_percent_at_80", "80 %"),
    (900, "succeed_percent_at_90", "90 %"),
    (950, "succeed_percent_at_95", "95 %"),
    (990, "succeed_percent_at_99", "99 %"),
];

/// Returns the share of clients that succeed by the deadline during outages of various lengths.
pub(super) fn compare(
    options: &OutageOptions,
    crowds: &[ClientCrowd],
    labels: &[String],
) -> Result<(ReportTable, Panel)> {
    let deadline = options.deadline;
    for crowd in crowds {
        crowd::check(crowd, f64::from(CLIENTS), deadline)?;
    }
    let cases = cases(crowds);
    let progress = TrialProgress::new(cases.len());
    let fates = trials(&cases, &progress, |(crowd, rule)| {
        // Both rules use the same random numbers.
        let mut random = random(options.common.seed, &[*crowd as u64, u64::MAX]);
        let clients = 0..options.clients.min(CLIENTS) as usize;
        let last = |client| last_try(crowds[*crowd].policy(client), deadline, *rule, &mut random);
        let lasts: Vec<_> = clients.map(last).map(|last| last.as_secs_f32()).collect();
        let share = |length: u32| {
            let outage = deadline.as_secs_f64() * (f64::from(length) / 1000.0);
            (length, survivors(&lasts, outage) * 100.0)
        };
        let shares = (500..=1000).step_by(5).map(share).collect();
        DeadlineShares { crowd: *crowd, last_attempt: *rule, shares }
    });
    let title = format!(
        "Percent of clients with a deadline of {} that succeed when the outage lasts for 50 %, 70 % \
         … of it, without and with the shell's rule of a last attempt in the time left",
        Exact(deadline)
    );
    let table = table(title, &OUTAGES, crowds, labels, &fates);
    let title =
        format!("Success by a deadline of {}, with the last attempt and without", Exact(deadline));
    Ok((table, panel(title, "clients that succeed, %", labels, &fates)))
}

/// Returns the share of clients that succeed after an outage of `outage` seconds, because their
/// last attempt comes later.
pub fn survivors(lasts: &[f32], outage: f64) -> f64 {
    let after = lasts.iter().filter(|last| f64::from(**last) >= outage).count();
    after as f64 / lasts.len().max(1) as f64
}

/// Returns the time of a client's last attempt if all attempts fail at once.
pub fn last_try(policy: &Policy, deadline: Duration, rule: bool, random: &mut Random) -> Duration {
    let mut state = policy.start();
    let mut now = Duration::ZERO;
    loop {
        let delay = policy.next_delay(&mut state, now, random);
        match last_attempt(delay, deadline.saturating_sub(now), random) {
            Some(last) if rule => return now + last,
            Some(_) => return now,
            None => now += delay,
        }
    }
}
