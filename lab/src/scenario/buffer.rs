//! Producers that share a disk buffer. Thain and Livny, *The Ethernet Approach to Grid Computing*,
//! 2003.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::Script;
use ftsh_syntax::duration::Exact;

use super::discipline::{ClientKind, Discipline, compare, kinds, policies};
use crate::common::statistics::mean;
use crate::common::{
    Axis, Cell, Column, CommonOptions, Panel, Picture, Report, ReportTable, input,
};
use crate::world::disk::{DiskBuffer, DiskSettings, FileCounts};
use crate::world::script;

/// A shared disk: files consumed and collisions against the number of producers
///
/// Each producer runs lab/scripts/produce-*.ftsh, which writes one file after the other. One that
/// doesn't fit is deleted and made again; a consumer takes away the complete ones.
///
/// Example: ftsh-lab buffer --producers 5,20,50 --plot buffer.svg
#[derive(clap::Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct BufferOptions {
    /// Number of producers; repeatable [default: 1, 2, 3, 4, 5, 10, 20, … 50]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub producers: Vec<u32>,
    /// Disciplines of the producers; repeatable [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    pub discipline: Vec<Discipline>,
    /// Duration of a run
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = input::length)]
    pub time: Duration,
    /// Size of the buffer in megabytes
    #[arg(long, value_name = "MB", default_value = "120", value_parser = input::positive)]
    pub buffer: f64,
    /// Megabytes that the consumer removes per second
    #[arg(long, value_name = "MB", default_value = "1", value_parser = input::positive)]
    pub drain: f64,
    /// Size of the largest file in megabytes; sizes are uniform from 0
    #[arg(long, value_name = "MB", default_value = "1", value_parser = input::positive)]
    pub largest: f64,
    /// Time to produce a file of any size
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = input::length)]
    pub production: Duration,
    /// Kilobytes written at once
    #[arg(long, value_name = "KB", default_value = "64", value_parser = input::positive)]
    pub block: f64,
    /// Duration of a query of the disk, for each command of the query
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = input::length)]
    pub look: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct BufferRun {
    /// Counts of the files.
    pub counts: FileCounts,
    /// Events of the simulation.
    pub events: u64,
}

impl BufferOptions {
    fn setting(&self) -> DiskSettings {
        DiskSettings {
            capacity: (self.buffer * 1e6) as u64,
            drain: self.drain * 1e6,
            largest: (self.largest * 1e6) as u64,
            production: self.production,
            block: (self.block * 1e3) as u64,
            look: self.look,
        }
    }
}

/// Returns the script of a discipline.
fn producer(discipline: Discipline) -> Result<Script> {
    match discipline {
        Discipline::Fixed => {
            script("produce-fixed.ftsh", include_str!("../../scripts/produce-fixed.ftsh"))
        }
        Discipline::Aloha => {
            script("produce-aloha.ftsh", include_str!("../../scripts/produce-aloha.ftsh"))
        }
        Discipline::Channel | Discipline::Exclusion => {
            bail!("--discipline: producers are either fixed, aloha or ethernet")
        }
        Discipline::Ethernet => {
            script("produce-ethernet.ftsh", include_str!("../../scripts/produce-ethernet.ftsh"))
        }
    }
}

/// Simulates producers that fill the buffer. `trial` separates the random numbers of this run from
/// others.
pub fn produce(
    options: &BufferOptions,
    kind: &ClientKind,
    producers: u32,
    trial: u64,
) -> BufferRun {
    let buffer = DiskBuffer::new(options.setting());
    let place = [u64::from(producers), trial];
    let mut world = kind.world(buffer, producers, options.production, options.common.seed, &place);
    world.run(options.time);
    let events = world.handled();
    BufferRun { counts: world.commands.counts, events }
}

/// Runs the scenario.
pub fn run(options: &BufferOptions) -> Result<Report> {
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
    let all = &[Discipline::Fixed, Discipline::Aloha, Discipline::Ethernet];
    let kinds = kinds(&options.discipline, all, &options.common, producer)?;
    let repeats = u64::from(options.common.trials(3));
    let blocks = setting.largest.div_ceil(setting.block) as f64;
    let events = options.time.div_duration_f64(options.production) * blocks;
    let runs = compare(&kinds, &producers, repeats, events, |kind, producers, trial| {
        produce(options, kind, producers, trial)
    })?;
    let mut table = ReportTable::new(
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
    for (at, (kind, runs)) in kinds.iter().zip(&runs).enumerate() {
        let (mut consumed, mut collided) = (Vec::new(), Vec::new());
        for (number, runs) in producers.iter().zip(runs) {
            let mean = |what: fn(&FileCounts) -> u64| {
                mean(runs.iter().map(|run| what(&run.counts) as f64))
            };
            let done = mean(|counts| counts.consumed);
            let lost = mean(|counts| counts.collisions);
            consumed.push((f64::from(*number), done));
            collided.push((f64::from(*number), lost));
            table.push(vec![
                kind.name.clone().into(),
                u64::from(*number).into(),
                Cell::Number(done, 0),
                Cell::Number(mean(|counts| counts.consumed_bytes) / 1e6, 0),
                Cell::Number(mean(|counts| counts.productions), 0),
                Cell::Number(lost, 0),
                Cell::Number(mean(|counts| counts.wasted_bytes) / 1e6, 0),
                match kind.discipline {
                    Discipline::Ethernet => Cell::Number(mean(FileCounts::deferrals), 0),
                    _ => Cell::Missing,
                },
                kind.backoff().into(),
                repeats.into(),
                Cell::number(options.time.as_secs_f64()),
            ]);
        }
        files.push(kind.line(at, consumed));
        collisions.push(kind.line(at, collided));
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
    let events = runs.iter().flatten().flatten().map(|run| run.events).sum();
    Ok(Report { tables: vec![table], notes: notes(options, &kinds, events), picture })
}

fn notes(options: &BufferOptions, kinds: &[ClientKind], events: u64) -> Vec<String> {
    let BufferOptions { buffer, drain, largest, block, production, look, .. } = options;
    let mut notes = vec![format!(
        "The buffer holds {buffer} MB and is drained at {drain} MB/s. Files have 0 to {largest} MB \
         and take {}, in which they are written in blocks of {block} kB; one that is made again has \
         the same size. A look takes {} a command. Blocks and looks are our choice.",
        Exact(*production),
        Exact(*look),
    )];
    notes.extend(policies(kinds));
    notes.push(format!("{events} events were simulated."));
    notes
}
