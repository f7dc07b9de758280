//! Replicated servers, one of which takes requests and never answers. Thain and Livny, *The
//! Ethernet Approach to Grid Computing*, 2003.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::Script;

use super::discipline::{ClientKind, Discipline, compare, kinds, policies};
use crate::common::statistics::mean;
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, PlotSeries, Report, ReportTable,
    SeriesStyle, input,
};
use crate::world::script;
use crate::world::servers::{RequestCounts, ServerSettings, Servers};

/// A black hole among replicas: transfers over time
///
/// Each reader runs lab/scripts/read-*.ftsh, which fetches a file again and again from any of three
/// servers. Each serves one client at a time; one takes requests and never answers.
///
/// Example: ftsh-lab blackhole --readers 3 --plot blackhole.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct BlackholeOptions {
    /// Number of readers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub readers: u32,
    /// Disciplines of the readers, aloha or ethernet; repeatable [default: both]
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    pub discipline: Vec<Discipline>,
    /// Number of the three servers that never answer
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub holes: u8,
    /// Duration of a run
    #[arg(long, value_name = "TIME", default_value = "900s", value_parser = input::length)]
    pub time: Duration,
    /// Size of the file in megabytes
    #[arg(long, value_name = "MB", default_value = "100", value_parser = input::positive)]
    pub size: f64,
    /// Megabytes that a server sends per second
    #[arg(long, value_name = "MB", default_value = "10", value_parser = input::positive)]
    pub speed: f64,
    /// Time to send the small file that shows if a server answers
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = input::length)]
    pub flag: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Names of the servers, the holes first.
const SERVERS: [&str; 3] = ["xxx", "yyy", "zzz"];

/// Result of a run.
#[derive(Clone, Debug)]
pub struct BlackholeRun {
    /// Counts of the requests.
    pub counts: RequestCounts,
    /// Events of the simulation.
    pub events: u64,
}

impl BlackholeOptions {
    /// Returns the time to send the file.
    fn data(&self) -> Duration {
        let length = Duration::try_from_secs_f64(self.size / self.speed);
        length.unwrap_or(Duration::MAX).max(Duration::from_nanos(1))
    }
}

/// Simulates readers. `trial` separates the random numbers of this run from others.
pub fn read(options: &BlackholeOptions, kind: &ClientKind, trial: u64) -> BlackholeRun {
    let setting = ServerSettings { data: options.data(), flag: options.flag };
    let servers = Servers::new(setting, &SERVERS, &SERVERS[..usize::from(options.holes)]);
    let start = Duration::from_secs(1);
    let mut world = kind.world(servers, options.readers, start, options.common.seed, &[trial]);
    world.run(options.time);
    let events = world.handled();
    BlackholeRun { counts: world.commands.counts, events }
}

/// Returns the script of a discipline.
fn reader(discipline: Discipline) -> Result<Script> {
    match discipline {
        Discipline::Fixed | Discipline::Channel | Discipline::Exclusion => {
            bail!("--discipline: readers are either aloha or ethernet")
        }
        Discipline::Aloha => {
            script("read-aloha.ftsh", include_str!("../../scripts/read-aloha.ftsh"))
        }
        Discipline::Ethernet => {
            script("read-ethernet.ftsh", include_str!("../../scripts/read-ethernet.ftsh"))
        }
    }
}

