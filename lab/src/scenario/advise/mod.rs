//! Which backoff to use: the rules of Thain, *Exponential Backoff in Distributed Systems*, 2009, and
//! a simulation of what comes of them.

mod advice;
mod check;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::value_parser;
use ftsh_syntax::backoff::{Policy, PolicyKind};
use ftsh_syntax::duration::Exact;

pub use self::check::{Checked, HEADROOM, check};
use crate::common::{
    Axis, Column, Common, Panel, Picture, Progress, Report, Series, Style, Table, Value, input,
    trials,
};

/// Which policy to use, for so many clients of a server of some capacity
///
/// The rules: T is the time in which the service answers 99 % of its requests, F is 2, M is at least
/// the clients divided by the capacity, so that the server can stand them all retrying for ever, and
/// at most the time in which clients should notice that it is back. Then a long outage is simulated,
/// with that policy and with others.
///
/// Example: ftsh-lab advise --clients 1000 --capacity 50/s --p99 10ms --notice 1m
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// How many clients there are
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub clients: u32,
    /// How many requests the server can answer or refuse, like `50/s` or `3000/min`
    #[arg(long, value_name = "RATE", value_parser = input::rate)]
    pub capacity: f64,
    /// The time in which it answers 99 % of requests when all is well
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub p99: Duration,
    /// How soon clients should notice the end of an outage
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub notice: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: Common,
}

/// The policies that are tried besides the rules': all that grow and are random, and plain backoff.
const KINDS: [PolicyKind; 7] = [
    PolicyKind::Ethernet,
    PolicyKind::Exponential,
    PolicyKind::Full,
    PolicyKind::Equal,
    PolicyKind::Decorrelated,
    PolicyKind::Proportional,
    PolicyKind::Windowed,
];

/// How much longer the cap is made if it is too short for the server, one after the other.
const STRETCHES: [f64; 9] = [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];

/// A candidate and what came of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// With the cap that was found for it.
    pub policy: Policy,
    /// What came of it.
    pub checked: Checked,
    /// Whether the server can stand it.
    pub is_sustained: bool,
    /// Whether 99 % of the clients notice in time.
    pub is_prompt: bool,
}

/// Gives advice.
pub fn run(options: &Options) -> Result<Report> {
    let (candidates, is_rules) = candidates(options)?;
    // The least cap of the rules, and the most.
    let least = options.clients_per_capacity();
    let best = best(&candidates);
    let mut table = table(options);
    for (at, candidate) in candidates.iter().enumerate() {
        table.push(row(candidate, best == Some(at)));
    }
    let mut notes = vec![advice::marks()];
    let conflict = least > options.notice || options.p99 > options.notice;
    if is_rules {
        notes.push(advice::rules(options, &candidates[0]));
    }
    notes.push(advice::verdict(options, &candidates, best));
    if conflict && is_rules {
        notes.push(advice::conflicts(options, least));
    }
    Ok(Report { tables: vec![table], notes, picture: picture(options, &candidates) })
}

impl Options {
    /// How long the clients take to try once each at the server's capacity.
    fn clients_per_capacity(&self) -> Duration {
        Duration::try_from_secs_f64(f64::from(self.clients) / self.capacity)
            .unwrap_or(Duration::MAX)
    }
}

/// The longest cap that is advised, or simulated.
const LONGEST: Duration = Duration::from_secs(100 * 86_400);

/// What is compared: the rules' policy first, or else what was asked for.
fn candidates(options: &Options) -> Result<(Vec<Candidate>, bool)> {
    let least = options.clients_per_capacity();
    if least > LONGEST {
        bail!(
            "at {}/s it takes {} clients over {} to try once each: no backoff helps",
            options.capacity,
            options.clients,
            Exact(LONGEST)
        );
    }
    let judge = |policy: Policy, place: u64| {
        let checked = check(options, &policy, place);
        let is_sustained = checked.long_run_p99 <= HEADROOM * options.capacity;
        let is_prompt =
            checked.notice.at(0.99).is_some_and(|it| it <= options.notice.as_secs_f64());
        Candidate { policy, checked, is_sustained, is_prompt }
    };
    let asked_for = &options.common.policies;
    if !asked_for.is_empty() {
        let policies: Option<Vec<_>> =
            asked_for.iter().map(|crowd| crowd.single().cloned()).collect();
        let Some(policies) = policies else {
            bail!("advice is about one policy at a time, not `A + B`")
        };
        for policy in &policies {
            check::refuse_rapid(options, policy)?;
        }
        let cases: Vec<_> = policies.into_iter().enumerate().collect();
        let progress = Progress::new(cases.len());
        let judge = |(at, policy): &(usize, Policy)| judge(policy.clone(), *at as u64);
        return Ok((trials(&cases, &progress, judge), false));
    }
    let policy = |kind: PolicyKind, to: Duration| {
        let mut policy = Policy::new(kind);
        policy.from = options.p99.min(to);
        policy.to = to;
        policy.by = 2.0;
        policy
    };
    // The rules' own, which isn't made to fit, and the others.
    let cases: Vec<_> = std::iter::once((PolicyKind::Ethernet, false))
        .chain(KINDS.map(|kind| (kind, true)))
        .collect();
    let progress = Progress::new(cases.len());
    let found = trials(&cases, &progress, |(kind, fits)| {
        let mean = check::mean_part(*kind);
        let mut found = None;
        for (at, stretch) in STRETCHES.iter().enumerate() {
            let part = if *fits { stretch / mean } else { 1.0 };
            let to = round_up(least.mul_f64(part).max(options.p99));
            let candidate = judge(policy(*kind, to), *kind as u64 * 100 + at as u64);
            if candidate.is_sustained || !fits {
                return candidate;
            }
            // If none will do, the first shows why.
            found.get_or_insert(candidate);
        }
        found.unwrap_or_else(|| judge(policy(*kind, round_up(least)), 0))
    });
    let mut found = found;
    // It may do as it is.
    if found.len() > 1 && found[0].policy == found[1].policy {
        found.remove(1);
    }
    Ok((found, true))
}

