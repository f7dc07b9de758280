//! A server that gets slower under load, and clients that give up waiting and come again. After an
//! article on the interval between retried requests, whose server is stopped and continued.

mod course;
mod deadline;
pub mod live;
mod report;
pub mod serve;
mod server;
mod simulate;

use std::time::Duration;

use anyhow::{Result, bail};

use crate::common::{Common, Crowd, Progress, Report, input, random, trials};
pub use course::{Course, Second, WINDOW};
pub use server::{Slowness, Work};
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
pub struct Options {
    /// How many clients
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub clients: u32,
    /// The mean time from an answer to the client's next request; exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = input::length)]
    pub think: Duration,
    /// How long a client waits for an answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = input::length)]
    pub timeout: Duration,
    /// How long the server takes with few requests
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = input::length)]
    pub base: Duration,
    /// How many requests at once are few
    #[arg(long, value_name = "N", default_value = "30", value_parser = input::positive)]
    pub limit: f64,
    /// By what the time grows when there are --divisor requests more
    #[arg(long, value_name = "FACTOR", default_value = "1.05", value_parser = factor)]
    pub factor: f64,
    /// See --factor
    #[arg(long, value_name = "N", default_value = "15", value_parser = input::positive)]
    pub divisor: f64,
    /// How many connections wait for a server that doesn't accept them; others are lost
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub backlog: u32,
    /// How long all goes well at first
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = input::length)]
    pub before: Duration,
    /// How long the server is stopped
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = input::length)]
    pub outage: Duration,
    /// How long it is watched afterwards [default: 5min, live 3min]
    #[arg(long, value_name = "TIME", value_parser = input::length)]
    pub watch: Option<Duration>,
    /// Also tell who has an answer within this time if the server is stopped for most of it
    #[arg(long, value_name = "TIME", value_parser = input::length, conflicts_with = "live")]
    pub deadline: Option<Duration>,
    /// With real processes, connections and time
    #[arg(long, conflicts_with = "trials")]
    pub live: bool,
    /// How many times faster than told the live run is: all times are divided by it
    #[arg(long, value_name = "FACTOR", default_value = "10", value_parser = input::positive, requires = "live")]
    pub scale: f64,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: Common,
}

/// The article's two clients, and half a crowd of each; this one isn't run live unless told.
const POLICIES: [&str; 3] = [
    "fixed from 100 ms",
    "normal from 100 ms to 5 min by 2.71828",
    "fixed from 100 ms + normal from 100 ms to 5 min by 2.71828",
];

/// The longest run, in seconds that are looked at.
const LONGEST: f64 = 1e6;

/// What crowds go through.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How many clients.
    pub clients: usize,
    /// The mean time from an answer to the next request.
    pub think: Duration,
    /// How long a client waits for an answer.
    pub timeout: Duration,
    /// The server.
    pub slowness: Slowness,
    /// How many connections wait for a stopped server.
    pub backlog: u32,
    /// When it is stopped.
    pub before: Duration,
    /// For how long.
    pub outage: Duration,
    /// How long it is watched afterwards.
    pub watch: Duration,
    /// When clients give up that have been without an answer since the server was stopped.
    pub deadline: Option<Deadline>,
}

/// A moment at which all clients give up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// Since the beginning.
    pub by: Duration,
    /// Whether a client whose next delay is too long makes a last attempt in the time that is left.
    pub last_attempt: bool,
}

impl Setting {
    /// When the server is continued.
    pub fn resumed(&self) -> Duration {
        self.before + self.outage
    }

    /// When all is over.
    pub fn end(&self) -> Duration {
        self.resumed() + self.watch
    }

    /// About as many events as there can be.
    fn events(&self) -> f64 {
        let shortest = self.timeout.min(self.think).min(self.slowness.base);
        self.clients as f64 * self.end().div_duration_f64(shortest)
    }

    /// What happens, before anything has.
    pub fn course(&self) -> Course {
        Course::new(self.clients, self.before, self.resumed(), self.end())
    }
}

impl Options {
    fn setting(&self) -> Setting {
        let minutes = if self.live { 3 } else { 5 };
        Setting {
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

/// A factor of at least 1.
fn factor(text: &str) -> Result<f64, String> {
    match input::positive(text)? {
        factor if factor >= 1.0 => Ok(factor),
        _ => Err("must be at least 1".into()),
    }
}

/// Runs the scenario.
pub fn run(options: &Options) -> Result<Report> {
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
    // Live, a crowd takes half a minute.
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

/// The trials of each crowd, in virtual time.
fn all(options: &Options, setting: &Setting, crowds: &[Crowd]) -> Result<Vec<Vec<Course>>> {
    let repeats = u64::from(options.common.trials(10));
    input::bounded(setting.events() * (crowds.len() as u64 * repeats) as f64)?;
    let cases: Vec<_> =
        (0..crowds.len()).flat_map(|crowd| (0..repeats).map(move |trial| (crowd, trial))).collect();
    let progress = Progress::new(cases.len());
    let mut courses = trials(&cases, &progress, |(crowd, trial)| {
        let random = random(options.common.seed, &[*crowd as u64, *trial]);
        simulate(setting, &crowds[*crowd], random)
    })
    .into_iter();
    Ok(crowds.iter().map(|_| courses.by_ref().take(repeats as usize).collect()).collect())
}

/// One run of each crowd, for real.
fn live(options: &Options, setting: &Setting, crowds: &[Crowd]) -> Result<Vec<Vec<Course>>> {
    let run = |(number, crowd): (usize, &Crowd)| {
        let random = random(options.common.seed, &[number as u64, 0]);
        Ok(vec![live::run(setting, crowd, options.scale, random)?])
    };
    crowds.iter().enumerate().map(run).collect()
}
