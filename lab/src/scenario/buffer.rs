//! Producers that share a disk buffer. Thain and Livny, *The Ethernet Approach to Grid Computing*,
//! 2003.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use ftsh::backoff::Policy;
use ftsh::duration::Exact;
use ftsh::syntax::Script;
use rand::RngExt;

use super::discipline::{Discipline, Kind, kinds, policies};
use crate::common::{
    Axis, Column, Common, Panel, Picture, Progress, Report, Series, Style, Table, Value, input,
    random, trials,
};
use crate::world::disk::{Buffer, Counts, Setting};
use crate::world::{World, script};

/// A shared disk: files consumed and collisions against the number of producers
///
/// Each producer runs lab/scripts/produce-*.ftsh, which writes one file after the other. One that
/// doesn't fit is deleted and made again; a consumer takes away the complete ones.
///
/// Example: ftsh-lab buffer --producers 5,20,50 --plot buffer.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// How many producers; repeatable [default: 1, 2, 3, 4, 5, 10, 20, … 50]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub producers: Vec<u32>,
    /// What the producers do; repeatable [default: all]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    pub discipline: Vec<Discipline>,
    /// How long they do it
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = input::length)]
    pub time: Duration,
    /// The size of the buffer in megabytes
    #[arg(long, value_name = "MB", default_value = "120", value_parser = input::positive)]
    pub buffer: f64,
    /// The megabytes that the consumer takes away in a second
    #[arg(long, value_name = "MB", default_value = "1", value_parser = input::positive)]
    pub drain: f64,
    /// The size of the largest file in megabytes; sizes are uniform from 0
    #[arg(long, value_name = "MB", default_value = "1", value_parser = input::positive)]
    pub largest: f64,
    /// How long making a file takes, whatever its size
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = input::length)]
    pub production: Duration,
    /// How many kilobytes are written at once
    #[arg(long, value_name = "KB", default_value = "64", value_parser = input::positive)]
    pub block: f64,
    /// How long a look at the disk takes, for each of the commands it needs
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = input::length)]
    pub look: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: Common,
}

/// The delays of tries in the scripts, which name none: the shell's own.
const POLICIES: [&str; 1] = ["ethernet"];

/// How one world ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// What came of the files.
    pub counts: Counts,
    /// Events of the simulation.
    pub events: u64,
}

impl Options {
    fn setting(&self) -> Setting {
        Setting {
            capacity: (self.buffer * 1e6) as u64,
            drain: self.drain * 1e6,
            largest: (self.largest * 1e6) as u64,
            production: self.production,
            block: (self.block * 1e3) as u64,
            look: self.look,
        }
    }
}

/// A discipline's script.
fn text(discipline: Discipline) -> (&'static str, &'static str) {
    match discipline {
        Discipline::Fixed => {
            ("produce-fixed.ftsh", include_str!("../../scripts/produce-fixed.ftsh"))
        }
        Discipline::Aloha => {
            ("produce-aloha.ftsh", include_str!("../../scripts/produce-aloha.ftsh"))
        }
        Discipline::Ethernet => {
            ("produce-ethernet.ftsh", include_str!("../../scripts/produce-ethernet.ftsh"))
        }
    }
}

/// Lets producers fill the buffer. `trial` sets this run's random numbers apart from those of
/// others.
pub fn produce(options: &Options, kind: &Kind, script: &Script, producers: u32, trial: u64) -> Run {
    let place =
        |what| [kind.discipline as u64, kind.number as u64, u64::from(producers), trial, what];
    let mut own = random(options.common.seed, &place(0));
    let models = random(options.common.seed, &place(1));
    let mut world = World::new(Buffer::new(options.setting()), models);
    let none = Policy::default();
    for producer in 0..producers as usize {
        let policy = kind.crowd.as_ref().map_or(&none, |crowd| crowd.policy(producer));
        let start = options.production.mul_f64(own.random());
        world.add(script, policy, start, own.random());
    }
    world.run(options.time);
    let events = world.handled();
    Run { counts: world.commands.counts, events }
}

