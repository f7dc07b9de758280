//! Optimistic concurrency control: clients update one row of a database, each with the version that
//! it has read. Brooker, *Exponential Backoff And Jitter* (AWS), 2015.

use std::time::Duration;

use anyhow::{Result, bail};
use ftsh_syntax::backoff::{Policy, PolicyPosition};
use rand_distr::{Distribution, Normal};

use crate::common::{
    Axis, Cell, ClientCrowd, ClientQueue, Column, CommonOptions, Panel, Picture, PlotSeries,
    Random, Report, ReportTable, SeriesStyle, TrialProgress, input, labels, legend, random, trials,
};

/// Contention for one row: time and calls until all clients have updated it
///
/// Each client reads the row's version, then writes with it; a write fails if another came first,
/// and the client backs off and reads again.
///
/// Example: ftsh-lab occ --clients 100 --policy none --policy 'full from 10 ms to 2 s' --plot occ.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct OccOptions {
    /// Number of clients; repeatable [default: 10, 20, … 190]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: Vec<u32>,
    /// Mean delay of the network, each way
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = input::length)]
    pub delay: Duration,
    /// Standard deviation of the delay
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = input::length)]
    pub deviation: Duration,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub common: CommonOptions,
}

/// Policies of the article: base 5 ms, cap 2 s, first exponent 1.
pub const POLICIES: [&str; 5] = [
    "none",
    "exponential from 10 ms to 2 s",
    "equal from 10 ms to 2 s",
    "full from 10 ms to 2 s",
    "decorrelated from 5 ms to 2 s",
];

/// Maximum number of simulated calls.
const MOST_CALLS: f64 = 2e10;

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub struct OccRun {
    /// Time until the last client has received its success, in nanoseconds.
    pub time: u64,
    /// Writes that reached the database, each after a read.
    pub calls: u64,
}

