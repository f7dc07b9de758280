//! Bursts of short commands, alone and beside busy processors: status, side effects and output are
//! those of an idle machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Ftsh;
use crate::support::rounds::count;

/// Number of commands of each kind in a burst, more than all widths except the last.
const BURST: usize = 25;

/// Number of commands that run at once.
const WIDTHS: [usize; 6] = [1, 2, 4, 10, 24, 500];

/// Results of a burst.
#[derive(Clone, Copy)]
enum Leaves {
    Nothing,
    /// Each number once, in any order.
    Output,
    /// A line in `effects` for each command.
    Effects,
}

const BODIES: [(&str, Leaves); 14] = [
    ("true", Leaves::Nothing),
    ("/bin/true > /dev/null", Leaves::Nothing),
    ("gzip -c /etc/passwd > /dev/null", Leaves::Nothing),
    ("/bin/echo $i | cat > /dev/null", Leaves::Nothing),
    ("wc -l < /etc/passwd -> v", Leaves::Nothing),
    ("cat /etc/group > /dev/null 2>&1", Leaves::Nothing),
    ("try 3 times\n head -n 1 /etc/passwd >> /dev/null\nend", Leaves::Nothing),
    ("sh -c '(sleep 0.01; true) & exit 0' > /dev/null", Leaves::Nothing),
    ("/bin/echo $i", Leaves::Output),
    ("/bin/echo $i -> v\n echo $v", Leaves::Output),
    ("cat <<< $i -> v\n /bin/echo $v | cat", Leaves::Output),
    ("sh -c 'echo x >> effects' > /dev/null", Leaves::Effects),
    ("try 4 times\n sh -c 'echo x >> effects' 2> /dev/null\nend", Leaves::Effects),
    ("try 1 time\n sh -c 'echo x >> effects; exit 3' | true\ncatch\n # 3\nend", Leaves::Effects),
];

/// Runs a burst of each kind, with another width in each round.
fn bursts(way: &str, rounds: usize) {
    for round in 0..rounds {
        for (index, (body, leaves)) in BODIES.iter().enumerate() {
            let width = WIDTHS[(index + round) % WIDTHS.len()];
            burst(way, body, *leaves, width);
        }
    }
}

fn burst(way: &str, body: &str, leaves: Leaves, width: usize) {
    let text = format!("forall i in 1 .to. {BURST} at most {width}\n {body}\nend\n");
    let run = Ftsh::command(&text).in_way(way);
    let finished = run.limit(Duration::from_secs(120)).success();
    match leaves {
        Leaves::Nothing => {}
        Leaves::Output => {
            let mut lines: Vec<usize> =
                finished.text().lines().map(|line| line.parse().expect("a number")).collect();
            lines.sort_unstable();
            assert!(lines.into_iter().eq(1..=BURST), "{}", finished.story());
        }
        Leaves::Effects => {
            assert_eq!(finished.read("effects").lines().count(), BURST, "{}", finished.story());
        }
    }
}

/// Performs an action while every processor is busy.
fn beside_busy_loops(action: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let _over = Over(&over);
        action();
    });
}

/// Ends the busy loops, even if a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn bursts_of_short_commands_have_the_same_results() {
    bursts("0", count());
}

#[test]
fn bursts_without_pidfds_have_the_same_results() {
    bursts("pidfd", count());
}

#[test]
fn bursts_without_pidfds_or_subreapers_have_the_same_results() {
    bursts("1", count());
}

#[test]
fn bursts_beside_busy_processors_have_the_same_results() {
    // All other tests wait meanwhile.
    beside_busy_loops(|| bursts("0", count().div_ceil(2)));
}
