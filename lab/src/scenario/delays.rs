//! The schedule that a policy gives.

use anyhow::{Result, bail};
use ftsh::backoff::Backoff;
use std::time::Duration;

use crate::common::{
    Axis, Column, Common, Crowd, Panel, Picture, Progress, Report, Series, Style, Table, labels,
    random, trials,
};

/// The delays of a policy, and when its attempts come
///
/// Example: ftsh-lab delays 'full from 100 ms to 20 s' --retries 10
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The policy, as after `backoff` in a script
    #[arg(value_name = "POLICY")]
    pub policy: Crowd,
    /// How many retries
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub retries: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: Common,
}

/// Draws delays.
pub fn run(options: &Options) -> Result<Report> {
    let Some(policy) = options.policy.single() else { bail!("one policy at a time") };
    let cases: Vec<u64> = (0..u64::from(options.common.trials(1000))).collect();
    let progress = Progress::new(cases.len());
    let samples = trials(&cases, &progress, |case| {
        let mut random = random(options.common.seed, &[*case]);
        let mut backoff = Backoff::new(policy.clone());
        let mut now = Duration::ZERO;
        let mut delays = Vec::new();
        for _ in 0..options.retries {
            let delay = backoff.next_delay(now, &mut random);
            now = now.saturating_add(delay);
            delays.push(delay.as_secs_f64());
        }
        delays
    });
    let columns =
        vec![Column::new("retry", "retry", ""), Column::new("mean_delay_s", "mean delay", "s")];
    let mut table = Table::new("delays", format!("The delays of {policy}"), columns);
    let mut points = Vec::new();
    for retry in 0..options.retries as usize {
        let mean = samples.iter().map(|delays| delays[retry]).sum::<f64>() / samples.len() as f64;
        table.push(vec![(retry + 1).into(), crate::common::Value::number(mean)]);
        points.push(((retry + 1) as f64, mean));
    }
    let name = labels(std::slice::from_ref(&options.policy)).concat();
    let series = vec![Series { name, points, style: Style::LineAndDots, color: 0 }];
    let panel = Panel {
        title: "Mean delay before each retry".into(),
        x: Axis::linear("retry"),
        y: Axis::log("delay, s"),
        series,
    };
    let picture = Picture { title: format!("{policy}"), panels: vec![panel] };
    Ok(Report { tables: vec![table], notes: Vec::new(), picture })
}
