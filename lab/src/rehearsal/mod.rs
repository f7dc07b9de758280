//! A script as it is, in virtual time, with its commands modelled: what will come of it?

mod chance;
mod changes;
pub mod model;
mod named;
mod parse;
mod stage;
mod tokens;
mod tries;

use std::collections::BTreeMap;
use std::time::Duration;

use bstr::BString;
use ftsh_machine::effect::Environment;
use ftsh_machine::record::Level;
use ftsh_machine::{Config, Machine};
use ftsh_sim::Shell;
use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;
use rand::RngExt;

pub use chance::{Difference, Share, difference, share};
pub use changes::{Change, changes};
pub use model::Model;
pub use named::{Named, named};
pub use parse::CLAUSES;
pub use stage::{Ending, Use};
pub use tokens::without_comment;
pub use tries::{Line, Log, MOST_LINES, Tried, Tries};

use crate::common::random;
pub use crate::world::Stop;
use crate::world::World;
use stage::Stage;

/// A client that has done so much at one moment is one for whom time stands still.
pub const MOST_AT_ONCE: u64 = 100_000;
/// A client that has done so much without coming to its end will not. It is more, so that time that
/// stands still is found to.
pub const MOST_EVENTS: u64 = 3 * MOST_AT_ONCE;
/// Who says until when to look wants to see what comes by then, but won't wait for more than this.
pub const MOST_EVENTS_UNTIL: u64 = 100 * MOST_EVENTS;
/// What is not over then won't be.
const FOR_EVER: Duration = Duration::from_secs(1000 * 86_400);

/// What is the same in all trials.
#[derive(Debug)]
pub struct Rehearsal {
    /// The script's arguments, its name the first.
    pub args: Vec<BString>,
    /// The variables that it begins with.
    pub environment: Environment,
    /// The files that are there, with their contents.
    pub files: Vec<(String, String)>,
    /// Of commands; the first that is about one counts.
    pub models: Vec<Model>,
    /// The delays of tries that name no policy.
    pub policy: Policy,
    /// How many run the script at once.
    pub clients: u32,
    /// Within what time they begin.
    pub start: Duration,
    /// When a run is stopped that isn't over, if that is said.
    pub until: Option<Duration>,
    /// Repeats it.
    pub seed: u64,
}

/// What to remember of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// How the scripts end.
    Endings,
    /// And what the tries did.
    Tries,
    /// And when commands were started.
    Starts,
    /// And all that this client logs.
    Log(usize),
}

/// What came of a trial.
#[derive(Debug)]
pub struct Trial {
    /// How each client's script ended, if it did.
    pub runs: Vec<Run>,
    /// What came of each model's commands.
    pub uses: Vec<Use>,
    /// What came of the commands without a model.
    pub others: Vec<(BString, Use)>,
    /// In how many runs that weren't over what was running, by name.
    pub unfinished: BTreeMap<BString, u64>,
    /// What came of the tries.
    pub tries: Tries,
    /// When commands started, in seconds, and of which model they are.
    pub starts: Vec<(f32, usize)>,
    /// How many events there were.
    pub events: u64,
    /// Why it wasn't gone on with, if it did too much.
    pub stop: Option<Stop>,
}

/// What came of one client's script.
#[derive(Clone, Debug)]
pub struct Run {
    /// How long it took, or was watched.
    pub time: Duration,
    /// How it ended, if it did.
    pub ending: Option<Ending>,
}

impl Run {
    /// Whether it succeeded.
    pub fn success(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.success)
    }
}

impl Trial {
    /// The share of its clients that succeeded.
    pub fn share(&self) -> f64 {
        self.mean(|run| f64::from(u8::from(run.success())))
    }

    /// The mean time of its clients in seconds.
    pub fn time(&self) -> f64 {
        self.mean(|run| run.time.as_secs_f64())
    }

    fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        crate::common::statistics::mean(self.runs.iter().map(of))
    }
}

impl Rehearsal {
    /// Runs `script` once by each client. Trials of the same number have the same random numbers, of
    /// scripts that differ a little as well.
    pub fn trial(&self, script: &Script, number: u64, detail: Detail) -> Trial {
        let clients = self.clients as usize;
        let mut stage = Stage::new(&self.models, clients, self.seed, &[number, 1]);
        stage.starts = (detail == Detail::Starts).then(Vec::new);
        let level = match detail {
            Detail::Endings => Level::NOTHING,
            Detail::Tries | Detail::Starts | Detail::Log(_) => Level::STRUCTURES,
        };
        if let Detail::Log(client) = detail {
            stage.tries.kept = Some((client, Log::default()));
        }
        let mut world = World::new(stage, random(self.seed, &[number, 2]));
        let most = if self.until.is_some() { MOST_EVENTS_UNTIL } else { MOST_EVENTS };
        let of_all = |events: u64| events.saturating_mul(u64::from(self.clients));
        world.limit(of_all(most), of_all(MOST_AT_ONCE));
        let mut own = random(self.seed, &[number, 3]);
        let mut starts = Vec::with_capacity(clients);
        for _ in 0..clients {
            let config = Config {
                pid: 1,
                backoff: self.policy.clone(),
                log_level: level,
                ..Config::default()
            };
            let (args, environment) = (self.args.clone(), self.environment.clone());
            let seed = own.random();
            let start = match self.clients {
                1 => Duration::ZERO,
                _ => self.start.mul_f64(own.random()),
            };
            let mut shell = Shell::default();
            for (path, content) in &self.files {
                shell.add_file(path, content);
            }
            world.join(Machine::new(script, args, environment, config, seed), shell, start);
            starts.push(start);
        }
        let until = self.until.unwrap_or(FOR_EVER);
        world.run(until);
        let (events, stop) = (world.handled(), world.stop());
        let stopped_at = if stop.is_some() { world.now() } else { until };
        let stage = world.commands;
        let mut unfinished = BTreeMap::new();
        for (_, name) in stage.unfinished() {
            *unfinished.entry(name.clone()).or_default() += 1;
        }
        let run = |(start, ending): (Duration, Option<Ending>)| {
            let end = ending.as_ref().map_or(stopped_at, |ending| ending.at.elapsed());
            Run { time: end.saturating_sub(start), ending }
        };
        Trial {
            runs: starts.into_iter().zip(stage.endings).map(run).collect(),
            uses: stage.uses,
            others: stage.others.into_iter().collect(),
            unfinished,
            tries: stage.tries,
            starts: stage.starts.unwrap_or_default(),
            events,
            stop,
        }
    }
}
