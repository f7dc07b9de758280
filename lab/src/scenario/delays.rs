//! Schedule of a policy, and schedules of a script's tries.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::value_parser;
use ftsh_ide::lint::{Schedule, schedules};
use ftsh_machine::outcome::Human;
use ftsh_syntax::backoff::{Bound, Policy};
use ftsh_syntax::diagnostic;
use ftsh_syntax::parse_bytes;

use crate::common::statistics::Quantiles;
use crate::common::{
    Axis, Cell, ClientCrowd, Column, CommonOptions, Panel, Picture, PlotSeries, Report,
    ReportTable, SeriesStyle, TrialProgress, labels, random, trials,
};

/// The delays of a policy and when its attempts come, or how long a script's tries can take
///
/// Attempts are taken to fail at once.
///
/// Examples: ftsh-lab delays 'full from 100 ms to 20 s' --retries 10
///           ftsh-lab delays --script examples/mirror.ftsh
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct DelaysOptions {
    /// Policies, as after `backoff` in a script
    #[arg(value_name = "POLICY", required_unless_present_any = ["script", "policies"])]
    pub given: Vec<ClientCrowd>,
    /// Shows the tries of a script; tries without a policy use POLICY, or else the shell's
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Number of retries
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=10_000))]
    pub retries: u32,
    /// Number of series of delays that are drawn [default: 10000]
    #[arg(long, value_name = "N", conflicts_with = "trials", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub samples: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Maximum number of delays in memory.
const MOST_DELAYS: u64 = 20_000_000;

/// Runs the scenario.
pub fn run(options: &DelaysOptions) -> Result<Report> {
    let crowds = [&options.given[..], &options.common.policies[..]].concat();
    let policies = crowds.iter().map(|crowd| {
        crowd
            .single()
            .cloned()
            .with_context(|| format!("`{crowd}` is several policies: name one at a time"))
    });
    let policies = policies.collect::<Result<Vec<_>>>()?;
    if let Some(path) = &options.script {
        if policies.len() > 1 {
            bail!("a script's tries use one policy where they name none, not {}", policies.len());
        }
        return script(path, &policies.into_iter().next().unwrap_or_default());
    }
    let samples = options.samples.unwrap_or(options.common.trials(10_000));
    if u64::from(samples) * u64::from(options.retries) > MOST_DELAYS {
        bail!(
            "{samples} samples of {} retries are too many: at most {MOST_DELAYS} delays",
            options.retries
        );
    }
    let labels = labels(&crowds);
    let progress = TrialProgress::new(policies.len());
    let cases: Vec<_> = policies.iter().enumerate().collect();
    let rows = trials(&cases, &progress, |(at, policy)| {
        rows(policy, options.retries as usize, samples, options.common.seed, *at as u64)
    });
    let mut table = table(&policies, samples);
    for (policy, (label, rows)) in policies.iter().zip(labels.iter().zip(&rows)) {
        for (at, row) in rows.iter().enumerate() {
            table.push(shown(policy, label, at + 1, row));
        }
    }
    let picture = picture(&policies, &labels, &rows);
    let names: Vec<_> = crowds.iter().map(|crowd| format!("  {crowd}")).collect();
    let notes = if policies.len() > 1 { vec![names.join("\n")] } else { Vec::new() };
    Ok(Report { tables: vec![table], notes, picture })
}

/// Statistics of one delay, in seconds.
struct DelayRow {
    bound: Bound,
    delays: Quantiles,
    /// Time of the attempt after the delay.
    times: Quantiles,
}

/// Returns the delays in order.
fn rows(policy: &Policy, retries: usize, samples: u32, seed: u64, place: u64) -> Vec<DelayRow> {
    let mut random = random(seed, &[place]);
    let mut states = vec![(policy.start(), Duration::ZERO); samples as usize];
    let mut rows = Vec::with_capacity(retries);
    for bound in policy.bounds().take(retries) {
        let (mut delays, mut times) =
            (Vec::with_capacity(states.len()), Vec::with_capacity(states.len()));
        for (state, now) in &mut states {
            let delay = policy.next_delay(state, *now, &mut random);
            *now = now.saturating_add(delay);
            delays.push(delay.as_secs_f32());
            times.push(now.as_secs_f32());
        }
        rows.push(DelayRow { bound, delays: Quantiles::new(delays), times: Quantiles::new(times) });
    }
    rows
}

fn table(policies: &[Policy], samples: u32) -> ReportTable {
    let title = match policies {
        [one] => format!("{one}: delays, and the times of the retries after them"),
        _ => "Delays, and the times of the retries after them".into(),
    };
    let mut policy = Column::new("policy", "policy", "");
    policy.shown = policies.len() > 1;
    ReportTable::new(
        "delays",
        format!("{title}; {samples} samples"),
        vec![
            policy,
            Column::new("retry", "retry", ""),
            Column::new("delay_least_s", "delay", "least s"),
            Column::new("delay_median_s", "median", "s"),
            Column::hidden("delay_mean_s"),
            Column::new("delay_p90_s", "p90", "s"),
            Column::new("delay_most_s", "most", "s"),
            Column::new("time_least_s", "time", "least s"),
            Column::new("time_median_s", "median", "s"),
            Column::new("time_p90_s", "p90", "s"),
            Column::new("time_most_s", "most", "s"),
            Column::hidden("backoff"),
        ],
    )
}

