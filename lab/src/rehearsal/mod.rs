//! Rehearsal of an unchanged script in virtual time, with models of its commands.

mod chance;
mod changes;
mod named;
mod stage;
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
pub use changes::{ScriptChange, changes};
pub use ftsh_models::{CLAUSES, CommandModel, without_comment};
pub use named::{Named, named};
pub use stage::{CommandCounts, ScriptEnd};
pub use tries::{ClientLog, LogLine, MAX_LINES, TryCounts, TryStatistics};

use crate::common::random;
use crate::world::ClientWorld;
pub use crate::world::Stop;
use stage::RehearsalStage;

/// Number of events at one moment after which a client is considered stuck.
pub const MAX_AT_ONCE: u64 = 100_000;
/// Number of events after which a client is considered endless. Larger than [`MAX_AT_ONCE`], so
/// that a stuck client is detected first.
pub const MAX_EVENTS: u64 = 3 * MAX_AT_ONCE;
/// Maximum number of events with an explicit end time.
pub const MAX_EVENTS_UNTIL: u64 = 100 * MAX_EVENTS;
/// End time of a run without an explicit one.
const FOR_EVER: Duration = Duration::from_secs(1000 * 86_400);

/// Parameters shared by all trials.
#[derive(Debug)]
pub struct Rehearsal {
    /// Arguments of the script, including its name.
    pub args: Vec<BString>,
    /// Variables at the beginning.
    pub environment: Environment,
    /// Existing files with their contents.
    pub files: Vec<(String, String)>,
    /// Models of commands; the first that applies counts.
    pub models: Vec<CommandModel>,
    /// Policy of tries without one.
    pub policy: Policy,
    /// Number of clients that run the script at once.
    pub clients: u32,
    /// Period in which clients begin.
    pub start: Duration,
    /// Time at which unfinished runs are stopped.
    pub until: Option<Duration>,
    /// Seed of random numbers.
    pub seed: u64,
}

/// Detail of a trial's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Ends of the scripts.
    Endings,
    /// Also counts of the tries.
    Tries,
    /// Also starts of commands.
    Starts,
    /// Also the log of this client.
    Log(usize),
}

/// Result of a trial.
#[derive(Debug)]
pub struct Trial {
    /// Run of each client.
    pub runs: Vec<ClientRun>,
    /// Counts of each model's commands.
    pub uses: Vec<CommandCounts>,
    /// Counts of the commands without a model.
    pub others: Vec<(BString, CommandCounts)>,
    /// Number of unfinished runs for each command that was in progress, by name.
    pub unfinished: BTreeMap<BString, u64>,
    /// Counts of the tries.
    pub tries: TryStatistics,
    /// Starts of commands: seconds and number of the model.
    pub starts: Vec<(f32, usize)>,
    /// Number of events.
    pub events: u64,
    /// Reason for an early stop.
    pub stop: Option<Stop>,
}

/// Result of one client's script.
#[derive(Clone, Debug)]
pub struct ClientRun {
    /// Duration, or time until the stop.
    pub time: Duration,
    /// End of the script, if it ended.
    pub ending: Option<ScriptEnd>,
}

impl ClientRun {
    /// True if the script succeeded.
    pub fn success(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.success)
    }
}

impl Trial {
    /// Returns the share of clients that succeeded.
    pub fn share(&self) -> f64 {
        self.mean(|run| f64::from(u8::from(run.success())))
    }

    /// Returns the mean time of clients in seconds.
    pub fn time(&self) -> f64 {
        self.mean(|run| run.time.as_secs_f64())
    }

    fn mean(&self, of: impl Fn(&ClientRun) -> f64) -> f64 {
        crate::common::statistics::mean(self.runs.iter().map(of))
    }
}

impl Rehearsal {
    /// Runs `script` once for each client. Trials with the same number share their random numbers,
    /// also for similar scripts.
    pub fn trial(&self, script: &Script, number: u64, detail: Detail) -> Trial {
        let clients = self.clients as usize;
        let mut stage = RehearsalStage::new(&self.models, clients, self.seed, &[number, 1]);
        stage.starts = (detail == Detail::Starts).then(Vec::new);
        let level = match detail {
            Detail::Endings => Level::NOTHING,
            Detail::Tries | Detail::Starts | Detail::Log(_) => Level::STRUCTURES,
        };
        if let Detail::Log(client) = detail {
            stage.tries.kept = Some((client, ClientLog::default()));
        }
        let mut world = ClientWorld::new(stage, random(self.seed, &[number, 2]));
        let most = if self.until.is_some() { MAX_EVENTS_UNTIL } else { MAX_EVENTS };
        let of_all = |events: u64| events.saturating_mul(u64::from(self.clients));
        world.limit(of_all(most), of_all(MAX_AT_ONCE));
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
        let run = |(start, ending): (Duration, Option<ScriptEnd>)| {
            let end = ending.as_ref().map_or(stopped_at, |ending| ending.at.elapsed());
            ClientRun { time: end.saturating_sub(start), ending }
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
