//! Machines of a cluster, some of which fail everything at once: the black hole of Thain and Livny, *The
//! Ethernet Approach to Grid Computing*, 2003, where an engine chooses the machine.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::Script;
use ftsh_syntax::duration::Exact;

use super::discipline::{ClientKind, Discipline, compare, kinds, policies};
use crate::common::statistics::mean;
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, Report, ReportTable, input,
};
use crate::world::cluster::{ClusterModel, ClusterSettings, JobCounts};
use crate::world::script;

/// A black hole among the machines of a cluster: what it costs to have all jobs done
///
/// A shell runs lab/scripts/place-*.ftsh, which has each job run on a free place of any machine until
/// it is done. Some machines fail everything at once, and so have free places most often.
///
/// Example: ftsh-lab cluster --most 16,24,200 --plot cluster.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ClusterOptions {
    /// Maximum number of jobs submitted at once; repeatable [default: 12, 16, 24, 48, 100, 200]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub most: Vec<u32>,
    /// Disciplines of the script, fixed, aloha, ethernet or exclusion; repeatable [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    pub discipline: Vec<Discipline>,
    /// Number of jobs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub jobs: u32,
    /// Number of machines
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,
    /// Number of machines that fail each job
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub holes: u16,
    /// Number of jobs that a machine runs at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub places: u32,
    /// Mean duration of a job
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub job: Duration,
    /// Time until a job fails
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = input::length)]
    pub failing: Duration,
    /// Duration of a query of the free places
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = input::length)]
    pub look: Duration,
    /// Time after which unfinished jobs are given up
    #[arg(long, value_name = "TIME", default_value = "4h", value_parser = input::length)]
    pub time: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Number of attempts of one job up to which the job counts as lucky. A script with this limit
/// would have failed the others.
const FEW: u64 = 3;

/// Time limit of the scripts.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Result of a run.
#[derive(Clone, Debug)]
pub struct ClusterRun {
    /// Counts of the jobs.
    pub counts: JobCounts,
    /// Events of the simulation.
    pub events: u64,
}

impl ClusterRun {
    /// Returns the number of starts of all jobs.
    fn attempts(&self) -> u64 {
        self.counts.attempts.values().sum()
    }

    /// Returns the part of the starts in holes.
    fn share(&self) -> f64 {
        self.counts.in_holes as f64 / self.attempts().max(1) as f64
    }

    /// Returns the largest number of starts of a job.
    fn worst(&self) -> u64 {
        self.counts.attempts.values().copied().max().unwrap_or_default()
    }

    /// Returns the number of jobs with more than a few attempts.
    fn unlucky(&self) -> usize {
        self.counts.attempts.values().filter(|attempts| **attempts > FEW).count()
    }
}

impl ClusterOptions {
    fn setting(&self, most: u32) -> ClusterSettings {
        ClusterSettings {
            jobs: self.jobs.into(),
            most: most.into(),
            nodes: self.nodes.into(),
            holes: self.holes.into(),
            places: self.places,
            job: self.job,
            failing: self.failing,
            look: self.look,
        }
    }

    /// Returns the number of places where jobs succeed.
    fn good_places(&self) -> u32 {
        u32::from(self.nodes.saturating_sub(self.holes)) * self.places
    }

    /// Returns the time of all jobs if these places are never free.
    fn best(&self) -> Duration {
        self.job.mul_f64(f64::from(self.jobs) / f64::from(self.good_places()))
    }
}

/// Runs all jobs by a shell, at most `most` at once. `trial` separates the random numbers of this
/// run from others.
pub fn place(options: &ClusterOptions, kind: &ClientKind, most: u32, trial: u64) -> ClusterRun {
    let cluster = ClusterModel::new(options.setting(most));
    let place = [u64::from(most), trial];
    let mut world = kind.world(cluster, 1, Duration::ZERO, options.common.seed, &place);
    world.run(options.time);
    let events = world.handled();
    ClusterRun { counts: world.commands.counts, events }
}

/// Returns the script of a discipline.
fn head(discipline: Discipline) -> Result<Script> {
    match discipline {
        Discipline::Fixed => {
            script("place-fixed.ftsh", include_str!("../../scripts/place-fixed.ftsh"))
        }
        Discipline::Aloha => {
            script("place-aloha.ftsh", include_str!("../../scripts/place-aloha.ftsh"))
        }
        Discipline::Ethernet => {
            script("place-ethernet.ftsh", include_str!("../../scripts/place-ethernet.ftsh"))
        }
        Discipline::Exclusion => {
            script("place-exclusion.ftsh", include_str!("../../scripts/place-exclusion.ftsh"))
        }
        Discipline::Channel => bail!("--discipline: jobs go through no channel"),
    }
}

