//! What must always hold is tried again and again.

use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;
use std::{env, thread};

use nix::unistd::Uid;

use super::Ftsh;

/// How often what must always hold is tried: as `FTSH_TEST_ROUNDS` says, or twice. What a race needs
/// many rounds to show is for `.ci/run`, which asks for twenty.
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
    pub number: usize,
}

impl Round {
    /// A run of `-c text` as this round wants it.
    pub fn command(&self, text: &str) -> Ftsh {
        let run = Ftsh::command(text).env("FTSH_TEST_FALLBACK", self.way);
        if self.unprivileged { run.unprivileged() } else { run }
    }
}

/// Held alone while times are taken, together by rounds that only take time.
static QUIET: RwLock<()> = RwLock::new(());

/// So many rounds ([`count`]) in each of these ways, as nobody too if root runs the tests. They run
/// side by side, for most of them wait; a failure tells its way by the name of its thread.
pub fn rounds(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    repeated(count(), ways, |round| {
        let _shared = QUIET.read().unwrap_or_else(PoisonError::into_inner);
        check(round);
    });
}

/// One round in each of these ways and as each user, of what repeats itself.
pub fn once(ways: &[&'static str], check: impl Fn(Round) + Sync) {
    let _shared = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    repeated(1, ways, check);
}

/// So many rounds in each of these ways while no other rounds run. Fails unless the median of the
/// times that they return is at most `most`, in each way, and all are within ten times that: the
/// machine may be busy with something else for a moment.
pub fn timed(
    what: &str,
    most: Duration,
    ways: &[&'static str],
    check: impl Fn(Round) -> Duration + Sync,
) {
    let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    for (round, mut times) in repeated(count(), ways, check) {
        times.sort_unstable();
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        assert!(median <= most && worst <= most * 10, "{what}: {times:?} in {round:?}");
    }
}

/// What the rounds of one way return comes together.
fn repeated<T: Send>(
    times: usize,
    ways: &[&'static str],
    check: impl Fn(Round) -> T + Sync,
) -> Vec<(Round, Vec<T>)> {
    let users = if Uid::effective().is_root() { &[true, false][..] } else { &[false] };
    let check = &check;
    thread::scope(|scope| {
        let start = |(way, unprivileged)| {
            let name = format!("way {way}{}", if unprivileged { ", as nobody" } else { "" });
            let round = Round { way, unprivileged, number: 0 };
            let all = move || (0..times).map(|number| check(Round { number, ..round })).collect();
            let thread = thread::Builder::new().name(name).spawn_scoped(scope, all);
            (round, thread.expect("a thread"))
        };
        let all = ways.iter().flat_map(|&way| users.iter().map(move |&user| (way, user)));
        let threads: Vec<_> = all.map(start).collect();
        let join = |(round, thread): (Round, thread::ScopedJoinHandle<Vec<T>>)| {
            let results = thread.join().unwrap_or_else(|_| panic!("{round:?} failed"));
            (round, results)
        };
        threads.into_iter().map(join).collect()
    })
}
