//! Choice of a backoff: the rules of Thain, *Exponential Backoff in Distributed Systems*, 2009, and
//! a simulation of their results.

mod advice;
mod check;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::value_parser;
use ftsh_syntax::backoff::{Policy, PolicyKind};
use ftsh_syntax::duration::Exact;

pub use self::check::{Checked, HEADROOM, check};
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, PlotSeries, Report, ReportTable,
    SeriesStyle, TrialProgress, input, trials,
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
pub struct AdviseOptions {
    /// Number of clients
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub clients: u32,
    /// Rate of requests that the server can answer or refuse, like `50/s` or `3000/min`
    #[arg(long, value_name = "RATE", value_parser = input::rate)]
    pub capacity: f64,
    /// Time in which the server answers 99 % of requests in normal operation
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub p99: Duration,
    /// Time in which clients should notice the end of an outage
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub notice: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Policies that are compared with the rules': all random ones that grow, and plain backoff.
const KINDS: [PolicyKind; 7] = [
    PolicyKind::Ethernet,
    PolicyKind::Exponential,
    PolicyKind::Full,
    PolicyKind::Equal,
    PolicyKind::Decorrelated,
    PolicyKind::Proportional,
    PolicyKind::Windowed,
];

/// Factors by which the cap grows until the server can bear the policy.
const STRETCHES: [f64; 9] = [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];

/// A candidate with its results.
#[derive(Clone, Debug)]
pub struct PolicyCandidate {
    /// Policy with the cap that was found.
    pub policy: Policy,
    /// Results of the simulation.
    pub checked: Checked,
    /// True if the server can bear the policy.
    pub is_sustained: bool,
    /// True if 99 % of the clients notice in time.
    pub is_prompt: bool,
}

/// Runs the scenario.
pub fn run(options: &AdviseOptions) -> Result<Report> {
    let (candidates, is_rules) = candidates(options)?;
    // Smallest and largest cap of the rules.
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

impl AdviseOptions {
    /// Returns the time of one attempt of all clients at the server's capacity.
    fn clients_per_capacity(&self) -> Duration {
        Duration::try_from_secs_f64(f64::from(self.clients) / self.capacity)
            .unwrap_or(Duration::MAX)
    }
}

/// Longest cap that is advised or simulated.
const LONGEST: Duration = Duration::from_secs(100 * 86_400);

/// Returns the candidates: the policy of the rules first, or else the requested ones.
fn candidates(options: &AdviseOptions) -> Result<(Vec<PolicyCandidate>, bool)> {
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
        PolicyCandidate { policy, checked, is_sustained, is_prompt }
    };
    let asked_for = &options.common.policies;
    if !asked_for.is_empty() {
        let policies: Option<Vec<_>> =
            asked_for.iter().map(|crowd| crowd.single().cloned()).collect();
        let Some(policies) = policies else {
            bail!("`advise` takes one policy at a time, not `A + B`")
        };
        for policy in &policies {
            check::refuse_rapid(options, policy)?;
        }
        let cases: Vec<_> = policies.into_iter().enumerate().collect();
        let progress = TrialProgress::new(cases.len());
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
    // The policy of the rules is not adapted; the others are.
    let cases: Vec<_> = std::iter::once((PolicyKind::Ethernet, false))
        .chain(KINDS.map(|kind| (kind, true)))
        .collect();
    let progress = TrialProgress::new(cases.len());
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
            // If no cap suffices, the first shows the reason.
            found.get_or_insert(candidate);
        }
        found.unwrap_or_else(|| judge(policy(*kind, round_up(least)), 0))
    });
    let mut found = found;
    // The policy may suffice unchanged.
    if found.len() > 1 && found[0].policy == found[1].policy {
        found.remove(1);
    }
    Ok((found, true))
}

/// Rounds up to two digits.
fn round_up(length: Duration) -> Duration {
    let nanos = length.as_nanos();
    let mut step = 1;
    while nanos / step >= 100 {
        step *= 10;
    }
    let rounded = nanos.div_ceil(step) * step;
    Duration::from_nanos(u64::try_from(rounded).unwrap_or(u64::MAX))
}

/// Returns the best candidate: among policies that the server can bear in the long run, the one
/// with the soonest contact of 99 % of the clients.
fn best(candidates: &[PolicyCandidate]) -> Option<usize> {
    let notice = |at: &usize| candidates[*at].checked.notice.at(0.99).unwrap_or(f64::INFINITY);
    let sustained = (0..candidates.len()).filter(|at| candidates[*at].is_sustained);
    sustained.min_by(|a, b| notice(a).total_cmp(&notice(b)))
}

fn table(options: &AdviseOptions) -> ReportTable {
    let title = format!(
        "{} clients and a server for {} requests/s in a long outage: the rate of retries, and the \
         time until clients notice its end",
        options.clients, options.capacity
    );
    ReportTable::new(
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

fn row(candidate: &PolicyCandidate, is_best: bool) -> Vec<Cell> {
    let PolicyCandidate { policy, checked, is_sustained, is_prompt } = candidate;
    let mark = match (is_sustained, is_prompt) {
        (true, true) => "both",
        (true, false) => "server",
        (false, true) => "notice",
        (false, false) => "neither",
    };
    let notice = |part| Cell::from(checked.notice.at(part));
    vec![
        format!("{}{}", policy.kind.name(), if is_best { " *" } else { "" }).into(),
        Cell::number(policy.to.as_secs_f64()),
        Cell::number(checked.peak),
        Cell::number(checked.over),
        Cell::number(checked.long_run),
        Cell::number(checked.long_run_p99),
        notice(0.5),
        notice(0.99),
        notice(1.0),
        mark.into(),
        Cell::Flag(*is_sustained),
        Cell::Flag(*is_prompt),
        Cell::Flag(is_best),
        policy.to_string().into(),
    ]
}

fn picture(options: &AdviseOptions, candidates: &[PolicyCandidate]) -> Picture {
    let label = |candidate: &PolicyCandidate| {
        let Policy { kind, to, .. } = &candidate.policy;
        format!("{} to {}", kind.name(), Exact(*to))
    };
    let mut rates: Vec<_> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| PlotSeries {
            name: label(candidate),
            points: candidate.checked.rates.clone(),
            style: SeriesStyle::Line,
            color: at,
        })
        .collect();
    // The shortest of the outages.
    let ends = candidates.iter().filter_map(|it| it.checked.rates.last()).map(|it| it.0);
    let end = ends.fold(f64::INFINITY, f64::min);
    rates.push(PlotSeries {
        name: "capacity".into(),
        points: vec![(0.0, options.capacity), (end, options.capacity)],
        style: SeriesStyle::Dashes,
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
            PlotSeries {
                name: label(candidate),
                points: points.collect(),
                style: SeriesStyle::Line,
                color: at,
            }
        })
        .collect();
    let wish = options.notice.as_secs_f64();
    notice.push(PlotSeries {
        name: "wish".into(),
        points: vec![(wish, 0.0), (wish, 100.0)],
        style: SeriesStyle::Dashes,
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
