//! Time between the end of an outage and its discovery by clients. Thain, *Exponential Backoff in
//! Distributed Systems*, 2009.

use std::time::Duration;

use anyhow::Result;
use clap::value_parser;
use rand::RngExt;

use super::outage::{check, retry};
use crate::common::statistics::Quantiles;
use crate::common::{
    Axis, Cell, ClientCrowd, Column, CommonOptions, Panel, Picture, PlotSeries, Report,
    ReportTable, SeriesStyle, TrialProgress, input, labels, legend, random, trials,
};

/// How much longer backoff makes an outage, and what it spares the server
///
/// Outages of about a length are from 1/√2 to √2 times as long, so that their ends fall anywhere
/// between two attempts.
///
/// Example: ftsh-lab recovery --outage 30s --outage 30min --policy ethernet --policy 'ethernet to 1 h'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct RecoveryOptions {
    /// Approximate length of an outage; repeatable [default: 30s, 5min, 30min, 2h]
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = input::length)]
    pub outage: Vec<Duration>,
    /// Number of clients, for the load on the server
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub clients: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// The default of 2003 and that of the shell, plain backoff of the article, other factors and caps, and other kinds.
pub const POLICIES: [&str; 8] = [
    "ethernet from 1 s to 1 h",
    "ethernet from 1 s to 1 h by 1.5",
    "ethernet from 1 s to 1 min",
    "exponential from 1 s to 1 h",
    "full from 1 s to 1 h",
    "decorrelated from 1 s to 1 h",
    "windowed from 1 s to 1 h",
    "fixed from 1 s",
];

/// Results of one policy and length of outages.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Time from the end of the outage to the first contact, in seconds.
    pub notice: Quantiles,
    /// The same time as a part of the outage.
    pub stretch: Quantiles,
    /// Failed attempts per client and second.
    pub rate: f64,
    /// Failed attempts per client.
    pub attempts: f64,
}

/// Runs the scenario.
pub fn run(options: &RecoveryOptions) -> Result<Report> {
    let crowds = options.common.crowds(&POLICIES)?;
    let outages = match &options.outage[..] {
        [] => [30, 300, 1800, 7200].map(Duration::from_secs).to_vec(),
        given => given.to_vec(),
    };
    let samples = options.common.trials(10_000);
    for crowd in &crowds {
        for outage in &outages {
            check(crowd, f64::from(samples), outage.saturating_mul(2))?;
        }
    }
    let cases: Vec<_> = (0..crowds.len())
        .flat_map(|crowd| outages.iter().map(move |outage| (crowd, *outage)))
        .collect();
    let progress = TrialProgress::new(cases.len());
    let results = trials(&cases, &progress, |(crowd, outage)| {
        let place = [*crowd as u64, outage.as_nanos() as u64];
        recover(&crowds[*crowd], *outage, samples, options.common.seed, &place)
    });
    let labels = labels(&crowds);
    let mut table = table(options);
    let mut curves = vec![Vec::new(); crowds.len()];
    for ((crowd, outage), result) in cases.iter().zip(&results) {
        let at = |quantiles: &Quantiles, part| quantiles.at(part).unwrap_or(f64::NAN);
        let worst = at(&result.notice, 1.0);
        table.push(vec![
            labels[*crowd].as_str().into(),
            Cell::number(outage.as_secs_f64()),
            Cell::number(at(&result.notice, 0.5)),
            Cell::number(at(&result.notice, 0.9)),
            Cell::number(at(&result.notice, 0.99)),
            Cell::number(worst),
            Cell::Number(at(&result.stretch, 1.0), 2),
            Cell::Number(result.attempts, 1),
            Cell::number(result.rate * f64::from(options.clients)),
            crowds[*crowd].to_string().into(),
        ]);
        curves[*crowd].push((outage.as_secs_f64(), result));
    }
    let picture = picture(options, &labels, &curves);
    Ok(Report { tables: vec![table], notes: vec![legend(&crowds, &labels)], picture })
}

fn table(options: &RecoveryOptions) -> ReportTable {
    let title = format!(
        "From the end of an outage to the first contact, the worst also as a multiple of the \
         outage; attempts per client meanwhile, and those a second of {} clients",
        options.clients
    );
    ReportTable::new(
        "recovery",
        title,
        vec![
            Column::new("policy", "policy", ""),
            Column::new("outage_s", "outage", "s"),
            Column::new("notice_median_s", "median", "s"),
            Column::hidden("notice_p90_s"),
            Column::new("notice_p99_s", "p99", "s"),
            Column::new("notice_worst_s", "worst", "s"),
            Column::new("worst_stretch", "worst", "/outage"),
            Column::new("attempts_per_client", "tries", "/client"),
            Column::new("load_per_s", "load", "/s"),
            Column::hidden("backoff"),
        ],
    )
}

/// Simulates clients in outages of about a length.
pub fn recover(
    crowd: &ClientCrowd,
    outage: Duration,
    samples: u32,
    seed: u64,
    place: &[u64],
) -> Recovery {
    let mut random = random(seed, place);
    let (mut notice, mut stretch) = (Vec::new(), Vec::new());
    let (mut attempts, mut seconds) = (0_u64, 0.0);
    for client in 0..samples as usize {
        let length = outage.mul_f64((random.random::<f64>() - 0.5).exp2());
        let late = retry(crowd.policy(client), length, &mut random, |_| attempts += 1);
        notice.push(late.as_secs_f32());
        stretch.push(late.as_secs_f32() / length.as_secs_f32());
        seconds += length.as_secs_f64();
    }
    Recovery {
        notice: Quantiles::new(notice),
        stretch: Quantiles::new(stretch),
        rate: attempts as f64 / seconds,
        attempts: attempts as f64 / f64::from(samples),
    }
}

fn picture(
    options: &RecoveryOptions,
    labels: &[String],
    curves: &[Vec<(f64, &Recovery)>],
) -> Picture {
    let panel = |title: &str, y: &str, value: &dyn Fn(&Recovery) -> f64| Panel {
        title: title.to_owned(),
        x: Axis::log("length of the outage, s"),
        y: Axis::log(y),
        series: curves
            .iter()
            .enumerate()
            .map(|(at, curve)| PlotSeries {
                name: labels[at].clone(),
                points: curve.iter().map(|(outage, result)| (*outage, value(result))).collect(),
                style: SeriesStyle::LineAndDots,
                color: at,
            })
            .collect(),
    };
    let rate = |result: &Recovery| result.rate * f64::from(options.clients);
    Picture {
        title: "After an outage".into(),
        panels: vec![
            panel(
                "From the end of the outage to the first contact, 99 % of clients",
                "time, s",
                &|it| it.notice.at(0.99).unwrap_or(f64::NAN),
            ),
            panel(
                &format!("Load of {} clients during the outage", options.clients),
                "failed attempts / s",
                &rate,
            ),
        ],
    }
}
