//! How late the machine is, for times that are to be kept while it does other things as well.

use std::process::{Command, Stdio};
use std::sync::{Condvar, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::ClockId;

/// A part of what is watched: a program that naps, started by another one.
const NAPPER: &str = "/bin/sleep 0.01; :";

/// How long that takes where nothing else happens.
const NAP: Duration = Duration::from_millis(13);

/// The other part: so much time of a processor.
const WORK: Duration = Duration::from_millis(4);

/// Pauses between looks, so that looking costs little.
const PAUSE: Duration = Duration::from_millis(80);

/// How often as much as that happens in a run of the shell, one after the other: at most about so
/// often.
const STEPS: u32 = 15;

/// When a look ended, and how much later than it should.
#[derive(Default)]
struct Looks {
    seen: Mutex<Vec<(Instant, Duration)>>,
    more: Condvar,
}

/// Watched from the first use on.
static LOOKS: LazyLock<&'static Looks> = LazyLock::new(|| {
    let looks: &Looks = Box::leak(Box::default());
    let watch = || {
        loop {
            let late = nap() + work();
            looks.seen.lock().expect("nothing panics with it").push((Instant::now(), late));
            looks.more.notify_all();
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("lateness".into()).spawn(watch).expect("a thread");
    looks
});

/// By how much a nap is too long.
fn nap() -> Duration {
    let start = Instant::now();
    let mut napper = Command::new("sh");
    napper.args(["-c", NAPPER]).stdin(Stdio::null()).status().expect("a shell");
    start.elapsed().saturating_sub(NAP)
}

/// How long work is kept from a processor.
fn work() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let worked = || Duration::from(clock.now().expect("a clock of this thread"));
    let (start, end) = (Instant::now(), worked() + WORK);
    while worked() < end {}
    start.elapsed().saturating_sub(WORK)
}

/// Begins to watch, for those who ask later.
pub fn watch() {
    LazyLock::force(&LOOKS);
}

/// By how much more than usual a run of the shell may have been delayed since then.
pub fn since(start: Instant) -> Duration {
    let seen = LOOKS.seen.lock().expect("nothing panics with it");
    let none_yet = |seen: &mut Vec<(Instant, _)>| seen.last().is_none_or(|look| look.0 < start);
    let seen = LOOKS.more.wait_while(seen, none_yet).expect("the same");
    let late: Vec<_> =
        seen.iter().rev().take_while(|look| look.0 >= start).map(|look| look.1).collect();
    late.iter().sum::<Duration>() / late.len() as u32 * STEPS
}
