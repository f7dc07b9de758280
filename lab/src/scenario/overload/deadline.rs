//! Clients that share a deadline, with and without the shell's last attempt.

use std::time::Duration;

use ftsh::duration::Exact;

use super::{Deadline, Options, Setting, simulate};
use crate::common::{Column, Crowd, Progress, Table, Value, labels, random, trials};

/// How long the server is stopped, as parts of the deadline.
const OUTAGES: [(f64, &str, &str); 5] = [
    (0.5, "served_percent_at_50", "50 %"),
    (0.7, "served_percent_at_70", "70 %"),
    (0.8, "served_percent_at_80", "80 %"),
    (0.9, "served_percent_at_90", "90 %"),
    (0.95, "served_percent_at_95", "95 %"),
];

/// Which share of the clients has an answer by the deadline, which runs from the moment that the
/// server is stopped.
pub fn table(options: &Options, setting: &Setting, crowds: &[Crowd], limit: Duration) -> Table {
    let repeats = u64::from(options.common.trials(3));
    let mut cases = Vec::new();
    for crowd in 0..crowds.len() {
        for last_attempt in [false, true] {
            for (part, ..) in OUTAGES {
                cases.extend((0..repeats).map(|trial| (crowd, last_attempt, part, trial)));
            }
        }
    }
    let progress = Progress::new(cases.len());
    let mut shares = trials(&cases, &progress, |(crowd, last_attempt, part, trial)| {
        let outage = limit.mul_f64(*part);
        let by = setting.before + limit;
        let deadline = Some(Deadline { by, last_attempt: *last_attempt });
        let setting =
            Setting { outage, watch: limit.saturating_sub(outage), deadline, ..setting.clone() };
        // Both rules with the same random numbers.
        let random = random(options.common.seed, &[*crowd as u64, u64::MAX, *trial]);
        simulate(&setting, &crowds[*crowd], random).served(by)
    })
    .into_iter();
    let labels = labels(crowds);
    let mut columns =
        vec![Column::new("policy", "policy", ""), Column::new("last_attempt", "last", "attempt")];
    columns.extend(OUTAGES.iter().map(|(_, key, head)| Column::new(key, head, "")));
    columns.push(Column::hidden("backoff"));
    let title = format!(
        "Percent of clients that have an answer within {} when the server is stopped for 50 %, \
         70 % … of that, without and with the shell's rule of a last attempt in the time left",
        Exact(limit)
    );
    let mut table = Table::new("deadline", title, columns);
    for (crowd, label) in crowds.iter().zip(&labels) {
        for rule in [false, true] {
            let mut row = vec![label.as_str().into(), Value::Flag(rule)];
            for _ in OUTAGES {
                let sum: f64 = shares.by_ref().take(repeats as usize).sum();
                row.push(Value::Number(sum / repeats as f64 * 100.0, 1));
            }
            row.push(crowd.to_string().into());
            table.push(row);
        }
    }
    table
}
