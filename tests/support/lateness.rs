//! Delay of the machine by other work, for times that tests check.

use std::process::{Command, Stdio};
use std::sync::{Condvar, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::ClockId;

/// First part of a sample: a napping program, started by another program.
const NAPPER: &str = "/bin/sleep 0.01; :";

/// Duration of the first part on an idle machine.
const NAP: Duration = Duration::from_millis(13);

/// Second part of a sample: processor time of this length.
const WORK: Duration = Duration::from_millis(4);

/// Pause between samples, which keeps their cost low.
const PAUSE: Duration = Duration::from_millis(200);

/// Number of samples with about the same work as a run of the shell, as an upper bound.
const STEPS: u32 = 15;

/// Ends of samples, with their delays.
#[derive(Default)]
struct Samples {
    seen: Mutex<Vec<(Instant, Duration)>>,
    more: Condvar,
}

/// Samples since the first use.
static SAMPLES: LazyLock<&'static Samples> = LazyLock::new(|| {
    let samples: &Samples = Box::leak(Box::default());
    let watch = || {
        loop {
            let late = nap() + work();
            samples.seen.lock().expect("nothing panics with it").push((Instant::now(), late));
            samples.more.notify_all();
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("lateness".into()).spawn(watch).expect("a thread");
    samples
});

/// Returns the delay of a nap.
fn nap() -> Duration {
    let start = Instant::now();
    let mut napper = Command::new("sh");
    napper.args(["-c", NAPPER]).stdin(Stdio::null()).status().expect("a shell");
    start.elapsed().saturating_sub(NAP)
}

/// Returns the delay of processor time.
fn work() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let worked = || Duration::from(clock.now().expect("a clock of this thread"));
    let (start, end) = (Instant::now(), worked() + WORK);
    while worked() < end {}
    start.elapsed().saturating_sub(WORK)
}

/// Begins sampling, for later calls of [`since`].
pub(crate) fn watch() {
    LazyLock::force(&SAMPLES);
}

/// Returns the possible delay of a run of the shell since `start`.
pub(crate) fn since(start: Instant) -> Duration {
    let seen = SAMPLES.seen.lock().expect("nothing panics with it");
    let none_yet = |seen: &mut Vec<(Instant, _)>| seen.last().is_none_or(|sample| sample.0 < start);
    let seen = SAMPLES.more.wait_while(seen, none_yet).expect("the same");
    let late: Vec<_> =
        seen.iter().rev().take_while(|sample| sample.0 >= start).map(|sample| sample.1).collect();
    late.iter().sum::<Duration>() / late.len() as u32 * STEPS
}
