//! An outage whose beginning all clients notice at the same moment. *Exponential back-off,
//! revisited*, 2024.

mod crowd;
mod deadline;

use std::time::Duration;

use anyhow::Result;
use clap::value_parser;
use ftsh_syntax::duration::Exact;

pub use self::crowd::{Contact, Retries, check, retry, simulate};
pub use self::deadline::{last_try, survivors};
use crate::common::statistics::{Rise, rises, smooth};
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, PlotSeries, Report, ReportTable,
    SeriesStyle, input, labels, legend,
};

/// A server goes down, and all clients notice at once: when their retries arrive
///
/// Tables: `outage` (the load and the time to first contact), `halves` (of crowds with several
/// policies), `deadline` (who succeeds in time), `arrivals` (per bucket; for --json and --csv).
///
/// Example: ftsh-lab outage --clients 1000000 --policy proportional --policy 'windowed from 250 ms'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct OutageOptions {
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=10_000_000))]
    pub clients: u32,
    /// Duration of the outage
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = input::length)]
    pub outage: Duration,
    /// Length of the intervals in which arrivals are counted
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = input::length)]
    pub bucket: Duration,
    /// Duration of a client's attempts, from the beginning of the outage, for the table `deadline`
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = input::length)]
    pub deadline: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Policies with slots and windows as long as a bucket, and with about the same first delay.
pub const POLICIES: [&str; 8] = [
    "proportional from 500 ms to 1 min",
    "slotted from 250 ms to 1 min",
    "windowed from 250 ms to 1 min",
    "exponential from 500 ms to 1 min",
    "ethernet from 500 ms to 1 min",
    "full from 500 ms to 1 min",
    "decorrelated from 500 ms to 1 min",
    "full from 500 ms to 1 min + fixed from 1 s",
];

/// Runs the scenario.
pub fn run(options: &OutageOptions) -> Result<Report> {
    let crowds = options.common.crowds(&POLICIES)?;
    let labels = labels(&crowds);
    let results = crowd::simulate(options, &crowds)?;
    let mut arrivals = arrivals_table();
    let mut outage = outage_table(options);
    let mut halves = halves_table();
    for (at, result) in results.iter().enumerate() {
        let text = || vec![Cell::from(labels[at].as_str())];
        let backoff = || vec![Cell::from(crowds[at].to_string())];
        outage.push([text(), load(options, result), contact(&result.contact), backoff()].concat());
        if crowds[at].single().is_none() {
            for (policy, part) in crowds[at].0.iter().zip(&result.parts) {
                let policy = Cell::from(policy.to_string());
                halves.push([text(), vec![policy], contact(part)].concat());
            }
        }
        for (bucket, count) in result.arrivals.iter().enumerate() {
            let start = bucket as f64 * options.bucket.as_secs_f64();
            let rate = count / options.bucket.as_secs_f64();
            let row = [Cell::Number(start, 3), Cell::Number(*count, 0), Cell::number(rate)];
            arrivals.push([text(), row.to_vec(), backoff()].concat());
        }
    }
    let (survivors, panel) = deadline::compare(options, &crowds, &labels)?;
    let mut tables = vec![outage];
    tables.extend((!halves.rows.is_empty()).then_some(halves));
    tables.extend([survivors, arrivals]);
    let notes = vec![
        "Waves are local maxima of the smoothed arrivals, after the first rise, beyond six \
         standard deviations of noise and 2 %. Depth is that of the deepest minimum below the \
         maximum after it."
            .to_owned(),
        legend(&crowds, &labels),
    ];
    let picture = picture(options, &labels, &results, panel);
    Ok(Report { tables, notes, picture })
}

fn outage_table(options: &OutageOptions) -> ReportTable {
    let title = format!(
        "{} clients see an outage of {} begin: their retries, and when they are back",
        options.clients,
        Exact(options.outage)
    );
    ReportTable::new(
        "outage",
        title,
        vec![
            Column::new("policy", "policy", ""),
            Column::new("retries_per_client", "retries", "/client"),
            Column::new("peak_per_s", "peak", "/s"),
            Column::new("peak_to_mean", "peak/", "mean"),
            Column::new("waves", "waves", ""),
            Column::new("deepest_wave_percent", "depth", "%"),
            Column::new("contact_median_s", "contact", "median s"),
            Column::new("contact_p99_s", "p99", "s"),
            Column::new("contact_worst_s", "worst", "s"),
            Column::hidden("backoff"),
        ],
    )
}