/// Runs the scenario.
pub fn run(options: &Options) -> Result<Report> {
    let setting = options.setting();
    if setting.block == 0 || setting.largest == 0 || setting.capacity == 0 {
        bail!("--buffer, --largest and --block must come to at least one byte");
    }
    if setting.largest.div_ceil(setting.block) > 1_000_000 {
        bail!("--block: the largest file would have over a million blocks");
    }
    let producers = match &options.producers[..] {
        [] => vec![1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50],
        given => given.to_vec(),
    };
    let disciplines = match &options.discipline[..] {
        [] => Discipline::value_variants().to_vec(),
        given => given.to_vec(),
    };
    let kinds = kinds(&disciplines, &options.common.crowds(&POLICIES)?);
    let scripts = kinds.iter().map(|kind| {
        let (name, text) = text(kind.discipline);
        script(name, text)
    });
    let scripts = scripts.collect::<Result<Vec<_>>>()?;
    let repeats = u64::from(options.common.trials(3));
    let all = producers.iter().copied().map(f64::from).sum::<f64>()
        * (kinds.len() as u64 * repeats) as f64;
    let blocks = setting.largest.div_ceil(setting.block) as f64;
    input::bounded(all * options.time.div_duration_f64(options.production) * blocks)?;
    let mut cases = Vec::new();
    for number in producers.iter().rev() {
        let of = |kind| (0..repeats).map(move |trial| (kind, *number, trial));
        cases.extend((0..kinds.len()).flat_map(of));
    }
    let progress = Progress::new(cases.len());
    let runs = trials(&cases, &progress, |(kind, number, trial)| {
        produce(options, &kinds[*kind], &scripts[*kind], *number, *trial)
    });
    let mut table = Table::new(
        "buffer",
        format!("Files through the buffer in {}, mean of {repeats} trials", Exact(options.time)),
        vec![
            Column::new("discipline", "discipline", ""),
            Column::new("producers", "producers", ""),
            Column::new("files", "consumed", "files"),
            Column::new("consumed_mb", "consumed", "MB"),
            Column::new("productions", "begun", ""),
            Column::new("collisions", "collisions", ""),
            Column::new("wasted_mb", "wasted", "MB"),
            Column::new("deferrals", "deferred", ""),
            Column::hidden("backoff"),
            Column::hidden("trials"),
            Column::hidden("time_s"),
        ],
    );
    let (mut files, mut collisions) = (Vec::new(), Vec::new());
    for (at, kind) in kinds.iter().enumerate() {
        let line = || Series {
            name: kind.name.clone(),
            points: Vec::new(),
            style: Style::LineAndDots,
            color: at,
        };
        let (mut consumed, mut collided) = (line(), line());
        for number in &producers {
            let of = |case: &(usize, u32, u64)| case.0 == at && case.1 == *number;
            let runs = cases.iter().zip(&runs).filter(|(case, _)| of(case)).map(|(_, run)| run);
            let mean = |what: fn(&Counts) -> u64| {
                runs.clone().map(|run| what(&run.counts)).sum::<u64>() as f64 / repeats as f64
            };
            let done = mean(|counts| counts.consumed);
            let lost = mean(|counts| counts.collisions);
            consumed.points.push((f64::from(*number), done));
            collided.points.push((f64::from(*number), lost));
            table.push(vec![
                kind.name.clone().into(),
                u64::from(*number).into(),
                Value::Number(done, 0),
                Value::Number(mean(|counts| counts.consumed_bytes) / 1e6, 0),
                Value::Number(mean(|counts| counts.productions), 0),
                Value::Number(lost, 0),
                Value::Number(mean(|counts| counts.wasted_bytes) / 1e6, 0),
                match kind.discipline {
                    Discipline::Ethernet => Value::Number(mean(Counts::deferrals), 0),
                    _ => Value::Missing,
                },
                kind.backoff().into(),
                repeats.into(),
                Value::number(options.time.as_secs_f64()),
            ]);
        }
        for line in [&mut consumed, &mut collided] {
            line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        files.push(consumed);
        collisions.push(collided);
    }
    let panel = |title: &str, y: Axis, series| Panel {
        title: title.into(),
        x: Axis::linear("producers"),
        y,
        series,
    };
    let time = Exact(options.time);
    let panels = vec![
        panel(&format!("Files consumed in {time}"), Axis::linear("files"), files),
        panel(&format!("Collisions in {time}"), Axis::log("collisions"), collisions),
    ];
    let picture = Picture { title: "A shared disk buffer".into(), panels };
    Ok(Report { tables: vec![table], notes: notes(options, &kinds, &runs), picture })
}

fn notes(options: &Options, kinds: &[Kind], runs: &[Run]) -> Vec<String> {
    let Options { buffer, drain, largest, block, production, look, .. } = options;
    let mut notes = vec![format!(
        "The buffer holds {buffer} MB and is drained at {drain} MB/s. Files have 0 to {largest} MB \
         and take {}, in which they are written in blocks of {block} kB; one that is made again has \
         the same size. A look takes {} a command. Blocks and looks are our choice.",
        Exact(*production),
        Exact(*look),
    )];
    notes.extend(policies(kinds));
    let events = runs.iter().map(|run| run.events).sum::<u64>();
    notes.push(format!("{events} events were simulated."));
    notes
}
