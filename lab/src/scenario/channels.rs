//! The overload with clients that run real scripts and share a channel: a budget for retries, a
//! breaker, places.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use ftsh_syntax::Script;
use ftsh_syntax::duration::Exact;
use rand::RngExt;

use super::overload::{OverloadCourse, OverloadSettings, Slowness, WINDOW};
use crate::common::statistics::mean;
use crate::common::{
    Axis, Cell, ClientCrowd, Column, CommonOptions, Panel, Picture, PlotSeries, Report,
    ReportTable, SeriesStyle, TrialProgress, input, random, trials,
};
use crate::world::service::{Service, ServiceAlarm};
use crate::world::{ClientWorld, script};

/// Channels: whether a server comes back when its clients share a budget, a breaker or places
///
/// The overload of the scenario of that name, but each client runs lab/scripts/ask*.ftsh. A share of
/// them goes through a channel; the others repeat what fails as if they were alone.
///
/// Example: ftsh-lab channels --guard budget --share 50,100 --machines 10
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ChannelsOptions {
    /// Rules of the channel; repeatable [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub guard: Vec<Guard>,
    /// Percentage of the clients that use the channel; repeatable
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "100", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub share: Vec<u32>,
    /// Number of machines; each has its own channel
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub machines: u32,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Mean time from an answer to the client's next request; exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub think: Duration,
    /// Number of concurrent requests without a slowdown
    #[arg(long, value_name = "N", default_value = "30", value_parser = input::positive)]
    pub limit: f64,
    /// Number of further requests that multiply the time by 1.05
    #[arg(long, value_name = "N", default_value = "15", value_parser = input::positive)]
    pub divisor: f64,
    /// Connections that wait for a server that does not accept them; others are lost
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub backlog: u32,
    /// Duration of normal operation at the beginning
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = input::length)]
    pub before: Duration,
    /// Duration of the stop of the server
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = input::length)]
    pub outage: Duration,
    /// Duration of the observation afterwards
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = input::length)]
    pub watch: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Rules of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Guard {
    /// No channel
    Alone,
    /// budget 10%
    Budget,
    /// breaker 5 failures 30 seconds
    Breaker,
    /// at most 100
    Places,
    /// at most 100 breaker 5 failures 30 seconds
    Both,
}

impl Guard {
    fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Budget => "budget",
            Self::Breaker => "breaker",
            Self::Places => "places",
            Self::Both => "both",
        }
    }

    fn script(self) -> Result<Script> {
        match self {
            Self::Alone => script("ask.ftsh", include_str!("../../scripts/ask.ftsh")),
            Self::Budget => {
                script("ask-budget.ftsh", include_str!("../../scripts/ask-budget.ftsh"))
            }
            Self::Breaker => {
                script("ask-breaker.ftsh", include_str!("../../scripts/ask-breaker.ftsh"))
            }
            Self::Places => {
                script("ask-places.ftsh", include_str!("../../scripts/ask-places.ftsh"))
            }
            Self::Both => {
                let text = include_str!("../../scripts/ask-breaker-places.ftsh");
                script("ask-breaker-places.ftsh", text)
            }
        }
    }
}

/// A group of clients to compare.
struct Case {
    guard: Guard,
    script: Script,
    share: u32,
    crowd: ClientCrowd,
}

/// Result of a run.
struct ChannelsRun {
    course: OverloadCourse,
    given_up: u64,
    events: u64,
}

impl ChannelsOptions {
    fn setting(&self) -> OverloadSettings {
        OverloadSettings {
            clients: self.clients as usize,
            think: self.think,
            timeout: Duration::from_secs(2),
            slowness: Slowness {
                base: Duration::from_millis(100),
                limit: self.limit,
                factor: 1.05,
                divisor: self.divisor,
            },
            backlog: self.backlog,
            before: self.before,
            outage: self.outage,
            watch: self.watch,
            deadline: None,
        }
    }

    fn cases(&self) -> Result<Vec<Case>> {
        let guards = match &self.guard[..] {
            [] => Guard::value_variants(),
            given => given,
        };
        let mut cases = Vec::new();
        for crowd in self.common.crowds(&["fixed from 100 ms"])? {
            for guard in guards.iter().copied() {
                // A share of 0 % is the same for all rules.
                let shares = if guard == Guard::Alone { &[100][..] } else { &self.share };
                for share in shares.iter().copied() {
                    let (script, crowd) = (guard.script()?, crowd.clone());
                    cases.push(Case { guard, script, share, crowd });
                }
            }
        }
        Ok(cases)
    }
}