/// Runs the scenario.
pub fn run(options: &OccOptions) -> Result<Report> {
    let crowds = options.common.crowds(&POLICIES)?;
    let clients = match &options.clients[..] {
        [] => (1..20).map(|tens| tens * 10).collect(),
        given => given.to_vec(),
    };
    let repeats = u64::from(options.common.trials(100));
    // Without backoff, the number is about a quarter of the square.
    let calls = |clients: &u32| 0.25 * f64::from(*clients).powi(2);
    let total = clients.iter().map(calls).sum::<f64>() * repeats as f64 * crowds.len() as f64;
    if total > MOST_CALLS {
        bail!("that may be {total:.0e} calls, too many to simulate: use fewer clients or trials");
    }
    let network = Network::new(options.delay, options.deviation)?;
    let cases: Vec<_> = (0..crowds.len())
        .flat_map(|crowd| clients.iter().map(move |clients| (crowd, *clients)))
        .flat_map(|(crowd, clients)| (0..repeats).map(move |trial| (crowd, clients, trial)))
        .collect();
    let progress = TrialProgress::new(cases.len());
    let runs = trials(&cases, &progress, |(crowd, clients, trial)| {
        let random = random(options.common.seed, &[*crowd as u64, u64::from(*clients), *trial]);
        contend(&crowds[*crowd], *clients, &network, random, |_| {})
    });
    let labels = labels(&crowds);
    let mut table = ReportTable::new(
        "occ",
        format!("Time and calls until all clients have updated one row, mean of {repeats} trials"),
        vec![
            Column::new("clients", "clients", ""),
            Column::new("policy", "policy", ""),
            Column::new("time_ms", "time", "ms"),
            Column::new("time_sd_ms", "deviation", "ms"),
            Column::new("calls", "calls", ""),
            Column::new("calls_per_client", "per client", "calls"),
            Column::hidden("backoff"),
        ],
    );
    let mut curves = vec![(Vec::new(), Vec::new()); crowds.len()];
    for (case, runs) in cases.chunks(repeats as usize).zip(runs.chunks(repeats as usize)) {
        let Some((crowd, clients, _)) = case.first() else { continue };
        let count = runs.len() as f64;
        let times = runs.iter().map(|run| run.time as f64 / 1e6);
        let time = times.clone().sum::<f64>() / count;
        let variance = times.map(|it| (it - time).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let calls = runs.iter().map(|run| run.calls as f64).sum::<f64>() / count;
        table.push(vec![
            u64::from(*clients).into(),
            labels[*crowd].as_str().into(),
            Cell::Number(time, 0),
            Cell::Number(variance.sqrt(), 0),
            Cell::Number(calls, 0),
            Cell::Number(calls / f64::from(*clients), 1),
            crowds[*crowd].to_string().into(),
        ]);
        curves[*crowd].0.push((f64::from(*clients), calls));
        curves[*crowd].1.push((f64::from(*clients), time / 1e3));
    }
    let picture = picture(options, &crowds, &labels, &clients, &network, &curves);
    let notes = vec![legend(&crowds, &labels)];
    Ok(Report { tables: vec![table], notes, picture })
}

/// Points over the number of clients: calls and times.
type Curves = (Vec<(f64, f64)>, Vec<(f64, f64)>);

fn picture(
    options: &OccOptions,
    crowds: &[ClientCrowd],
    labels: &[String],
    clients: &[u32],
    network: &Network,
    curves: &[Curves],
) -> Picture {
    let series = |points: &dyn Fn(usize) -> Vec<(f64, f64)>, style: SeriesStyle| {
        let one = |at: usize| PlotSeries {
            name: labels[at].clone(),
            points: points(at),
            style,
            color: at,
        };
        (0..crowds.len()).map(one).collect()
    };
    // Calls of one run, with about as many clients as in the article.
    let shown = clients.iter().copied().min_by_key(|it| it.abs_diff(100)).unwrap_or(100);
    let width = Duration::from_millis(20);
    let calls = |at: usize| {
        let mut buckets: Vec<u32> = Vec::new();
        let random = random(options.common.seed, &[at as u64, u64::from(shown), 0]);
        contend(&crowds[at], shown, network, random, |time| {
            let bucket = (time / width.as_nanos() as u64) as usize;
            if bucket < SHOWN_BUCKETS {
                buckets.resize(buckets.len().max(bucket + 1), 0);
                buckets[bucket] += 1;
            }
        });
        let points = buckets.iter().enumerate().filter(|(_, calls)| **calls > 0);
        points.map(|(at, it)| (at as f64 * width.as_secs_f64() * 1e3, f64::from(*it))).collect()
    };
    let mut panels = vec![
        Panel {
            title: "Calls until all have succeeded".into(),
            x: Axis::linear("clients"),
            y: Axis::linear("calls"),
            series: series(&|at| curves[at].0.clone(), SeriesStyle::LineAndDots),
        },
        Panel {
            title: "Time until all have succeeded".into(),
            x: Axis::linear("clients"),
            y: Axis::log("time, s"),
            series: series(&|at| curves[at].1.clone(), SeriesStyle::LineAndDots),
        },
    ];
    panels.extend((0..crowds.len()).map(|at| Panel {
        title: format!("Calls of one run with {shown} clients, its first 10 s: {}", labels[at]),
        x: Axis::linear("time, ms").between(0.0, 10_000.0),
        y: Axis::linear("calls in 20 ms"),
        series: vec![PlotSeries {
            name: String::new(),
            points: calls(at),
            style: SeriesStyle::Sticks,
            color: at,
        }],
    }));
    Picture { title: "Contention for one row".into(), panels }
}

/// Shown part of one run: ten seconds.
const SHOWN_BUCKETS: usize = 500;

/// Delay of the network, each way.
pub struct Network(Normal<f64>);

impl Network {
    /// Creates a normal distribution with this mean and deviation, of which the absolute value is
    /// used.
    pub fn new(mean: Duration, deviation: Duration) -> Result<Self> {
        Ok(Self(Normal::new(mean.as_secs_f64() * 1e9, deviation.as_secs_f64() * 1e9)?))
    }

    fn delay(&self, random: &mut Random) -> u64 {
        self.0.sample(random).abs() as u64
    }
}

/// A client whose next write is on its way to the database.
#[derive(Clone, Copy)]
struct Contender {
    backoff: PolicyPosition,
    /// Time of the answer to its read.
    read: u64,
    /// Time at which the client received its first failure.
    failed: u64,
}

/// Simulates clients that contend from the same moment on. `at_call` receives the times of calls in
/// nanoseconds.
///
/// Only writes need an event: a write succeeds if no other write did since its client's read was
/// answered. The time of the answer is known when the read is sent.
pub fn contend(
    crowd: &ClientCrowd,
    clients: u32,
    network: &Network,
    mut random: Random,
    mut at_call: impl FnMut(u64),
) -> OccRun {
    let policies: Vec<&Policy> = (0..clients as usize).map(|it| crowd.policy(it)).collect();
    let client = |policy: &&Policy| {
        let read = network.delay(&mut random);
        Contender { backoff: policy.start(), read, failed: 0 }
    };
    let mut states: Vec<_> = policies.iter().map(client).collect();
    let mut queue = ClientQueue::new(states.iter().map(|state| {
        // The version travels back to the client, and again with the write.
        state.read + network.delay(&mut random) + network.delay(&mut random)
    }));
    let mut last_write = 0;
    let mut run = OccRun { time: 0, calls: 0 };
    while let Some((now, client)) = queue.first() {
        run.calls += 1;
        at_call(now);
        let received = now.saturating_add(network.delay(&mut random));
        let state = &mut states[client];
        if state.read >= last_write {
            last_write = now;
            run.time = run.time.max(received);
            queue.remove_first();
            continue;
        }
        if state.failed == 0 {
            state.failed = received;
        }
        let elapsed = Duration::from_nanos(received - state.failed);
        let delay = policies[client].next_delay(&mut state.backoff, elapsed, &mut random);
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        state.read = received.saturating_add(delay).saturating_add(network.delay(&mut random));
        let back_and_forth = network.delay(&mut random) + network.delay(&mut random);
        queue.replace_first(state.read.saturating_add(back_and_forth));
    }
    run
}