/// To two digits, upwards.
fn round_up(length: Duration) -> Duration {
    let nanos = length.as_nanos();
    let mut step = 1;
    while nanos / step >= 100 {
        step *= 10;
    }
    let rounded = nanos.div_ceil(step) * step;
    Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX))
}

/// The measure: of the policies that the server can stand in the long run, the one with which 99 %
/// of the clients notice soonest.
fn best(candidates: &[Candidate]) -> Option<usize> {
    let notice = |at: &usize| candidates[*at].checked.notice.at(0.99).unwrap_or(f64::INFINITY);
    let sustained = (0..candidates.len()).filter(|at| candidates[*at].is_sustained);
    sustained.min_by(|a, b| notice(a).total_cmp(&notice(b)))
}

fn table(options: &Options) -> Table {
    let title = format!(
        "{} clients and a server for {} requests/s in a long outage: the rate of retries, and the \
         time until clients notice its end",
        options.clients, options.capacity
    );
    Table::new(
        "advise",
        title,
        vec![
            Column::new("policy", "policy", ""),
            Column::new("to_s", "to", "s"),
            Column::new("peak_per_s", "peak", "/s"),
            Column::new("over_capacity_s", "over", "s"),
            Column::new("long_run_per_s", "long", "run /s"),
            Column::new("long_run_p99_per_s", "p99", "/s"),
            Column::new("notice_median_s", "notice", "median s"),
            Column::new("notice_p99_s", "p99", "s"),
            Column::new("notice_worst_s", "worst", "s"),
            Column::new("mark", "fits", ""),
            Column::hidden("sustained"),
            Column::hidden("prompt"),
            Column::hidden("recommended"),
            Column::hidden("backoff"),
        ],
    )
}

fn row(candidate: &Candidate, is_best: bool) -> Vec<Value> {
    let Candidate { policy, checked, is_sustained, is_prompt } = candidate;
    let mark = match (is_sustained, is_prompt) {
        (true, true) => "both",
        (true, false) => "server",
        (false, true) => "notice",
        (false, false) => "neither",
    };
    let notice = |part| Value::from(checked.notice.at(part));
    vec![
        format!("{}{}", policy.kind.name(), if is_best { " *" } else { "" }).into(),
        Value::number(policy.to.as_secs_f64()),
        Value::number(checked.peak),
        Value::number(checked.over),
        Value::number(checked.long_run),
        Value::number(checked.long_run_p99),
        notice(0.5),
        notice(0.99),
        notice(1.0),
        mark.into(),
        Value::Flag(*is_sustained),
        Value::Flag(*is_prompt),
        Value::Flag(is_best),
        policy.to_string().into(),
    ]
}

fn picture(options: &Options, candidates: &[Candidate]) -> Picture {
    let label = |candidate: &Candidate| {
        let Policy { kind, to, .. } = &candidate.policy;
        format!("{} to {}", kind.name(), Exact(*to))
    };
    let mut rates: Vec<_> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| Series {
            name: label(candidate),
            points: candidate.checked.rates.clone(),
            style: Style::Line,
            color: at,
        })
        .collect();
    // The shortest of the outages.
    let ends = candidates.iter().filter_map(|it| it.checked.rates.last()).map(|it| it.0);
    let end = ends.fold(f64::INFINITY, f64::min);
    rates.push(Series {
        name: "capacity".into(),
        points: vec![(0.0, options.capacity), (end, options.capacity)],
        style: Style::Dashes,
        color: 6,
    });
    let mut notice: Vec<_> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| {
            let points = (0..=100).map(|percent| {
                let time = candidate.checked.notice.at(f64::from(percent) / 100.0);
                (time.unwrap_or(f64::NAN), f64::from(percent))
            });
            Series {
                name: label(candidate),
                points: points.collect(),
                style: Style::Line,
                color: at,
            }
        })
        .collect();
    let wish = options.notice.as_secs_f64();
    notice.push(Series {
        name: "wish".into(),
        points: vec![(wish, 0.0), (wish, 100.0)],
        style: Style::Dashes,
        color: 6,
    });
    Picture {
        title: format!(
            "{} clients and a server for {} requests/s",
            options.clients, options.capacity
        ),
        panels: vec![
            Panel {
                title: "Retries during a long outage".into(),
                x: Axis::linear("time since the beginning of the outage, s").between(0.0, end),
                y: Axis::log("retries a second"),
                series: rates,
            },
            Panel {
                title: "Clients that have noticed its end".into(),
                x: Axis::linear("time since the end of the outage, s"),
                y: Axis::linear("clients, %").between(0.0, 100.0),
                series: notice,
            },
        ],
    }
}