fn halves_table() -> ReportTable {
    ReportTable::new(
        "halves",
        "The parts of crowds with several policies",
        vec![
            Column::new("policy", "crowd", ""),
            Column::new("part", "part", ""),
            Column::new("contact_median_s", "contact", "median s"),
            Column::new("contact_p99_s", "p99", "s"),
            Column::new("contact_worst_s", "worst", "s"),
        ],
    )
}

fn arrivals_table() -> ReportTable {
    let mut table = ReportTable::new(
        "arrivals",
        "Retries that arrive, by time since the beginning of the outage",
        vec![
            Column::new("policy", "policy", ""),
            Column::new("time_s", "time", "s"),
            Column::new("retries", "retries", ""),
            Column::new("rate_per_s", "rate", "/s"),
            Column::hidden("backoff"),
        ],
    );
    table.is_long = true;
    table
}

/// Returns retries, peak and waves.
fn load(options: &OutageOptions, result: &Retries) -> Vec<Cell> {
    let total: f64 = result.arrivals.iter().sum();
    let smoothed = smooth(&result.arrivals);
    let peak = result.arrivals.iter().copied().fold(0.0, f64::max);
    let mean = total / result.arrivals.len().max(1) as f64;
    // The first wave follows the silence after the beginning.
    let waves: Vec<_> =
        rises(&smoothed).into_iter().filter(|rise| !is_first(rise, &smoothed)).collect();
    let deepest = waves.iter().map(|rise| rise.depth() * 100.0).fold(0.0, f64::max);
    vec![
        Cell::Number(total / f64::from(options.clients), 2),
        Cell::Number(peak / options.bucket.as_secs_f64(), 0),
        Cell::Number(peak / mean, 1),
        waves.len().into(),
        Cell::Number(deepest, 0),
    ]
}

/// True if the rise is the first.
fn is_first(rise: &Rise, smoothed: &[f64]) -> bool {
    smoothed[..=rise.to.0].is_sorted()
}

/// Returns the time from the end of the outage to the first contact.
fn contact(contact: &Contact) -> Vec<Cell> {
    [contact.median, contact.p99, contact.worst].map(|time| Cell::Number(time, 2)).to_vec()
}

/// Number of results that are also shown in one panel.
const COMPARED: usize = 3;

fn picture(
    options: &OutageOptions,
    labels: &[String],
    results: &[Retries],
    deadline: Panel,
) -> Picture {
    let width = options.bucket.as_secs_f64();
    let counts = results.iter().flat_map(|result| &result.arrivals);
    let peak = counts.copied().fold(0.0, f64::max) / width;
    let series = |at: usize, name: &str| {
        let points = results[at].arrivals.iter().enumerate();
        let points = points.map(|(bucket, count)| ((bucket as f64 + 0.5) * width, count / width));
        PlotSeries {
            name: name.to_owned(),
            points: points.collect(),
            style: SeriesStyle::Line,
            color: at,
        }
    };
    let panel = |title: String, series: Vec<PlotSeries>| Panel {
        title,
        x: Axis::linear("time since the beginning of the outage, s"),
        // The same scale for all allows a comparison.
        y: Axis::log("retries / s").between(peak / 2e3, peak * 1.5),
        series,
    };
    let compared = 0..results.len().min(COMPARED);
    let mut panels = Vec::new();
    if compared.len() > 1 {
        let series = compared.map(|at| series(at, &labels[at])).collect();
        panels.push(panel("Retries".to_owned(), series));
    }
    let one = |at: usize| panel(format!("Retries: {}", labels[at]), vec![series(at, "")]);
    panels.extend((0..results.len()).map(one));
    panels.push(deadline);
    let clients = options.clients;
    Picture { title: format!("An outage that {clients} clients see begin"), panels }
}
