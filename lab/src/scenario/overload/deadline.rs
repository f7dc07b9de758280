//! Clients that share a deadline, with and without the shell's last attempt.

use std::time::Duration;

use anyhow::Result;
use ftsh_syntax::duration::Exact;

use super::{Deadline, OverloadOptions, OverloadSettings, simulate};
use crate::common::statistics::mean;
use crate::common::{
    ClientCrowd, Panel, ReportTable, TrialProgress, input, labels, random, trials,
};
use crate::scenario::last_attempt::{DeadlineShares, OutageColumn, cases, panel, table};

/// Lengths of the stop in the table.
const OUTAGES: [OutageColumn; 5] = [
    (500, "served_percent_at_50", "50 %"),
    (700, "served_percent_at_70", "70 %"),
    (800, "served_percent_at_80", "80 %"),
    (900, "served_percent_at_90", "90 %"),
    (950, "served_percent_at_95", "95 %"),
];

/// Returns the share of clients with an answer by the deadline, which counts from the stop of the
/// server.
pub(super) fn compare(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
    limit: Duration,
) -> Result<(ReportTable, Panel)> {
    let mut lengths: Vec<_> = OUTAGES.iter().map(|(length, ..)| *length).collect();
    if options.common.plot.is_some() {
        lengths = (500..=1000).step_by(25).collect();
    }
    let repeats = options.common.trials(3) as usize;
    let runs: Vec<_> = lengths
        .iter()
        .flat_map(|length| (0..repeats).map(move |trial| (*length, trial as u64)))
        .collect();
    let stopped = |length: u32| {
        let outage = limit.mul_f64(f64::from(length) / 1000.0);
        OverloadSettings { outage, watch: limit.saturating_sub(outage), ..setting.clone() }
    };
    let cases = cases(crowds);
    let count = cases.len() * runs.len();
    input::bounded(stopped(0).events() * count as f64)?;
    let by = setting.before + limit;
    let progress = TrialProgress::new(count);
    let fate = |(crowd, last_attempt)| {
        let deadline = Some(Deadline { by, last_attempt });
        let served = trials(&runs, &progress, |(length, trial)| {
            // Both rules use the same random numbers.
            let random = random(options.common.seed, &[crowd as u64, u64::MAX, *trial]);
            let setting = OverloadSettings { deadline, ..stopped(*length) };
            simulate(&setting, &crowds[crowd], random).served(by)
        });
        let percent = |served: &[f64]| mean(served.iter().copied()) * 100.0;
        let shares = lengths.iter().copied().zip(served.chunks(repeats).map(percent)).collect();
        DeadlineShares { crowd, last_attempt, shares }
    };
    let fates: Vec<_> = cases.into_iter().map(fate).collect();
    let labels = labels(crowds);
    let title = format!(
        "Percent of clients that have an answer within {} when the server is stopped for 50 %, \
         70 % … of that, without and with the shell's rule of a last attempt in the time left",
        Exact(limit)
    );
    let table = table(title, &OUTAGES, crowds, &labels, &fates);
    let title =
        format!("Answers by a deadline of {}, with the last attempt and without", Exact(limit));
    Ok((table, panel(title, "clients with an answer, %", &labels, &fates)))
}
