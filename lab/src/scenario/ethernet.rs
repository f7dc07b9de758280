//! Jobs submitted to a queue whose host has a limited number of file descriptors. Thain and Livny,
//! *The Ethernet Approach to Grid Computing*, 2003.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::Script;
use ftsh_syntax::duration::Exact;

use super::discipline::{ClientKind, Discipline, compare, kinds, policies};
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, PlotSeries, Report, ReportTable,
    SeriesStyle, TrialProgress, input, statistics, trials,
};
use crate::world::queue::{Host, JobQueue, QueueAlarm, SubmissionCounts};
use crate::world::script;

/// Job submission: jobs done against the number of clients, when descriptors run out
///
/// Each client runs lab/scripts/submit-*.ftsh, which submits one job after the other. Submissions
/// hold file descriptors; when there are none left, the queue crashes and all in progress fail.
///
/// Example: ftsh-lab ethernet --clients 100,300,500 --plot jobs.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct EthernetOptions {
    /// Number of clients; repeatable [default: 50, 100, … 500, and around the edge]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: Vec<u32>,
    /// Disciplines of the clients; repeatable [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    pub discipline: Vec<Discipline>,
    /// Duration of a run
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = input::length)]
    pub time: Duration,
    /// Period in which the clients start, each at a random moment
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub start: Duration,
    /// Number of file descriptors of the host
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub descriptors: u64,
    /// Number of file descriptors in other use
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub in_use: u64,
    /// Number of file descriptors that a submission holds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub per_submission: u64,
    /// Maximum rate of accepted jobs
    #[arg(long, value_name = "RATE", default_value = "4/s", value_parser = input::rate)]
    pub rate: f64,
    /// Duration of a submission without others
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = input::length)]
    pub alone: Duration,
    /// Time until the queue returns after a crash
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = input::length)]
    pub restart: Duration,
    /// Time until a submission fails while the queue is down
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = input::length)]
    pub refusal: Duration,
    /// Duration of a query of the descriptors
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = input::length)]
    pub look: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct EthernetRun {
    /// Counts of the submissions.
    pub counts: SubmissionCounts,
    /// Smallest and largest number of jobs of a client.
    pub extremes: (u64, u64),
    /// Samples of the free descriptors, if requested: seconds and number.
    pub samples: Vec<(f64, f64)>,
    /// Events of the simulation.
    pub events: u64,
}

impl EthernetOptions {
    fn host(&self) -> Host {
        Host {
            descriptors: self.descriptors,
            in_use: self.in_use,
            per_submission: self.per_submission,
            rate: self.rate,
            alone: self.alone,
            restart: self.restart,
            refusal: self.refusal,
            look: self.look,
        }
    }

    /// Returns the maximum number of submissions in progress.
    fn edge(&self) -> u64 {
        self.descriptors.saturating_sub(self.in_use) / self.per_submission
    }
}

/// Returns the script of a discipline.
fn client(discipline: Discipline) -> Result<Script> {
    match discipline {
        Discipline::Fixed => {
            script("submit-fixed.ftsh", include_str!("../../scripts/submit-fixed.ftsh"))
        }
        Discipline::Aloha => {
            script("submit-aloha.ftsh", include_str!("../../scripts/submit-aloha.ftsh"))
        }
        Discipline::Ethernet => {
            script("submit-ethernet.ftsh", include_str!("../../scripts/submit-ethernet.ftsh"))
        }
        Discipline::Channel => {
            script("submit-channel.ftsh", include_str!("../../scripts/submit-channel.ftsh"))
        }
        Discipline::Exclusion => {
            bail!("--discipline: there is one queue, and no other to avoid it for")
        }
    }
}

/// Simulates clients that submit jobs. `trial` separates the random numbers of this run from
/// others.
pub fn submit(
    options: &EthernetOptions,
    kind: &ClientKind,
    clients: u32,
    trial: u64,
    sample: Option<Duration>,
) -> EthernetRun {
    let queue = JobQueue::new(options.host());
    let place = [u64::from(clients), trial];
    let mut world = kind.world(queue, clients, options.start, options.common.seed, &place);
    if let Some(distance) = sample {
        world.wake(Duration::ZERO, QueueAlarm::Sample(distance));
    }
    world.run(options.time);
    let events = world.handled();
    let JobQueue { counts, mut by_client, samples, .. } = world.commands;
    by_client.resize(clients as usize, 0);
    let least = by_client.iter().min().copied().unwrap_or_default();
    let most = by_client.iter().max().copied().unwrap_or_default();
    EthernetRun { counts, extremes: (least, most), samples, events }
}