/// Runs the scenario.
pub fn run(options: &BlackholeOptions) -> Result<Report> {
    let both = [Discipline::Aloha, Discipline::Ethernet];
    let kinds = kinds(&options.discipline, &both, &options.common, reader)?;
    let repeats = u64::from(options.common.trials(100));
    let events = options.time.div_duration_f64(options.flag.min(options.data()));
    let read = |kind: &ClientKind, _, trial| read(options, kind, trial);
    let runs = compare(&kinds, &[options.readers], repeats, events, read)?;
    let runs: Vec<_> = runs.into_iter().flatten().collect();
    let mut table = ReportTable::new(
        "blackhole",
        format!(
            "Transfers of {} readers in {} s, mean of {repeats} trials",
            options.readers,
            options.time.as_secs_f64()
        ),
        vec![
            Column::new("discipline", "discipline", ""),
            Column::new("transfers", "transfers", ""),
            Column::new("transfers_sd", "± sd", ""),
            Column::new("stalls", "stalls", ""),
            Column::new("stalled_s", "time", "reader s"),
            Column::new("deferrals", "deferrals", ""),
            Column::new("deferred_s", "time", "reader s"),
            Column::new("longest_pause_s", "pause", "s"),
            Column::hidden("readers"),
            Column::hidden("holes"),
            Column::hidden("backoff"),
            Column::hidden("trials"),
        ],
    );
    for (kind, runs) in kinds.iter().zip(&runs) {
        let mean =
            |what: &dyn Fn(&RequestCounts) -> f64| mean(runs.iter().map(|run| what(&run.counts)));
        let transfers = mean(&|counts| counts.transfers.len() as f64);
        let square = mean(&|counts| (counts.transfers.len() as f64 - transfers).powi(2));
        let lost = |cuts: &[(f64, f64)]| cuts.iter().fold(0.0, |sum, (_, length)| sum + length);
        table.push(vec![
            kind.name.clone().into(),
            Cell::Number(transfers, 1),
            Cell::Number(square.sqrt(), 1),
            Cell::Number(mean(&|counts| counts.stalls.len() as f64), 1),
            Cell::Number(mean(&|counts| lost(&counts.stalls)), 0),
            Cell::Number(mean(&|counts| counts.deferrals.len() as f64), 1),
            Cell::Number(mean(&|counts| lost(&counts.deferrals)), 0),
            Cell::Number(mean(&|counts| pause(counts, options.time)), 0),
            u64::from(options.readers).into(),
            u64::from(options.holes).into(),
            kind.backoff().into(),
            repeats.into(),
        ]);
    }
    let firsts: Vec<_> = runs.iter().filter_map(|runs| runs.first()).collect();
    let events = runs.iter().flatten().map(|run| run.events).sum();
    let mut report = Report {
        tables: vec![table],
        notes: notes(options, events),
        picture: picture(options, &kinds, &firsts),
    };
    report.notes.extend(policies(&kinds));
    Ok(report)
}

/// Returns the longest time without the end of a transfer.
fn pause(counts: &RequestCounts, time: Duration) -> f64 {
    let ends = counts.transfers.iter().copied().chain([time.as_secs_f64()]);
    let pauses = ends.scan(0.0, |before, end| Some(end - std::mem::replace(before, end)));
    pauses.fold(0.0, f64::max)
}

/// Draws the first trial over time.
fn picture(options: &BlackholeOptions, kinds: &[ClientKind], runs: &[&BlackholeRun]) -> Picture {
    let end = options.time.as_secs_f64();
    let steps = |name: String, times: Vec<f64>, style, color| {
        let mut points = vec![(0.0, 0.0)];
        for (count, time) in times.into_iter().enumerate() {
            points.push((time, count as f64));
            points.push((time, (count + 1) as f64));
        }
        let last = points.last().map_or(0.0, |last| last.1);
        points.push((end, last));
        PlotSeries { name, points, style, color }
    };
    let times = |cuts: &[(f64, f64)]| cuts.iter().map(|(time, _)| *time).collect();
    let (mut transfers, mut cuts) = (Vec::new(), Vec::new());
    for (at, (kind, run)) in kinds.iter().zip(runs).enumerate() {
        let counts = &run.counts;
        let name = &kind.name;
        transfers.push(steps(name.clone(), counts.transfers.clone(), SeriesStyle::Line, at));
        cuts.push(steps(format!("{name}: stalls"), times(&counts.stalls), SeriesStyle::Line, at));
        if kind.discipline == Discipline::Ethernet {
            let name = format!("{name}: deferrals");
            cuts.push(steps(name, times(&counts.deferrals), SeriesStyle::Dashes, at));
        }
    }
    let panel = |title: &str, label: &str, series| Panel {
        title: title.into(),
        x: Axis::linear("time, s"),
        y: Axis::linear(label),
        series,
    };
    Picture {
        title: "A black hole among three servers".into(),
        panels: vec![
            panel("Transfers so far", "transfers", transfers),
            panel("Stalls and deferrals so far", "requests cut short", cuts),
        ],
    }
}

fn notes(options: &BlackholeOptions, events: u64) -> Vec<String> {
    let good = SERVERS.len() - usize::from(options.holes);
    let most = (options.time.as_secs_f64() / options.data().as_secs_f64()).floor() * good as f64;
    vec![
        format!(
            "Three servers, {} of them without an answer, each serving one client at a time; a \
             transfer of {} MB takes {} s, so {most} transfers are the most there can be. The small \
             file takes {} ms.",
            options.holes,
            options.size,
            options.data().as_secs_f64(),
            options.flag.as_secs_f64() * 1e3,
        ),
        format!("{events} events were simulated."),
    ]
}
