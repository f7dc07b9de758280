//! Machines of a cluster, some of which fail everything at once: the black hole of Thain and Livny, *The
//! Ethernet Approach to Grid Computing*, 2003, where an engine chooses the machine.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::Script;
use ftsh_syntax::duration::Exact;

use super::discipline::{Discipline, Kind, compare, kinds, policies};
use crate::common::statistics::mean;
use crate::common::{Axis, Column, Common, Panel, Picture, Report, Table, Value, input};
use crate::world::cluster::{Cluster, Counts, Setting};
use crate::world::script;

/// A black hole among the machines of a cluster: what it costs to have all jobs done
///
/// A shell runs lab/scripts/place-*.ftsh, which has each job run on a free place of any machine until
/// it is done. Some machines fail everything at once, and so have free places most often.
///
/// Example: ftsh-lab cluster --most 16,24,200 --plot cluster.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// How many jobs are submitted at once, at most; repeatable [default: 12, 16, 24, 48, 100, 200]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub most: Vec<u32>,
    /// What the script does, fixed, aloha, ethernet or exclusion; repeatable [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    pub discipline: Vec<Discipline>,
    /// How many jobs there are
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub jobs: u32,
    /// How many machines there are
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,
    /// How many of them fail everything
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub holes: u16,
    /// How many jobs a machine runs at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub places: u32,
    /// How long a job takes, in the mean
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub job: Duration,
    /// How long one takes to fail
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = input::length)]
    pub failing: Duration,
    /// How long a look at the free places takes
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = input::length)]
    pub look: Duration,
    /// When to give up, if not all is done
    #[arg(long, value_name = "TIME", default_value = "4h", value_parser = input::length)]
    pub time: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: Common,
}

/// More attempts than this of one job are many: a script that makes no more would have failed.
const FEW: u64 = 3;

/// The longest that the scripts try.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How one world ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// What came of the jobs.
    pub counts: Counts,
    /// Events of the simulation.
    pub events: u64,
}

impl Run {
    /// How often any job was begun.
    fn attempts(&self) -> u64 {
        self.counts.attempts.values().sum()
    }

    /// Which part of that was in a hole.
    fn share(&self) -> f64 {
        self.counts.in_holes as f64 / self.attempts().max(1) as f64
    }

    /// How often the job was begun that was begun most often.
    fn worst(&self) -> u64 {
        self.counts.attempts.values().copied().max().unwrap_or_default()
    }

    /// How many jobs took more than a few attempts.
    fn unlucky(&self) -> usize {
        self.counts.attempts.values().filter(|attempts| **attempts > FEW).count()
    }
}

impl Options {
    fn setting(&self, most: u32) -> Setting {
        Setting {
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

    /// The places where jobs succeed.
    fn good_places(&self) -> u32 {
        u32::from(self.nodes.saturating_sub(self.holes)) * self.places
    }

    /// How long all jobs take if those places are never free.
    fn best(&self) -> Duration {
        self.job.mul_f64(f64::from(self.jobs) / f64::from(self.good_places()))
    }
}

/// Has a shell run all jobs, at most so many at once. `trial` sets this run's random numbers apart from those
/// of others.
pub fn place(options: &Options, kind: &Kind, most: u32, trial: u64) -> Run {
    let cluster = Cluster::new(options.setting(most));
    let place = [u64::from(most), trial];
    let mut world = kind.world(cluster, 1, Duration::ZERO, options.common.seed, &place);
    world.run(options.time);
    let events = world.handled();
    Run { counts: world.commands.counts, events }
}

/// A discipline's script.
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
pub fn run(options: &Options) -> Result<Report> {
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
    // Those in holes are most, each a few events; a job waits in vain as often as it looks.
    let events = options.time.min(2 * options.best()).div_duration_f64(options.failing);
    let runs = compare(&kinds, &most, repeats, events, |kind, most, trial| {
        place(options, kind, most, trial)
    })?;
    let mut table = Table::new(
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
            let mean = |what: &dyn Fn(&Run) -> f64| mean(runs.iter().map(what));
            let time = mean(&|run| time(options, run));
            let share = mean(&|run| 100.0 * run.share());
            points[0].push((f64::from(*most), time));
            points[1].push((f64::from(*most), share));
            table.push(vec![
                kind.name.clone().into(),
                u64::from(*most).into(),
                Value::Number(mean(&|run| run.counts.done.len() as f64), 0),
                Value::Number(time, 0),
                Value::Number(mean(&|run| run.attempts() as f64), 0),
                Value::Number(mean(&|run| run.counts.in_holes as f64), 0),
                Value::Number(share, 0),
                Value::Number(mean(&|run| run.worst() as f64), 1),
                Value::Number(mean(&|run| run.unlucky() as f64), 1),
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

/// Until all was done, or it was given up.
fn time(options: &Options, run: &Run) -> f64 {
    let is_done = run.counts.done.len() as u64 >= u64::from(options.jobs);
    let last = run.counts.done.last().copied().filter(|_| is_done);
    last.unwrap_or(options.time.as_secs_f64())
}

fn notes(options: &Options, events: u64) -> Vec<String> {
    let Options { nodes, holes, places, .. } = options;
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
