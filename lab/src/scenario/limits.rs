//! Limits learned from the durations of earlier attempts, by `each usual or D`.

use std::time::Duration;

use anyhow::Result;
use clap::value_parser;
use ftsh_machine::durations::estimate::{MAX_SAMPLES, Sample};
use ftsh_machine::durations::execution::LimitedExecution;
use rand::RngExt;
use rand_distr::{Distribution, LogNormal};

use crate::common::statistics::{Quantiles, mean};
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, PlotSeries, Random, Report, ReportTable,
    SeriesStyle, TrialProgress, input, random, trials,
};

/// Good attempts that a learned limit cuts short, and the time until a hang ends
///
/// Each run of a script has one `try 12 times each usual or D`. Durations are lognormal, and some
/// attempts hang. After 150 runs, the work takes 2 or 5 times as long.
///
/// Example: ftsh-lab limits --sigma 0.3,1.2 --hangs 1,10
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct LimitsOptions {
    /// Standard deviations of the logarithm of durations [default: 0.3, 0.6, 0.9, 1.2]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = input::positive)]
    pub sigma: Vec<f64>,
    /// Parts of attempts that hang, in percent [default: 1, 5, 10]
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = value_parser!(u32).range(0..=90))]
    pub hangs: Vec<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Factors by which the work becomes slower.
const DRIFTS: [f64; 3] = [1.0, 2.0, 5.0];

/// Number of runs before the work becomes slower, and after.
const RUNS: (usize, usize) = (150, 100);

/// First run that counts.
const FIRST: usize = 50;

/// Runs after a drift that do not count among the cuts.
const ADAPTING: usize = 3;

/// Number of attempts of a run.
const ATTEMPTS: usize = 12;

/// Median of the durations before the drift, in seconds.
const MEDIAN: f64 = 60.0;

/// Bound after `or`.
const BOUND: Duration = Duration::from_secs(24 * 3600);

/// Quantile of the standard normal distribution for the 95th percentile.
const NORMAL_P95: f64 = 1.644_853_6;

/// A kind of work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Standard deviation of the logarithm of durations.
    pub sigma: f64,
    /// Part of attempts that hang.
    pub hangs: f64,
    /// Factor of durations after the drift.
    pub drift: f64,
}

/// Results of some runs.
#[derive(Clone, Debug, Default)]
pub struct Limited {
    /// Number of attempts that did not hang.
    good: u64,
    /// Number of these that the limit cut short.
    cut: u64,
    /// Times to end a hang, as multiples of the true 95th percentile.
    hangs: Vec<f32>,
    /// True if the first run after the drift succeeded.
    recovers: bool,
    /// Number of runs from the fourth after the drift on in which good attempts were cut short
    /// twice or more.
    twice: u64,
    /// First limit of each run, as a multiple of the 95th percentile before the drift.
    limits: Vec<f64>,
}

/// Runs the scenario.
pub fn run(options: &LimitsOptions) -> Result<Report> {
    let sigmas = if options.sigma.is_empty() { &[0.3, 0.6, 0.9, 1.2] } else { &options.sigma[..] };
    let hangs = if options.hangs.is_empty() { &[1, 5, 10] } else { &options.hangs[..] };
    let repeats = options.common.trials(1000);
    let runs = (sigmas.len() * hangs.len() * DRIFTS.len() * repeats as usize) as f64;
    input::bounded(runs * (RUNS.0 + RUNS.1) as f64)?;
    let mut cases = Vec::new();
    for drift in DRIFTS {
        for sigma in sigmas {
            for percent in hangs {
                let hangs = f64::from(*percent) / 100.0;
                cases.push(Work { sigma: *sigma, hangs, drift });
            }
        }
    }
    let progress = TrialProgress::new(cases.len());
    let results = trials(&cases, &progress, |work| {
        let place = [work.sigma, work.hangs, work.drift].map(f64::to_bits);
        let mut random = random(options.common.seed, &place);
        (0..repeats).map(|_| simulate(work, &mut random)).collect::<Vec<_>>()
    });
    let mut table = table();
    let mut summaries = Vec::new();
    for (work, results) in cases.iter().zip(&results) {
        let summary = Summary::of(results);
        table.push(vec![
            Cell::Number(work.drift, 0),
            Cell::Number(work.sigma, 1),
            Cell::Number(work.hangs * 100.0, 0),
            Cell::Number(summary.cut, 2),
            Cell::Number(summary.hang, 2),
            Cell::Number(summary.recovers, 0),
            Cell::Number(summary.twice, 2),
            "none".into(),
        ]);
        summaries.push(summary);
    }
    let picture = picture(&cases, &summaries);
    let note = format!(
        "`try {ATTEMPTS} times each usual or 1 day`; {} runs, then {} with the factor. Cuts leave \
         out {ADAPTING} runs after a drift.",
        RUNS.0, RUNS.1
    );
    Ok(Report { tables: vec![table], notes: vec![note], picture })
}

fn table() -> ReportTable {
    ReportTable::new(
        "limits",
        "Good attempts cut short; time to end a hang by the 95th percentile; first runs after the \
         drift that succeed, and later runs with more than one cut",
        vec![
            Column::new("drift", "drift", ""),
            Column::new("sigma", "sigma", ""),
            Column::new("hangs_percent", "hangs", "%"),
            Column::new("cut_percent", "cut", "%"),
            Column::new("hang_median_p95", "hang ends", "/p95"),
            Column::new("first_succeeds_percent", "recover", "%"),
            Column::new("cut_twice_percent", "cut twice", "%"),
            Column::hidden("backoff"),
        ],
    )
}