/// Runs the scenario.
pub fn run(options: &ClusterOptions) -> Result<Report> {
    if options.holes >= options.nodes {
        bail!("--holes: some of the {} machines must be good", options.nodes);
    }
    if options.time > LONGEST {
        bail!("--time: the scripts try for a day");
    }
    let most = match &options.most[..] {
        [] => vec![12, 16, 24, 48, 100, 200],
        given => given.to_vec(),
    };
    let all = [Discipline::Fixed, Discipline::Aloha, Discipline::Ethernet, Discipline::Exclusion];
    let kinds = kinds(&options.discipline, &all, &options.common, head)?;
    let repeats = u64::from(options.common.trials(20));
    // Most starts are in holes, with a few events each. The number of waits of a job equals the
    // number of its queries.
    let events = options.time.min(2 * options.best()).div_duration_f64(options.failing);
    let runs = compare(&kinds, &most, repeats, events, |kind, most, trial| {
        place(options, kind, most, trial)
    })?;
    let mut table = ReportTable::new(
        "cluster",
        format!("What it takes to have {} jobs done, mean of {repeats} trials", options.jobs),
        vec![
            Column::new("discipline", "discipline", ""),
            Column::new("most", "at once", ""),
            Column::new("done", "done", "jobs"),
            Column::new("time_s", "time", "s"),
            Column::new("attempts", "attempts", ""),
            Column::new("in_holes", "in holes", ""),
            Column::new("in_holes_percent", "", "%"),
            Column::new("worst", "worst", "of a job"),
            Column::new("unlucky", "over 3", "jobs"),
            Column::hidden("backoff"),
            Column::hidden("trials"),
        ],
    );
    let mut lines = [const { Vec::new() }; 2];
    for (at, (kind, runs)) in kinds.iter().zip(&runs).enumerate() {
        let mut points = [const { Vec::new() }; 2];
        for (most, runs) in most.iter().zip(runs) {
            let mean = |what: &dyn Fn(&ClusterRun) -> f64| mean(runs.iter().map(what));
            let time = mean(&|run| time(options, run));
            let share = mean(&|run| 100.0 * run.share());
            points[0].push((f64::from(*most), time));
            points[1].push((f64::from(*most), share));
            table.push(vec![
                kind.name.clone().into(),
                u64::from(*most).into(),
                Cell::Number(mean(&|run| run.counts.done.len() as f64), 0),
                Cell::Number(time, 0),
                Cell::Number(mean(&|run| run.attempts() as f64), 0),
                Cell::Number(mean(&|run| run.counts.in_holes as f64), 0),
                Cell::Number(share, 0),
                Cell::Number(mean(&|run| run.worst() as f64), 1),
                Cell::Number(mean(&|run| run.unlucky() as f64), 1),
                kind.backoff().into(),
                repeats.into(),
            ]);
        }
        for (lines, points) in lines.iter_mut().zip(points) {
            lines.push(kind.line(at, points));
        }
    }
    let [times, shares] = lines;
    let panel = |title: &str, label: &str, series| Panel {
        title: title.into(),
        x: Axis::log("jobs submitted at once, at most"),
        y: Axis::linear(label),
        series,
    };
    let picture = Picture {
        title: "A black hole in a cluster".into(),
        panels: vec![
            panel("Time until all jobs are done", "time, s", times),
            panel("Attempts that went into the hole", "% of all attempts", shares),
        ],
    };
    let events = runs.iter().flatten().flatten().map(|run| run.events).sum();
    let mut notes = notes(options, events);
    notes.extend(policies(&kinds));
    Ok(Report { tables: vec![table], notes, picture })
}

/// Returns the time until all jobs were done or given up.
fn time(options: &ClusterOptions, run: &ClusterRun) -> f64 {
    let is_done = run.counts.done.len() as u64 >= u64::from(options.jobs);
    let last = run.counts.done.last().copied().filter(|_| is_done);
    last.unwrap_or(options.time.as_secs_f64())
}

fn notes(options: &ClusterOptions, events: u64) -> Vec<String> {
    let ClusterOptions { nodes, holes, places, .. } = options;
    let (failing, job, look) = (Exact(options.failing), Exact(options.job), Exact(options.look));
    vec![
        format!(
            "{nodes} machines with {places} places each, {holes} of which fail everything within {failing}; \
             on the others a job takes {job}, half of that more or less, so all are done in {:.0} s \
             if their places are never free. Of the free places a job gets any. A look at them takes \
             {look}. These parameters are our choice. worst: how often the job was begun that was \
             begun most often; over 3: the jobs that were begun more often than that.",
            options.best().as_secs_f64(),
        ),
        format!("{events} events were simulated."),
    ]
}