impl Case {
    /// True if a client uses the channel. The share is spread evenly over each hundred clients.
    fn is_guarded(&self, client: usize) -> bool {
        let until = |client: usize| client * self.share as usize / 100;
        until(client + 1) > until(client)
    }

    fn run(
        &self,
        options: &ChannelsOptions,
        alone: &Script,
        number: usize,
        trial: u64,
    ) -> ChannelsRun {
        let setting = options.setting();
        let end = setting.end();
        let random = |what| random(options.common.seed, &[number as u64, trial, what]);
        let mut own = random(0);
        let mut world = ClientWorld::new(Service::new(setting.clone()), random(1));
        world.spread(options.machines as usize);
        for client in 0..setting.clients {
            let script = if self.is_guarded(client) { &self.script } else { alone };
            world.add(script, self.crowd.policy(client), Duration::ZERO, own.random());
        }
        world.wake(setting.before, ServiceAlarm::Stop);
        world.wake(setting.resumed(), ServiceAlarm::Continue);
        world.wake(Duration::from_secs(1), ServiceAlarm::Second);
        world.run(end);
        let events = world.handled();
        let Service { course, given_up, .. } = world.commands;
        ChannelsRun { course, given_up, events }
    }

    fn label(&self, options: &ChannelsOptions, crowds: usize) -> String {
        let mut label = self.guard.name().to_owned();
        if options.share.len() > 1 && self.guard != Guard::Alone {
            label += &format!(", {} %", self.share);
        }
        if crowds > 1 {
            label += &format!(", {}", self.crowd);
        }
        label
    }
}

/// Runs the scenario.
pub fn run(options: &ChannelsOptions) -> Result<Report> {
    for (name, time) in [("before", options.before), ("watch", options.watch)] {
        if (time.as_secs() as usize) < WINDOW {
            bail!("--{name} must be at least {WINDOW} s to tell how much is answered");
        }
    }
    let setting = options.setting();
    let cases = options.cases()?;
    let repeats = u64::from(options.common.trials(3));
    let attempts = setting.end().as_secs_f64() * f64::from(options.clients) * 10.0;
    input::bounded(attempts * (cases.len() as u64 * repeats) as f64)?;
    let all: Vec<_> =
        (0..cases.len()).flat_map(|case| (0..repeats).map(move |trial| (case, trial))).collect();
    let progress = TrialProgress::new(all.len());
    let alone = Guard::Alone.script()?;
    let mut runs =
        trials(&all, &progress, |(case, trial)| cases[*case].run(options, &alone, *case, *trial))
            .into_iter();
    let runs: Vec<Vec<ChannelsRun>> =
        cases.iter().map(|_| runs.by_ref().take(repeats as usize).collect()).collect();
    let events: u64 = runs.iter().flatten().map(|run| run.events).sum();
    let mut notes = vec![format!(
        "The server and the outage are those of overload. Each client waits 2 s for an answer, and \
         is one of the shell's own machines. Machines: {}, each with a channel of its own. given up: \
         how often a try failed, since there was no budget.",
        options.machines
    )];
    notes.push(format!("{events} events were simulated."));
    Ok(Report {
        tables: vec![summary(options, &setting, &cases, &runs)],
        notes,
        picture: picture(options, &setting, &cases, &runs),
    })
}

