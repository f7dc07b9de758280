//! Times measured by the clock. Lower bounds always hold. For upper bounds, the median or the best
//! of several runs counts, since the machine may be busy.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::support::rounds::timed;
use crate::support::{Ftsh, WAYS};

#[test]
fn a_deadline_is_kept_within_100_ms() {
    const LIMIT: Duration = Duration::from_millis(150);
    for (what, script) in [
        ("a command", "try for 150 ms; /bin/sleep 20; end"),
        ("a pipeline", "try for 150 ms; /bin/sleep 20 | cat | cat; end"),
        ("a function", "function f; sh -c '/bin/sleep 20; :'; end; try for 150 ms; f; end"),
        ("a forall", "try for 150 ms; forall i in 1 .to. 20; /bin/sleep 20; end; end"),
        ("an own sleep", "try for 150 ms; sleep 20; end"),
        ("a loop", "try for 150 ms; while true; success; end; end"),
        ("a range", "try for 150 ms; for i in 1 .to. 1000000000; x=$i; end; end"),
        ("a hung open", "mkfifo f; try for 150 ms; cat < f; end"),
        ("a nested try", "try for 150 ms; try for 1 hour; /bin/sleep 20; end; end"),
        ("a catch", "try for 150 ms; try; failure; catch; /bin/sleep 20; end; end"),
        ("an expression", "function f; /bin/sleep 20; return 1; end; try for 150 ms; x=f(); end"),
    ] {
        timed(what, LIMIT + Duration::from_millis(100), &WAYS, |round| {
            let finished = round.command(script).failure(124);
            finished.nothing_left();
            assert!(finished.elapsed >= LIMIT, "{what}: over after {:?}", finished.elapsed);
            finished.elapsed
        });
    }
}

#[test]
fn a_deadline_is_kept_while_a_file_alternates_with_a_fifo() {
    const LIMIT: Duration = Duration::from_millis(700);
    let script = "try for 700 ms; while true; echo x > f; if .isfile. f; y=1; end; end; end";
    let run = Ftsh::command(script).file("plain", "").file("f", "").fifo("pipe").start();
    let path = |name: &str| run.directory().join(name);
    let begun = Instant::now();
    // Opened for reading and writing, so that the script continues when it opens the FIFO.
    let mut options = fs::File::options();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let mut pipe = options.open(path("pipe")).expect("a FIFO");
    let mut room = [0; 4096];
    for name in ["plain", "pipe"].into_iter().cycle() {
        fs::hard_link(path(name), path("next")).expect("a link");
        fs::rename(path("next"), path("f")).expect("its new name");
        let _ = pipe.read(&mut room);
        if name == "pipe" && begun.elapsed() > LIMIT / 2 {
            break;
        }
    }
    drop(pipe);
    let finished = run.wait();
    finished.nothing_left().expect_code(124);
    assert!(finished.elapsed >= LIMIT, "{}", finished.story());
    assert!(finished.elapsed < LIMIT + Duration::from_secs(2), "{}", finished.story());
}

#[test]
fn a_delay_ends_at_the_deadline() {
    for script in [
        "try for 300 ms; failure; end",
        "try for 300 ms backoff fixed from 1 hour; failure; end",
        "try for 300 ms; try 9 times backoff fixed from 1 hour; failure; end; end",
        "try for 300 ms backoff exponential from 100 ms by 10; failure; end",
    ] {
        // The last attempt may start late enough for the deadline to cut it: 1 or 124.
        let runs = (0..5).map(|_| Ftsh::command(script).run().elapsed);
        let took = runs.min().expect("a few runs");
        assert!(took <= Duration::from_millis(400), "{script}: {took:?}");
    }
}

/// Attempt according to the log: the time of its record, and the planned delay before it.
type Attempt = (Timestamp, Option<Duration>);

/// Returns the attempts of a run, and the duration of the run. Programs that print the time would
/// be late themselves. The log may be late too, so the time between two records may seem too short.
fn attempts(script: &str, options: &[&str]) -> (Vec<Attempt>, Duration) {
    let log = ["--log-format", "json", "-l", "30", "-f", "the.log"];
    let finished = Ftsh::command(script).options(log).options(options).failure(1);
    let mut delay = None;
    let mut attempts = Vec::new();
    for line in finished.read("the.log").lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("a record");
        match record["event"].as_str() {
            Some("delay") => delay = record["delay"].as_f64().map(Duration::from_secs_f64),
            Some("attempt") => {
                let time = record["time"].as_str().and_then(|time| time.parse().ok());
                attempts.push((time.expect("a time"), delay.take()));
            }
            _ => {}
        }
    }
    (attempts, finished.elapsed)
}

/// Returns the times between the starts of attempts.
fn gaps(attempts: &[Attempt]) -> Vec<Duration> {
    let gap = |pair: &[(Timestamp, _)]| pair[1].0.duration_since(pair[0].0).unsigned_abs();
    attempts.windows(2).map(gap).collect()
}

#[test]
fn a_new_attempt_is_not_cut_by_a_delay_and_starts_are_apart() {
    let (attempts, elapsed) =
        attempts("try 5 times every 150 ms; /bin/sleep 0.05; failure; end", &[]);
    assert_eq!(attempts.len(), 5);
    assert!(elapsed >= Duration::from_millis(4 * 150 + 50), "{elapsed:?}: {attempts:?}");
}

#[test]
fn delays_grow_by_their_policy() {
    let script = "try 4 times backoff exponential from 100 ms by 2; failure; end";
    let (attempts, elapsed) = attempts(script, &[]);
    assert_eq!(attempts.len(), 4);
    assert!(elapsed >= Duration::from_millis(100 + 200 + 400), "{elapsed:?}: {attempts:?}");
    for (index, gap) in gaps(&attempts).into_iter().enumerate() {
        let delay = Duration::from_millis(100 << index);
        assert_eq!(attempts[index + 1].1, Some(delay), "{attempts:?}");
        assert!(gap < delay + Duration::from_millis(400), "{gap:?} instead of {delay:?}");
    }
}

#[test]
fn clients_with_different_seeds_do_not_collide() {
    let gap = |seed: &str| {
        let (attempts, _) = attempts("try for 800 ms; failure; end", &["--seed", seed]);
        assert_eq!(attempts.len(), 2, "{attempts:?}");
        gaps(&attempts)[0]
    };
    let gaps = ["1", "2", "3", "4", "5"].map(gap);
    let (least, most) = (gaps.iter().min().expect("gaps"), gaps.iter().max().expect("gaps"));
    let spread = most.saturating_sub(*least);
    assert!(
        spread > Duration::from_millis(60),
        "last attempts are spread over the time left: {gaps:?}"
    );
}

#[test]
fn starting_is_cheap() {
    let most = Duration::from_millis(50);
    timed("an empty script", most, &WAYS, |round| round.command("success").success().elapsed);
}
