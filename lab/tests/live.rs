//! Overload with a real server and real clients. Small, and ten times as fast as told, so that each
//! run takes some six seconds; nothing is shared, so that they can run beside other tests.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{SMALL_OVERLOAD, number, rows};

const SHORT: [&str; 4] = ["--backlog", "60", "--before", "10s"];

/// Whether the server comes back, in one run: simulated, and live.
fn verdicts(policy: &str) -> [String; 2] {
    let run = |more: &[&str]| {
        let args = ["--outage", "20s", "--watch", "30s", "--policy", policy];
        let rows = rows("overload", &[&SMALL_OVERLOAD[..], &SHORT, &args, more].concat());
        assert!(number(&rows[0], "before_per_s") > 0.0, "{rows:?}");
        rows[0]["recovered"].as_str().expect("a verdict").to_owned()
    };
    [run(&["--trials", "1"]), run(&["--live"])]
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_real_server_stays_down_without_backoff() {
    assert_eq!(verdicts("fixed from 100 ms"), ["no", "no"]);
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_real_server_comes_back_with_backoff() {
    assert_eq!(verdicts("normal from 100 ms to 10 s by 2.71828"), ["yes", "yes"]);
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|child| state(*child).is_some_and(|(_, parent)| parent == pid)).collect()
}

/// A process's state and its parent.
fn state(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

#[test]
fn a_killed_run_leaves_no_server_even_a_stopped_one() {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_ftsh-lab"))
        .args(SMALL_OVERLOAD)
        .args(SHORT)
        .args(["--live", "--outage", "10min", "--policy", "fixed"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the laboratory runs");
    let mut lines = BufReader::new(lab.stderr.take().expect("a pipe")).lines();
    let stopped = lines.any(|line| line.is_ok_and(|line| line.contains("server stopped")));
    let servers = children(lab.id());
    lab.kill().expect("it is killed");
    lab.wait().expect("an end");
    assert!(stopped);
    assert_eq!(servers.len(), 1);
    let begun = Instant::now();
    let survives = || servers.iter().any(|pid| state(*pid).is_some_and(|(state, _)| state != 'Z'));
    while survives() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}
