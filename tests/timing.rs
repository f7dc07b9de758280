//! What the clock must show. Lower bounds hold always; for upper bounds the median or the best of
//! some runs counts, since the machine may be busy with something else.

use std::time::Duration;

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
fn a_delay_ends_at_the_deadline() {
    for script in [
        "try for 300 ms; failure; end",
        "try for 300 ms backoff fixed from 1 hour; failure; end",
        "try for 300 ms; try 9 times backoff fixed from 1 hour; failure; end; end",
        "try for 300 ms backoff exponential from 100 ms by 10; failure; end",
    ] {
        // The last attempt may start so late that the deadline cuts it: 1 or 124.
        let runs = (0..5).map(|_| Ftsh::command(script).run().elapsed);
        let took = runs.min().expect("a few runs");
        assert!(took <= Duration::from_millis(400), "{script}: {took:?}");
    }
}

#[test]
fn a_new_attempt_is_not_cut_by_a_delay_and_starts_are_apart() {
    let starts = |script: &str| -> Vec<u64> {
        let finished = Ftsh::command(script).run();
        let lines = finished.read("starts");
        lines.lines().map(|line| line.parse().expect("a time")).collect()
    };
    let starts =
        starts("try 5 times every 150 ms; date +%s%N >> starts; /bin/sleep 0.05; failure; end");
    assert_eq!(starts.len(), 5);
    for pair in starts.windows(2) {
        // The time is taken by a program a little after its attempt's start, sooner or later.
        assert!(pair[1] - pair[0] >= 120_000_000, "{pair:?}");
    }
    assert!(starts[4] - starts[0] >= 570_000_000, "{starts:?}");
}

#[test]
fn delays_grow_as_their_policy_says() {
    let script =
        "try 4 times backoff exponential from 100 ms by 2; date +%s%N >> starts; failure; end";
    let finished = Ftsh::command(script).failure(1);
    let text = finished.read("starts");
    let starts: Vec<u64> = text.lines().map(|line| line.parse().expect("a time")).collect();
    for (pair, delay) in starts.windows(2).zip([100, 200, 400]) {
        let gap = (pair[1] - pair[0]) / 1_000_000;
        assert!((delay - 15..delay + 400).contains(&gap), "{gap} ms instead of {delay}");
    }
}

#[test]
fn clients_with_different_seeds_do_not_collide() {
    let starts = |seed: &str| {
        let script = "try for 800 ms; date +%s%N >> starts; failure; end";
        let finished = Ftsh::command(script).options(["--seed", seed]).failure(1);
        let text = finished.read("starts");
        let starts: Vec<u64> = text.lines().map(|line| line.parse().expect("a time")).collect();
        assert_eq!(starts.len(), 2, "{text}");
        (starts[1] - starts[0]) / 1_000_000
    };
    let gaps: Vec<u64> = ["1", "2", "3", "4", "5"].into_iter().map(starts).collect();
    let (least, most) = (gaps.iter().min().expect("gaps"), gaps.iter().max().expect("gaps"));
    assert!(most - least > 60, "last attempts are spread over the time left: {gaps:?}");
}

#[test]
fn starting_is_cheap() {
    let most = Duration::from_millis(50);
    timed("an empty script", most, &WAYS, |round| round.command("success").success().elapsed);
}
