//! One shell that runs for long: memory, descriptors and threads come to rest.
//!
//! A second of it by default; `FTSH_TEST_SOAK` says how many (`just soak`).

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::Ftsh;
use crate::support::run::Running;

/// Limit of the growth of memory after a quarter of the time, in KiB. The allocator keeps some
/// memory of deleted rows.
const GROWTH: u64 = 512;

/// Resources of a shell between two rounds.
#[derive(Debug)]
struct Sample {
    /// Memory that is its own, in KiB.
    memory: u64,
    descriptors: usize,
    threads: u64,
}

impl Sample {
    fn of(pid: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{name} in {status}"))
        };
        Self {
            memory: number("RssAnon:"),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count(),
            threads: number("Threads:"),
        }
    }
}

/// The process that interprets the script.
fn interpreter(run: &Running) -> i32 {
    let pid = run.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the supervisor's children");
    children.split_whitespace().next().and_then(|child| child.parse().ok()).expect("a child")
}

/// Lets the script go on to the next round.
fn go(run: &Running) {
    let mut fifo = fs::File::options().write(true).open(run.directory().join("go")).expect("go");
    fifo.write_all(b"\n").expect("a line");
}

#[test]
fn a_shell_that_runs_for_long_holds_no_more_than_at_first() {
    let seconds: Option<u64> = std::env::var("FTSH_TEST_SOAK")
        .ok()
        .map(|text| text.parse().expect("FTSH_TEST_SOAK: a number of seconds"));
    let time = Duration::from_secs(seconds.unwrap_or(2));
    let run = Ftsh::new()
        .file("soak.ftsh", include_str!("soak.ftsh"))
        .fifo("go")
        .args(["-l", "0", "-t", "1", "soak.ftsh", if seconds.is_some() { "20" } else { "2" }])
        .limit(time + Duration::from_secs(60))
        .start();
    let start = Instant::now();
    let (mut samples, mut reported_at) = (Vec::new(), start);
    while start.elapsed() < time || samples.len() < 4 {
        run.until_lines("rounds", samples.len() + 1);
        samples.push((start.elapsed(), Sample::of(interpreter(&run))));
        if seconds.is_some() && reported_at.elapsed() >= time / 60 {
            reported_at = Instant::now();
            println!("{} rounds: {:?}", samples.len(), samples.last().expect("one"));
        }
        go(&run);
    }
    let errors = run.errors();
    drop(run);
    assert_eq!(errors, "");
    let quarter = samples.iter().position(|(at, _)| *at >= time / 4).unwrap_or(1);
    let (warm, last) = (&samples[quarter].1, &samples[samples.len() - 1].1);
    let most = |of: fn(&Sample) -> u64| samples[quarter..].iter().map(|(_, it)| of(it)).max();
    assert!(most(|it| it.memory) <= Some(warm.memory + GROWTH), "memory: {samples:?}");
    assert!(last.descriptors <= warm.descriptors + 2, "descriptors: {samples:?}");
    assert!(most(|it| it.threads) <= Some(16), "threads: {samples:?}");
}
