//! A server that slows down under load, and clients that time out and retry. After an article on
//! the interval between retried requests, whose server is stopped and continued.

mod course;
mod deadline;
pub mod live;
mod report;
pub mod serve;
mod server;
mod simulate;

use std::time::Duration;

use anyhow::{Result, bail};

use crate::common::{ClientCrowd, CommonOptions, Report, TrialProgress, input, random, trials};
pub use course::{OverloadCourse, Second, WINDOW};
pub use server::{ServerWork, Slowness};
pub use simulate::simulate;

/// Overload: whether a server comes back after it was stopped for a while
///
/// Clients send requests now and then, wait for the answer for so long, and retry by their policy.
/// The server takes longer the more requests it has at once, also those nobody waits for any more.
/// With --live there are a real server and real clients on 127.0.0.1, stopped by SIGSTOP.
///
/// Example: ftsh-lab overload --policy 'fixed from 100 ms' --policy 'full from 1 s to 5 min'
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct OverloadOptions {
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: u32,
    /// Mean time from an answer to the client's next request; exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub think: Duration,
    /// Time that a client waits for an answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = input::length)]
    pub timeout: Duration,
    /// Response time of the server with few requests
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = input::length)]
    pub base: Duration,
    /// Number of concurrent requests without a slowdown
    #[arg(long, value_name = "N", default_value = "30", value_parser = input::positive)]
    pub limit: f64,
    /// Growth of the response time for each --divisor further requests
    #[arg(long, value_name = "FACTOR", default_value = "1.05", value_parser = factor)]
    pub factor: f64,
    /// See --factor
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
    /// Duration of the observation afterwards [default: 5min, live 3min]
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub watch: Option<Duration>,
    /// Also report the clients with an answer within this time if the server is stopped for most of
    /// it
    #[arg(long, value_name = "TIME", value_parser = input::length, conflicts_with = "live")]
    pub deadline: Option<Duration>,
    /// With real processes, connections and time
    #[arg(long, conflicts_with = "trials")]
    pub live: bool,
    /// Speed of the live run: all times are divided by this factor
    #[arg(long, value_name = "FACTOR", default_value = "10", value_parser = input::positive, requires = "live")]
    pub scale: f64,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// The two clients of the article and half a crowd of each; the latter is not run live by default.
const POLICIES: [&str; 3] = [
    "fixed from 100 ms",
    "normal from 100 ms to 5 min by 2.71828",
    "fixed from 100 ms + normal from 100 ms to 5 min by 2.71828",
];

/// Longest run, in seconds of the settings.
const LONGEST: f64 = 1e6;

/// Parameters of the overload.
#[derive(Clone, Debug)]
pub struct OverloadSettings {
    /// Number of clients.
    pub clients: usize,
    /// Mean time from an answer to the next request.
    pub think: Duration,
    /// Time that a client waits for an answer.
    pub timeout: Duration,
    /// Parameters of the server.
    pub slowness: Slowness,
    /// Connections that wait for a stopped server.
    pub backlog: u32,
    /// Time of the stop.
    pub before: Duration,
    /// Duration of the stop.
    pub outage: Duration,
    /// Duration of the observation afterwards.
    pub watch: Duration,
    /// Deadline of clients without an answer since the stop.
    pub deadline: Option<Deadline>,
}

/// Moment at which all clients give up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// Time since the beginning.
    pub by: Duration,
    /// True if a client whose next delay is too long makes a last attempt in the remaining time.
    pub last_attempt: bool,
}

impl OverloadSettings {
    /// Returns the time of the continuation.
    pub fn resumed(&self) -> Duration {
        self.before + self.outage
    }

    /// Returns the end of the run.
    pub fn end(&self) -> Duration {
        self.resumed() + self.watch
    }

    /// Returns an upper estimate of the number of events.
    fn events(&self) -> f64 {
        let shortest = self.timeout.min(self.think).min(self.slowness.base);
        self.clients as f64 * self.end().div_duration_f64(shortest)
    }

    /// Returns an empty course.
    pub fn course(&self) -> OverloadCourse {
        OverloadCourse::new(self.clients, self.before, self.resumed(), self.end())
    }
}

impl OverloadOptions {
    fn setting(&self) -> OverloadSettings {
        let minutes = if self.live { 3 } else { 5 };
        OverloadSettings {
            clients: self.clients as usize,
            think: self.think,
            timeout: self.timeout,
            slowness: Slowness {
                base: self.base,
                limit: self.limit,
                factor: self.factor,
                divisor: self.divisor,
            },
            backlog: self.backlog,
            before: self.before,
            outage: self.outage,
            watch: self.watch.unwrap_or(Duration::from_secs(minutes * 60)),
            deadline: None,
        }
    }
}

/// Parses a factor of at least 1.
fn factor(text: &str) -> Result<f64, String> {
    match input::positive(text)? {
        factor if factor >= 1.0 => Ok(factor),
        _ => Err("must be at least 1".into()),
    }
}

/// Runs the scenario.
pub fn run(options: &OverloadOptions) -> Result<Report> {
    let setting = options.setting();
    if setting.end().as_secs_f64() > LONGEST {
        bail!("--before, --outage and --watch come to more than {LONGEST} s");
    }
    if options.deadline.is_some_and(|limit| (limit.as_secs() as usize) < WINDOW) {
        bail!("--deadline must be at least {WINDOW} s");
    }
    for (name, time) in [("before", setting.before), ("watch", setting.watch)] {
        if (time.as_secs() as usize) < WINDOW {
            bail!("--{name} must be at least {WINDOW} s to tell how much is answered");
        }
    }
    // A crowd takes half a minute in a live run.
    let policies = if options.live { &POLICIES[..2] } else { &POLICIES };
    let crowds = options.common.crowds(policies)?;
    let compare = |limit| deadline::compare(options, &setting, &crowds, limit);
    let in_time = options.deadline.map(compare).transpose()?;
    let courses = if options.live {
        live(options, &setting, &crowds)?
    } else {
        all(options, &setting, &crowds)?
    };
    let mut report = report::report(options, &setting, &crowds, &courses);
    if let Some((table, panel)) = in_time {
        report.tables.push(table);
        report.picture.panels.push(panel);
    }
    Ok(report)
}

/// Simulates the trials of each crowd.
fn all(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
) -> Result<Vec<Vec<OverloadCourse>>> {
    let repeats = u64::from(options.common.trials(10));
    input::bounded(setting.events() * (crowds.len() as u64 * repeats) as f64)?;
    let cases: Vec<_> =
        (0..crowds.len()).flat_map(|crowd| (0..repeats).map(move |trial| (crowd, trial))).collect();
    let progress = TrialProgress::new(cases.len());
    let mut courses = trials(&cases, &progress, |(crowd, trial)| {
        let random = random(options.common.seed, &[*crowd as u64, *trial]);
        simulate(setting, &crowds[*crowd], random)
    })
    .into_iter();
    Ok(crowds.iter().map(|_| courses.by_ref().take(repeats as usize).collect()).collect())
}

/// Runs each crowd once in real time.
fn live(
    options: &OverloadOptions,
    setting: &OverloadSettings,
    crowds: &[ClientCrowd],
) -> Result<Vec<Vec<OverloadCourse>>> {
    let run = |(number, crowd): (usize, &ClientCrowd)| {
        let random = random(options.common.seed, &[number as u64, 0]);
        Ok(vec![live::run(setting, crowd, options.scale, random)?])
    };
    crowds.iter().enumerate().map(run).collect()
}
