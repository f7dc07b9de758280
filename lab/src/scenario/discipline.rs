//! How clients use something that many use, after Thain and Livny, *The Ethernet Approach to Grid
//! Computing*, 2003.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use ftsh_syntax::Script;
use ftsh_syntax::backoff::Policy;
use rand::RngExt;

use crate::common::{Common, Crowd, Progress, Series, Style, input, labels, random, trials};
use crate::world::{Commands, World};

/// How a client uses what many use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Discipline {
    /// Repeats at once what failed
    Fixed,
    /// Repeats what failed after a delay that grows
    Aloha,
    /// Does as aloha, but looks first whether there is room
    Ethernet,
    /// Does as aloha, but through a channel that has so many places
    Channel,
    /// Does as aloha, but has an engine run it, and avoids machines that fail
    Exclusion,
}

impl Discipline {
    /// Its name.
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

/// The clients of one line in the picture.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they do.
    pub discipline: Discipline,
    /// Their delays. Those of `fixed` have none.
    pub crowd: Option<Crowd>,
    /// The number of the crowd among those to compare.
    pub number: usize,
    /// What to call them.
    pub name: String,
    /// What each of them runs.
    pub script: Script,
}

impl Kind {
    /// The delays, as scripts write them.
    pub fn backoff(&self) -> String {
        self.crowd.as_ref().map_or_else(|| "none".into(), ToString::to_string)
    }

    /// A world of such clients, each of which begins at a random moment within `start`. The `place`
    /// sets its random numbers apart from those of others.
    pub fn world<C: Commands>(
        &self,
        commands: C,
        clients: u32,
        start: Duration,
        seed: u64,
        place: &[u64],
    ) -> World<C> {
        let kind = [self.discipline as u64, self.number as u64];
        let random = |what| random(seed, &[&kind, place, &[what]].concat());
        let mut own = random(0);
        let mut world = World::new(commands, random(1));
        let none = Policy::default();
        for client in 0..clients as usize {
            let policy = self.crowd.as_ref().map_or(&none, |crowd| crowd.policy(client));
            let start = start.mul_f64(own.random());
            world.add(&self.script, policy, start, own.random());
        }
        world
    }

    /// Its line in a picture, over numbers of clients.
    pub fn line(&self, color: usize, mut points: Vec<(f64, f64)>) -> Series {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series { name: self.name.clone(), points, style: Style::LineAndDots, color }
    }
}

/// The delays of tries in the scripts, which name none: the shell's own.
const POLICIES: [&str; 1] = ["ethernet"];

/// Each of the disciplines asked for, or else of `all`, with each of the crowds if it delays.
pub fn kinds(
    asked: &[Discipline],
    all: &[Discipline],
    common: &Common,
    script: impl Fn(Discipline) -> Result<Script>,
) -> Result<Vec<Kind>> {
    let crowds = common.crowds(&POLICIES)?;
    let labels = labels(&crowds);
    let mut kinds = Vec::new();
    for discipline in if asked.is_empty() { all } else { asked }.iter().copied() {
        let script = script(discipline)?;
        let name = discipline.name().to_owned();
        if discipline == Discipline::Fixed {
            kinds.push(Kind { discipline, crowd: None, number: 0, name, script });
            continue;
        }
        for (number, (crowd, label)) in crowds.iter().zip(&labels).enumerate() {
            let name = if crowds.len() == 1 { name.clone() } else { format!("{name}, {label}") };
            let (crowd, script) = (Some(crowd.clone()), script.clone());
            kinds.push(Kind { discipline, crowd, number, name, script });
        }
    }
    Ok(kinds)
}

/// Does `run` with each kind and each of the `numbers` of clients, `repeats` times: what came of it
/// by kind, and then by number. A client can have about as many `events` in a run.
pub fn compare<R: Send>(
    kinds: &[Kind],
    numbers: &[u32],
    repeats: u64,
    events: f64,
    run: impl Fn(&Kind, u32, u64) -> R + Sync,
) -> Result<Vec<Vec<Vec<R>>>> {
    let clients = numbers.iter().copied().map(f64::from).sum::<f64>();
    input::bounded(clients * (kinds.len() as u64 * repeats) as f64 * events)?;
    let mut cases = Vec::new();
    // The longest first, so that no thread is left alone with one in the end.
    for number in (0..numbers.len()).rev() {
        let of = |kind| (0..repeats).map(move |trial| (kind, number, trial));
        cases.extend((0..kinds.len()).flat_map(of));
    }
    let progress = Progress::new(cases.len());
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

/// Says which delays there were.
pub fn policies(kinds: &[Kind]) -> Option<String> {
    let mut policies: Vec<_> =
        kinds.iter().filter_map(|kind| kind.crowd.as_ref()).map(ToString::to_string).collect();
    policies.sort();
    policies.dedup();
    let fixed = kinds.iter().any(|kind| kind.crowd.is_none());
    let but = if fixed { ", but of fixed, which has none" } else { "" };
    (!policies.is_empty()).then(|| format!("Delays{but}: {}.", policies.join("; ")))
}
