//! Rounds: repetitions of checks that must always succeed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use std::{env, thread};

use nix::unistd::Uid;

use super::Ftsh;
use super::lateness;

/// Maximum number of rounds at once, in all tests together. Rounds mostly wait.
const AT_ONCE: usize = 12;

/// Returns the number of rounds: `FTSH_TEST_ROUNDS`, or 1.
///
/// `.ci/run` sets a higher number, for races that need many rounds.
pub(crate) fn count() -> usize {
    static COUNT: LazyLock<usize> = LazyLock::new(|| match env::var("FTSH_TEST_ROUNDS") {
        Ok(text) => text.parse().ok().filter(|&count| count > 0).expect("a number of rounds"),
        Err(_) => 1,
    });
    *COUNT
}

/// Parameters of a round: the way of finding processes, and the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub way: &'static str,
    pub unprivileged: bool,
    /// Number of the round, with a different start for each way. Checks that depend on the number
    /// therefore vary in few rounds too.
    pub number: usize,
}

impl Round {
    /// Creates a round. If root runs the tests, about half of the rounds run as nobody.
    ///
    /// The choice has no period, so that each user meets all values of the number.
    fn new((place, &way): (usize, &&'static str), nth: usize) -> Self {
        let second = (nth.count_ones() as usize + place) % 2 == 1;
        Self { way, unprivileged: second && Uid::effective().is_root(), number: nth + place }
    }

    /// Creates a run of `-c text` with the parameters of this round.
    pub(crate) fn command(&self, text: &str) -> Ftsh {
        let run = Ftsh::command(text).in_way(self.way);
        if self.unprivileged { run.unprivileged() } else { run }
    }
}

/// Runs [`count`] rounds in each of these ways, in parallel.
pub(crate) fn rounds(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    repeated(count(), ways, &SHARED, |round| together(|| check(round)));
}

/// Runs two rounds in each of these ways, for checks with repetitions of their own.
pub(crate) fn twice(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    repeated(2, ways, &SHARED, |round| together(|| check(round)));
}

/// Runs [`count`] rounds, at least two, in each of these ways while no other rounds run, and checks
/// their times.
///
/// Fails unless the median of the returned times is at most `most` in each way, and every time is
/// at most ten times `most`. The measured delay of the machine is added.
pub(crate) fn timed(
    what: &str,
    most: Duration,
    ways: &[&'static str],
    check: impl Fn(Round) -> Duration + Sync,
) {
    let alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    // One time alone may be that of an interruption.
    let results = repeated(count().max(2), ways, &Places::new(2 * ways.len()), check);
    let late = lateness::since(start);
    drop(alone);
    let most = most + late;
    for &way in ways {
        let of_way = results.iter().filter(|(round, _)| round.way == way);
        let mut times: Vec<Duration> = of_way.map(|&(_, time)| time).collect();
        times.sort_unstable();
        let (median, worst) = (times[(times.len() - 1) / 2], times[times.len() - 1]);
        assert!(
            median <= most && worst <= most * 10,
            "{what}, way {way}: {times:?} instead of {most:?}, {late:?} of which are for others"
        );
    }
}

/// Lock held exclusively during timed rounds, and shared by other rounds.
static QUIET: RwLock<()> = RwLock::new(());

fn together(check: impl FnOnce()) {
    let _shared = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    check();
}

/// Runs rounds, and returns their results. After a failure, whose thread has the name of the round,
/// no further round starts.
fn repeated<T: Send>(
    times: usize,
    ways: &[&'static str],
    places: &Places,
    check: impl Fn(Round) -> T + Sync,
) -> Vec<(Round, T)> {
    let (check, failed) = (&check, &AtomicBool::new(false));
    let all =
        (0..times).flat_map(|nth| ways.iter().enumerate().map(move |way| Round::new(way, nth)));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for round in all {
            let place = places.take();
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let run = move || {
                let _place = place;
                catch_unwind(AssertUnwindSafe(|| check(round))).unwrap_or_else(|panic| {
                    failed.store(true, Ordering::Relaxed);
                    resume_unwind(panic)
                })
            };
            let thread = thread::Builder::new().name(format!("{round:?}"));
            threads.push((round, thread.spawn_scoped(scope, run).expect("a thread")));
        }
        let join = |(round, thread): (Round, thread::ScopedJoinHandle<T>)| {
            (round, thread.join().unwrap_or_else(|_| panic!("{round:?} failed")))
        };
        threads.into_iter().map(join).collect()
    })
}

/// Semaphore for rounds in progress.
struct Places {
    free: Mutex<usize>,
    changed: Condvar,
}

/// Semaphore of all tests together.
static SHARED: Places = Places::new(AT_ONCE);

impl Places {
    const fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), changed: Condvar::new() }
    }

    /// Waits for a place, which is freed when the returned guard is dropped.
    fn take(&self) -> Place<'_> {
        let free = self.free.lock().expect("nothing panics with it");
        *self.changed.wait_while(free, |free| *free == 0).expect("the same") -= 1;
        Place(self)
    }
}

struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().expect("nothing panics with it") += 1;
        self.0.changed.notify_one();
    }
}