fn shown(policy: &Policy, label: &str, retry: usize, row: &DelayRow) -> Vec<Cell> {
    let length = |length: Duration| match length {
        Duration::MAX => Cell::Missing,
        length => Cell::number(length.as_secs_f64()),
    };
    let DelayRow { bound, delays, times } = row;
    vec![
        label.into(),
        retry.into(),
        length(bound.least),
        delays.at(0.5).into(),
        delays.mean().into(),
        delays.at(0.9).into(),
        length(bound.most),
        length(bound.earliest),
        times.at(0.5).into(),
        times.at(0.9).into(),
        length(bound.latest),
        policy.to_string().into(),
    ]
}

fn picture(policies: &[Policy], labels: &[String], rows: &[Vec<DelayRow>]) -> Picture {
    type Curve<'a> = (&'a str, SeriesStyle, &'a dyn Fn(&DelayRow) -> Option<f64>);
    let panel = |title: &str, y: &str, curves: [Curve; 3]| {
        let mut series = Vec::new();
        for (at, rows) in rows.iter().enumerate() {
            for (name, style, value) in &curves {
                let points = rows
                    .iter()
                    .enumerate()
                    .filter_map(|(at, row)| Some(((at + 1) as f64, value(row)?)));
                let name = if policies.len() > 1 {
                    format!("{}, {name}", labels[at])
                } else {
                    (*name).to_owned()
                };
                series.push(PlotSeries {
                    name,
                    points: points.collect(),
                    style: *style,
                    color: at,
                });
            }
        }
        Panel { title: title.to_owned(), x: Axis::linear("retry"), y: Axis::log(y), series }
    };
    let finite = |length: Duration| (length < Duration::MAX).then_some(length.as_secs_f64());
    let title = match policies {
        [one] => one.to_string(),
        _ => "Delays of policies".into(),
    };
    let delays = panel(
        "Delay before each retry",
        "delay, s",
        [
            ("median", SeriesStyle::LineAndDots, &|row| row.delays.at(0.5)),
            ("90 %", SeriesStyle::Line, &|row| row.delays.at(0.9)),
            ("at most", SeriesStyle::Dashes, &|row| finite(row.bound.most)),
        ],
    );
    let times = panel(
        "Time of each retry, if attempts fail at once",
        "time since the first failure, s",
        [
            ("median", SeriesStyle::LineAndDots, &|row| row.times.at(0.5)),
            ("90 %", SeriesStyle::Line, &|row| row.times.at(0.9)),
            ("at most", SeriesStyle::Dashes, &|row| finite(row.bound.latest)),
        ],
    );
    Picture { title, panels: vec![delays, times] }
}

/// Returns a report on the tries of a script.
fn script(path: &std::path::Path, policy: &Policy) -> Result<Report> {
    let name = path.display().to_string();
    let text = std::fs::read(path).with_context(|| format!("can't read {name}"))?;
    let script = match parse_bytes(&name, &text) {
        Ok(script) => script,
        Err(errors) => bail!("{name} has mistakes:\n{}", diagnostic::render_all(&errors)),
    };
    let schedules = schedules(&script, policy);
    let mut table = ReportTable::new(
        "tries",
        format!(
            "The tries of {name}: how long until one gives up at the least, and ends at the most"
        ),
        vec![
            Column::new("line", "line", ""),
            Column::new("try", "try", ""),
            Column::new("attempts", "attempts", "at most"),
            Column::new("least", "at least", ""),
            Column::new("most", "at most", ""),
            Column::hidden("least_s"),
            Column::hidden("most_s"),
            Column::hidden("depth"),
            Column::hidden("backoff"),
        ],
    );
    let mut series = Vec::new();
    for (at, schedule) in schedules.iter().enumerate() {
        table.push(row(schedule));
        let ends = [schedule.least, schedule.most].into_iter().flatten();
        series.push(PlotSeries {
            name: format!("line {}", schedule.line),
            points: ends.map(|end| (end.as_secs_f64(), f64::from(schedule.line))).collect(),
            style: SeriesStyle::LineAndDots,
            color: at,
        });
    }
    let panel = Panel {
        title: "From the least until a try gives up to the most it takes".into(),
        x: Axis::linear("time, s"),
        y: Axis::linear("line"),
        series,
    };
    let notes = vec![
        "At least: until it gives up, if every attempt fails at once. At most: whatever its commands \
         do, but for the time they take to end after SIGTERM. `no limit`: as long as a command \
         takes; `?`: only running it can tell."
            .into(),
    ];
    Ok(Report { tables: vec![table], notes, picture: Picture { title: name, panels: vec![panel] } })
}

fn row(schedule: &Schedule) -> Vec<Cell> {
    let is_known = schedule.policy.is_some();
    let unknown = if is_known { "no limit" } else { "?" };
    let length = |length: Option<Duration>, none: &str| match length {
        Some(Duration::MAX) => "for ever".into(),
        Some(length) => Cell::Text(Human(length).to_string()),
        None => none.into(),
    };
    let seconds = |length: Option<Duration>| {
        length.map_or(Cell::Missing, |it| Cell::number(it.as_secs_f64()))
    };
    vec![
        u64::from(schedule.line).into(),
        format!("{}{}", "  ".repeat(schedule.depth), schedule.head).into(),
        schedule.times.map_or(Cell::Missing, Cell::Count),
        length(schedule.least, "?"),
        length(schedule.most, unknown),
        seconds(schedule.least),
        seconds(schedule.most),
        schedule.depth.into(),
        schedule.policy.as_ref().map_or(Cell::Missing, |policy| policy.to_string().into()),
    ]
}
