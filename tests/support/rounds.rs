//! What must always hold is tried again and again.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use std::{env, thread};

use nix::unistd::Uid;

use super::Ftsh;
use super::lateness;

/// Rounds that are under way at once, in all tests together: most of their time they wait.
const AT_ONCE: usize = 12;

/// How often what must always hold is tried: as `FTSH_TEST_ROUNDS` says, or twice. What a race needs
/// many rounds to show is for `.ci/run`, which asks for them.
pub fn count() -> usize {
    static COUNT: LazyLock<usize> = LazyLock::new(|| match env::var("FTSH_TEST_ROUNDS") {
        Ok(text) => text.parse().ok().filter(|&count| count > 0).expect("a number of rounds"),
        Err(_) => 2,
    });
    *COUNT
}

/// How a round is run: with this way of finding processes, and as nobody or as who runs the tests.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub way: &'static str,
    pub unprivileged: bool,
    /// Counts up from a number that every way has of its own, so that what depends on it is varied
    /// even if rounds are few.
    pub number: usize,
}

impl Round {
    /// If root runs the tests, every second round of a way is run as nobody. Which of two that is
    /// changes without a period, so that both meet whatever depends on the number.
    fn new((place, &way): (usize, &&'static str), nth: usize) -> Self {
        let second = (nth.count_ones() as usize + place) % 2 == 1;
        Self { way, unprivileged: second && Uid::effective().is_root(), number: nth + place }
    }

    /// A run of `-c text` as this round wants it.
    pub fn command(&self, text: &str) -> Ftsh {
        let run = Ftsh::command(text).env("FTSH_TEST_FALLBACK", self.way);
        if self.unprivileged { run.unprivileged() } else { run }
    }
}

/// So many rounds ([`count`]) in each of these ways, side by side.
pub fn rounds(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    repeated(count(), ways, &SHARED, |round| together(|| check(round)));
}

/// Two rounds in each of these ways, of what repeats itself.
pub fn twice(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    repeated(2, ways, &SHARED, |round| together(|| check(round)));
}

/// So many rounds in each of these ways while no other rounds run. Fails unless the median of the
/// times that they return is at most `most`, in each way, and all are within ten times that; on a
/// machine that is busy with something else, as much more as it is late meanwhile.
pub fn timed(
    what: &str,
    most: Duration,
    ways: &[&'static str],
    check: impl Fn(Round) -> Duration + Sync,
) {
    let alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    let start = Instant::now();
    let results = repeated(count(), ways, &Places::new(2 * ways.len()), check);
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

/// Held alone while times are taken, together by rounds that only take time.
static QUIET: RwLock<()> = RwLock::new(());

fn together(check: impl FnOnce()) {
    let _shared = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    check();
}

/// What the rounds return. A failure tells its round by the name of its thread, and is the last one
/// that starts.
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

/// Places for rounds that are under way.
struct Places {
    free: Mutex<usize>,
    changed: Condvar,
}

/// Those of all tests together.
static SHARED: Places = Places::new(AT_ONCE);

impl Places {
    const fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), changed: Condvar::new() }
    }

    /// Waits for one, which is free again when what is returned goes.
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