/// Simulates the runs of a script.
pub fn simulate(work: &Work, random: &mut Random) -> Limited {
    let mut samples: Vec<Sample> = Vec::new();
    let mut limited = Limited { recovers: true, ..Limited::default() };
    let before = MEDIAN * (NORMAL_P95 * work.sigma).exp();
    for run in 0..RUNS.0 + RUNS.1 {
        let scale = if run < RUNS.0 { 1.0 } else { work.drift };
        let durations = LogNormal::new((MEDIAN * scale).ln(), work.sigma);
        let after = run.checked_sub(RUNS.0).filter(|_| work.drift > 1.0);
        let counts = run >= FIRST && after.is_none_or(|after| after >= ADAPTING);
        let mut execution = LimitedExecution::new(&samples, BOUND);
        limited.limits.push(execution.next_limit().as_secs_f64() / before);
        let (mut cuts, mut success) = (0, None);
        for _ in 0..ATTEMPTS {
            let limit = execution.next_limit();
            let hangs = random.random::<f64>() < work.hangs;
            let length = durations.map_or(MEDIAN, |durations| durations.sample(random));
            let length = Duration::from_secs_f64(length);
            limited.good += u64::from(counts && !hangs);
            if !hangs && length <= limit {
                success = Some(length);
                break;
            }
            if hangs && counts {
                limited.hangs.push((limit.as_secs_f64() / (before * scale)) as f32);
            }
            cuts += u64::from(!hangs);
            execution.note_cut(limit);
        }
        limited.cut += if counts { cuts } else { 0 };
        match after {
            Some(0) => limited.recovers = success.is_some(),
            Some(ADAPTING..) => limited.twice += u64::from(cuts > 1),
            _ => {}
        }
        samples.extend(execution.samples(success));
        let excess = samples.len().saturating_sub(MAX_SAMPLES);
        samples.drain(..excess);
    }
    limited
}

/// Summary of all trials of a kind of work.
struct Summary {
    cut: f64,
    hang: f64,
    recovers: f64,
    twice: f64,
    /// Median of the first limits of each run.
    limits: Vec<f64>,
}

impl Summary {
    fn of(results: &[Limited]) -> Self {
        let count = |of: fn(&Limited) -> u64| results.iter().map(of).sum::<u64>() as f64;
        let hangs = results.iter().flat_map(|it| it.hangs.iter().copied()).collect();
        let runs = RUNS.0 + RUNS.1;
        let limit = |run: usize| {
            let limits = results.iter().map(|it| it.limits[run] as f32).collect();
            Quantiles::new(limits).at(0.5).unwrap_or(f64::NAN)
        };
        let later = (results.len() * (RUNS.1 - ADAPTING)) as f64;
        Self {
            cut: 100.0 * count(|it| it.cut) / count(|it| it.good),
            hang: Quantiles::new(hangs).at(0.5).unwrap_or(f64::NAN),
            recovers: 100.0 * mean(results.iter().map(|it| f64::from(u8::from(it.recovers)))),
            twice: 100.0 * count(|it| it.twice) / later,
            limits: (0..runs).map(limit).collect(),
        }
    }
}

fn picture(cases: &[Work], summaries: &[Summary]) -> Picture {
    let mut hangs: Vec<f64> = cases.iter().map(|work| work.hangs).collect();
    hangs.sort_unstable_by(f64::total_cmp);
    let hangs = hangs.get(hangs.len() / 2).copied().unwrap_or_default();
    let shown = || {
        let shown = cases.iter().zip(summaries);
        shown.filter(move |(work, _)| work.hangs.total_cmp(&hangs).is_eq())
    };
    let by_sigma = |value: &dyn Fn(&Summary) -> f64| {
        let of = |(color, drift): (usize, f64)| PlotSeries {
            name: if drift > 1.0 { format!("{drift} times slower") } else { "no drift".into() },
            points: shown()
                .filter(|(work, _)| work.drift.total_cmp(&drift).is_eq())
                .map(|(work, summary)| (work.sigma, value(summary)))
                .collect(),
            style: SeriesStyle::LineAndDots,
            color,
        };
        DRIFTS.into_iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let course = |(color, (work, summary)): (usize, (&Work, &Summary))| PlotSeries {
        name: format!("sigma {}", work.sigma),
        points: summary.limits.iter().enumerate().map(|(run, it)| (run as f64, *it)).collect(),
        style: SeriesStyle::Line,
        color: color + DRIFTS.len(),
    };
    let slowest = DRIFTS[DRIFTS.len() - 1];
    let courses = shown().filter(|(work, _)| work.drift.total_cmp(&slowest).is_eq());
    let title = |what: &str| format!("{what}, {} % of attempts hang", hangs * 100.0);
    Picture {
        title: "Limits learned from durations".into(),
        panels: vec![
            Panel {
                title: title("Good attempts cut short"),
                x: Axis::linear("sigma"),
                y: Axis::linear("%"),
                series: by_sigma(&|it| it.cut),
            },
            Panel {
                title: title("Time to end a hang, median"),
                x: Axis::linear("sigma"),
                y: Axis::linear("multiple of the 95th percentile"),
                series: by_sigma(&|it| it.hang),
            },
            Panel {
                title: format!("Limit of work that becomes {slowest} times slower, median"),
                x: Axis::linear("run"),
                y: Axis::log("multiple of the first 95th percentile"),
                series: courses.enumerate().map(course).collect(),
            },
        ],
    }
}
