//! Disciplines of clients that share a resource, after Thain and Livny, *The Ethernet Approach to
//! Grid Computing*, 2003.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;
use rand::RngExt;

use crate::common::{
    ClientCrowd, CommonOptions, PlotSeries, SeriesStyle, TrialProgress, input, labels, random,
    trials,
};
use crate::world::{ClientWorld, CommandModels};

/// Discipline of a client that shares a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Discipline {
    /// Retries at once after a failure
    Fixed,
    /// Retries after a growing delay
    Aloha,
    /// Retries as aloha, and checks for free capacity first
    Ethernet,
    /// Retries as aloha, through a channel with a limited number of places
    Channel,
    /// Retries as aloha, on an engine, and avoids machines that fail
    Exclusion,
}

impl Discipline {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aloha => "aloha",
            Self::Ethernet => "ethernet",
            Self::Channel => "channel",
            Self::Exclusion => "exclusion",
        }
    }
}

/// Clients of one line in the picture.
#[derive(Clone, Debug)]
pub struct ClientKind {
    /// Discipline.
    pub discipline: Discipline,
    /// Policies; `fixed` has no delays.
    pub crowd: Option<ClientCrowd>,
    /// Number of the crowd among the compared ones.
    pub number: usize,
    /// Label of the line.
    pub name: String,
    /// Script of each client.
    pub script: Script,
}

impl ClientKind {
    /// Returns the policies as written in scripts.
    pub fn backoff(&self) -> String {
        self.crowd.as_ref().map_or_else(|| "none".into(), ToString::to_string)
    }

    /// Creates a world of such clients, each starting at a random moment within `start`. `place`
    /// separates its random numbers from others.
    pub fn world<C: CommandModels>(
        &self,
        commands: C,
        clients: u32,
        start: Duration,
        seed: u64,
        place: &[u64],
    ) -> ClientWorld<C> {
        let kind = [self.discipline as u64, self.number as u64];
        let random = |what| random(seed, &[&kind, place, &[what]].concat());
        let mut own = random(0);
        let mut world = ClientWorld::new(commands, random(1));
        let none = Policy::default();
        for client in 0..clients as usize {
            let policy = self.crowd.as_ref().map_or(&none, |crowd| crowd.policy(client));
            let start = start.mul_f64(own.random());
            world.add(&self.script, policy, start, own.random());
        }
        world
    }

    /// Returns the line in a picture over numbers of clients.
    pub fn line(&self, color: usize, mut points: Vec<(f64, f64)>) -> PlotSeries {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        PlotSeries { name: self.name.clone(), points, style: SeriesStyle::LineAndDots, color }
    }
}

/// Policy of tries without one: the default of 2003, as in the sources. Today's has a cap of a
/// minute.
const POLICIES: [&str; 1] = ["ethernet to 1 h"];

/// Returns each requested discipline, or else each of `all`, combined with each crowd if it has
/// delays.
pub fn kinds(
    asked: &[Discipline],
    all: &[Discipline],
    common: &CommonOptions,
    script: impl Fn(Discipline) -> Result<Script>,
) -> Result<Vec<ClientKind>> {
    let crowds = common.crowds(&POLICIES)?;
    let labels = labels(&crowds);
    let mut kinds = Vec::new();
    for discipline in if asked.is_empty() { all } else { asked }.iter().copied() {
        let script = script(discipline)?;
        let name = discipline.name().to_owned();
        if discipline == Discipline::Fixed {
            kinds.push(ClientKind { discipline, crowd: None, number: 0, name, script });
            continue;
        }
        for (number, (crowd, label)) in crowds.iter().zip(&labels).enumerate() {
            let name = if crowds.len() == 1 { name.clone() } else { format!("{name}, {label}") };
            let (crowd, script) = (Some(crowd.clone()), script.clone());
            kinds.push(ClientKind { discipline, crowd, number, name, script });
        }
    }
    Ok(kinds)
}

/// Runs `run` for each kind and each of the `numbers` of clients, `repeats` times. Returns the
/// results by kind and number. `events` is the estimated number of events per client.
pub fn compare<R: Send>(
    kinds: &[ClientKind],
    numbers: &[u32],
    repeats: u64,
    events: f64,
    run: impl Fn(&ClientKind, u32, u64) -> R + Sync,
) -> Result<Vec<Vec<Vec<R>>>> {
    let clients = numbers.iter().copied().map(f64::from).sum::<f64>();
    input::bounded(clients * (kinds.len() as u64 * repeats) as f64 * events)?;
    let mut cases = Vec::new();
    // Starting the longest runs first keeps all threads busy until the end.
    for number in (0..numbers.len()).rev() {
        let of = |kind| (0..repeats).map(move |trial| (kind, number, trial));
        cases.extend((0..kinds.len()).flat_map(of));
    }
    let progress = TrialProgress::new(cases.len());
    let runs = trials(&cases, &progress, |(kind, number, trial)| {
        run(&kinds[*kind], numbers[*number], *trial)
    });
    let none = || numbers.iter().map(|_| Vec::new()).collect();
    let mut results: Vec<Vec<Vec<R>>> = kinds.iter().map(|_| none()).collect();
    for ((kind, number, _), run) in cases.into_iter().zip(runs) {
        results[kind][number].push(run);
    }
    Ok(results)
}

/// Describes the compared policies.
pub fn policies(kinds: &[ClientKind]) -> Option<String> {
    let mut policies: Vec<_> =
        kinds.iter().filter_map(|kind| kind.crowd.as_ref()).map(ToString::to_string).collect();
    policies.sort();
    policies.dedup();
    let fixed = kinds.iter().any(|kind| kind.crowd.is_none());
    let but = if fixed { ", but of fixed, which has none" } else { "" };
    (!policies.is_empty()).then(|| format!("Delays{but}: {}.", policies.join("; ")))
}