/// Runs the scenario.
pub fn run(options: &EthernetOptions) -> Result<Report> {
    if options.edge() == 0 {
        bail!("--descriptors: with {} in use there are too few for one submission", options.in_use);
    }
    let clients = match &options.clients[..] {
        [] => vec![50, 100, 150, 200, 250, 300, 350, 375, 385, 400, 450, 500],
        given => given.to_vec(),
    };
    let all = [Discipline::Fixed, Discipline::Aloha, Discipline::Ethernet, Discipline::Channel];
    let kinds = kinds(&options.discipline, &all, &options.common, client)?;
    let repeats = u64::from(options.common.trials(1));
    let events = options.time.div_duration_f64(options.refusal.min(options.look));
    let runs = compare(&kinds, &clients, repeats, events, |kind, clients, trial| {
        submit(options, kind, clients, trial, None)
    })?;
    let mut table = ReportTable::new(
        "ethernet",
        format!("Jobs done by clients in {}, mean of {repeats} trials", Exact(options.time)),
        vec![
            Column::new("discipline", "discipline", ""),
            Column::new("clients", "clients", ""),
            Column::new("jobs", "jobs", ""),
            Column::new("jobs_per_s", "rate", "jobs/s"),
            Column::new("submissions", "begun", ""),
            Column::new("failures", "failed", ""),
            Column::new("crashes", "crashes", ""),
            Column::new("deferrals", "deferred", ""),
            Column::new("least_jobs", "least", ""),
            Column::new("most_jobs", "most", ""),
            Column::hidden("backoff"),
            Column::hidden("trials"),
            Column::hidden("time_s"),
        ],
    );
    let mut lines = Vec::new();
    for (at, (kind, runs)) in kinds.iter().zip(&runs).enumerate() {
        let mut points = vec![(0.0, 0.0)];
        for (number, runs) in clients.iter().zip(runs) {
            let mean = |what: fn(&SubmissionCounts) -> u64| {
                statistics::mean(runs.iter().map(|run| what(&run.counts) as f64))
            };
            let jobs = mean(|counts| counts.jobs);
            let of_a_client = |which: fn(&(u64, u64)) -> u64| {
                statistics::mean(runs.iter().map(|run| which(&run.extremes) as f64))
            };
            let (fewest, most) = (of_a_client(|it| it.0), of_a_client(|it| it.1));
            points.push((f64::from(*number), jobs));
            table.push(vec![
                kind.name.clone().into(),
                u64::from(*number).into(),
                Cell::Number(jobs, 0),
                Cell::number(jobs / options.time.as_secs_f64()),
                Cell::Number(mean(|counts| counts.submissions), 0),
                Cell::Number(mean(|counts| counts.failures), 0),
                Cell::Number(mean(|counts| counts.crashes), 0),
                match kind.discipline {
                    Discipline::Ethernet => Cell::Number(mean(SubmissionCounts::deferrals), 0),
                    _ => Cell::Missing,
                },
                Cell::Number(fewest, 0),
                Cell::Number(most, 0),
                kind.backoff().into(),
                repeats.into(),
                Cell::number(options.time.as_secs_f64()),
            ]);
        }
        lines.push(kind.line(at, points));
    }
    let mut panels = vec![Panel {
        title: format!("Jobs done in {}", Exact(options.time)),
        x: Axis::linear("clients"),
        y: Axis::linear("jobs"),
        series: lines,
    }];
    if options.common.plot.is_some() {
        panels.push(timeline(options, &kinds));
    }
    let picture = Picture { title: "Job submission".into(), panels };
    let events = runs.iter().flatten().flatten().map(|run| run.events).sum();
    Ok(Report { tables: vec![table], notes: notes(options, &kinds, events), picture })
}

/// Draws the free descriptors over time, with more clients than the host can serve.
fn timeline(options: &EthernetOptions, kinds: &[ClientKind]) -> Panel {
    let clients = u32::try_from(options.edge() * 6 / 5).unwrap_or(u32::MAX).min(100_000);
    let time = options.time.min(Duration::from_secs(600));
    let options = EthernetOptions { time, ..options.clone() };
    let progress = TrialProgress::new(kinds.len());
    let runs =
        trials(kinds, &progress, |kind| submit(&options, kind, clients, 0, Some(time / 600)));
    let line = |(at, (kind, run)): (usize, (&ClientKind, EthernetRun))| PlotSeries {
        name: kind.name.clone(),
        points: run.samples,
        style: SeriesStyle::Line,
        color: at,
    };
    Panel {
        title: format!("Free descriptors with {clients} clients"),
        x: Axis::linear("time, s"),
        y: Axis::linear("descriptors"),
        series: kinds.iter().zip(runs).enumerate().map(line).collect(),
    }
}

fn notes(options: &EthernetOptions, kinds: &[ClientKind], events: u64) -> Vec<String> {
    let EthernetOptions { descriptors, in_use, per_submission, look, .. } = options;
    let short = |time: &Duration| Exact(*time).to_string();
    let mut notes = vec![format!(
        "The host has {descriptors} descriptors, {in_use} in use; a submission holds \
         {per_submission}, so {} in progress are the edge. The queue accepts {} jobs/s, one takes \
         {} alone; it comes back {} after a crash, and fails in {} until then. A look takes {}. \
         Clients start within {}. These parameters are our choice. least, most: the jobs of the \
         client that has the fewest, and of the one that has the most.",
        options.edge(),
        options.rate,
        short(&options.alone),
        short(&options.restart),
        short(&options.refusal),
        short(look),
        short(&options.start),
    )];
    notes.extend(policies(kinds));
    notes.push(format!("{events} events were simulated."));
    notes
}
