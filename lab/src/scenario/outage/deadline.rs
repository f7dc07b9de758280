//! Clients that share a deadline, with and without the shell's last attempt.

use std::time::Duration;

use anyhow::Result;
use ftsh::backoff::{Policy, last_attempt};
use ftsh::duration::Exact;

use super::{Options, crowd};
use crate::common::{
    Axis, Column, Crowd, Panel, Progress, Random, Series, Style, Table, Value, random, trials,
};

/// Enough for shares to be right to a percent.
const CLIENTS: u32 = 20_000;

/// How long outages last, as parts of the deadline.
const OUTAGES: [(f64, &str, &str); 6] = [
    (0.5, "succeed_percent_at_50", "50 %"),
    (0.7, "succeed_percent_at_70", "70 %"),
    (0.8, "succeed_percent_at_80", "80 %"),
    (0.9, "succeed_percent_at_90", "90 %"),
    (0.95, "succeed_percent_at_95", "95 %"),
    (0.99, "succeed_percent_at_99", "99 %"),
];

/// Lines in the picture: more can't be told apart.
const LINES: usize = 4;

/// What is to be shown.
pub struct Survivors {
    /// A row per crowd and rule.
    pub table: Table,
    /// The same for all lengths of outages.
    pub panel: Panel,
}

/// Which share of the clients succeeds by the deadline when an outage lasts for most of it.
pub fn table(options: &Options, crowds: &[Crowd], labels: &[String]) -> Result<Survivors> {
    let deadline = options.deadline;
    for crowd in crowds {
        crowd::check(crowd, f64::from(CLIENTS), deadline)?;
    }
    let cases: Vec<_> =
        (0..crowds.len()).flat_map(|crowd| [(crowd, false), (crowd, true)]).collect();
    let progress = Progress::new(cases.len());
    let lasts = trials(&cases, &progress, |(crowd, rule)| {
        // Both rules with the same random numbers.
        let mut random = random(options.common.seed, &[*crowd as u64, u64::MAX]);
        let clients = 0..options.clients.min(CLIENTS) as usize;
        let last = |client| last_try(crowds[*crowd].policy(client), deadline, *rule, &mut random);
        clients.map(last).map(|last| last.as_secs_f32()).collect::<Vec<_>>()
    });
    let mut columns =
        vec![Column::new("policy", "policy", ""), Column::new("last_attempt", "last", "attempt")];
    columns.extend(OUTAGES.iter().map(|(_, key, head)| Column::new(key, head, "")));
    columns.push(Column::hidden("backoff"));
    let title = format!(
        "Percent of clients with a deadline of {} that succeed when the outage lasts for 50 %, 70 % \
         … of it, without and with the shell's rule of a last attempt in the time left",
        Exact(deadline)
    );
    let mut table = Table::new("deadline", title, columns);
    let mut series = Vec::new();
    for ((crowd, rule), lasts) in cases.into_iter().zip(lasts) {
        let mut row = vec![labels[crowd].as_str().into(), Value::Flag(rule)];
        let share = |part| survivors(&lasts, deadline.as_secs_f64() * part) * 100.0;
        row.extend(OUTAGES.iter().map(|(part, ..)| Value::Number(share(*part), 1)));
        row.push(crowds[crowd].to_string().into());
        table.push(row);
        if crowd < LINES {
            let points = (0..=200).map(|n| f64::from(n) / 200.0);
            let kind = if rule { "" } else { ", without" };
            series.push(Series {
                name: format!("{}{kind}", labels[crowd]),
                points: points.map(|part| (part * 100.0, share(part))).collect(),
                style: if rule { Style::Line } else { Style::Dashes },
                color: crowd,
            });
        }
    }
    let panel = Panel {
        title: format!(
            "Success by a deadline of {}, with the last attempt and without",
            Exact(deadline)
        ),
        x: Axis::linear("length of the outage, % of the deadline").between(50.0, 100.0),
        y: Axis::linear("clients that succeed, %").between(0.0, 100.0),
        series,
    };
    Ok(Survivors { table, panel })
}

/// The share of clients that succeed if an outage lasts for `outage` seconds: those that try again
/// after it.
pub fn survivors(lasts: &[f32], outage: f64) -> f64 {
    let after = lasts.iter().filter(|last| f64::from(**last) >= outage).count();
    after as f64 / lasts.len().max(1) as f64
}

/// When a client tries for the last time if all its attempts fail at once.
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