fn summary(
    options: &ChannelsOptions,
    setting: &OverloadSettings,
    cases: &[Case],
    runs: &[Vec<ChannelsRun>],
) -> ReportTable {
    let repeats = runs.first().map_or(0, Vec::len);
    let title = format!(
        "{} clients and a server stopped for {}, {repeats} trials",
        setting.clients,
        Exact(setting.outage)
    );
    let mut table = ReportTable::new(
        "channels",
        title,
        vec![
            Column::new("guard", "channel", ""),
            Column::new("share_percent", "share", "%"),
            Column::new("recovered", "comes", "back"),
            Column::new("recovery_s", "after", "s"),
            Column::new("before_per_s", "before", "1/s"),
            Column::new("after_per_s", "at end", "1/s"),
            Column::new("peak_concurrency", "peak", ""),
            Column::new("requests_stopped", "sent while", "stopped"),
            Column::new("given_up", "given up", ""),
            Column::hidden("recovered_trials"),
            Column::hidden("machines"),
            Column::hidden("clients"),
            Column::hidden("backoff"),
            Column::hidden("trials"),
        ],
    );
    for (case, runs) in cases.iter().zip(runs) {
        let courses = || runs.iter().map(|run| &run.course);
        let recovered = courses().filter(|course| course.recovers()).count();
        let mut times: Vec<_> =
            courses().filter(|it| it.recovers()).filter_map(OverloadCourse::recovery).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).filter(|_| 2 * recovered > repeats);
        table.push(vec![
            case.guard.name().into(),
            match case.guard {
                Guard::Alone => Cell::Missing,
                _ => u64::from(case.share).into(),
            },
            format!("{recovered}/{repeats}").into(),
            median.map_or(Cell::Missing, |time| Cell::Number(time.as_secs_f64(), 0)),
            Cell::number(mean(courses().map(OverloadCourse::before))),
            Cell::number(mean(courses().map(OverloadCourse::after))),
            courses().map(|it| it.peak).max().unwrap_or_default().into(),
            Cell::Number(mean(courses().map(|it| it.requests_stopped() as f64)), 0),
            Cell::Number(mean(runs.iter().map(|run| run.given_up as f64)), 0),
            recovered.into(),
            u64::from(options.machines).into(),
            setting.clients.into(),
            case.crowd.to_string().into(),
            repeats.into(),
        ]);
    }
    table
}

fn picture(
    options: &ChannelsOptions,
    setting: &OverloadSettings,
    cases: &[Case],
    runs: &[Vec<ChannelsRun>],
) -> Picture {
    let crowds = options.common.policies.len();
    let firsts: Vec<_> =
        cases.iter().zip(runs).filter_map(|(case, runs)| Some((case, runs.first()?))).collect();
    // A mean of five seconds smooths the curve.
    let lines = |of: &dyn Fn(&super::overload::Second) -> f64| -> Vec<PlotSeries> {
        let line = |(color, (case, run)): (usize, &(&Case, &ChannelsRun))| {
            let seconds = &run.course.seconds;
            let around = |at: usize| {
                let near = &seconds[at.saturating_sub(2)..(at + 3).min(seconds.len())];
                mean(near.iter().map(of))
            };
            PlotSeries {
                name: case.label(options, crowds),
                points: (0..seconds.len()).map(|at| (at as f64, around(at))).collect(),
                style: SeriesStyle::Line,
                color,
            }
        };
        firsts.iter().enumerate().map(line).collect()
    };
    let panel = |title: &str, y: Axis, series| Panel {
        title: title.to_owned(),
        x: Axis::linear("time, s"),
        y,
        series,
    };
    let mut panels = vec![
        panel(
            "Requests answered in time",
            Axis::linear("answers, 1/s"),
            lines(&|second| second.answers as f64),
        ),
        panel("Requests sent", Axis::log("requests, 1/s"), lines(&|second| second.requests as f64)),
    ];
    if options.share.len() > 1 {
        panels.push(shares(cases, runs));
    }
    let (before, resumed) = (setting.before.as_secs(), setting.resumed().as_secs());
    Picture {
        title: format!("Clients that share a channel, stopped from {before} s to {resumed} s"),
        panels,
    }
}

/// Draws the final goodput against the share that uses the channel.
fn shares(cases: &[Case], runs: &[Vec<ChannelsRun>]) -> Panel {
    let mut series: Vec<PlotSeries> = Vec::new();
    for (case, runs) in cases.iter().zip(runs).filter(|(case, _)| case.guard != Guard::Alone) {
        let answers = mean(runs.iter().map(|run| run.course.after()));
        let point = (f64::from(case.share), answers);
        let name = case.guard.name();
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(PlotSeries {
                name: name.to_owned(),
                points: vec![point],
                style: SeriesStyle::LineAndDots,
                color: case.guard as usize,
            }),
        }
    }
    for series in &mut series {
        series.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    Panel {
        title: "Answers at the end".into(),
        x: Axis::linear("clients that go through the channel, %"),
        y: Axis::linear("answers, 1/s"),
        series,
    }
}
