//! How far the emptying of a scope has come.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What can't be waited for is looked at again after this time, then less and less often.
pub const FIRST_LOOK: Duration = Duration::from_millis(5);

/// A scope that is being emptied.
pub struct Emptying {
    /// When that began.
    pub since: Instant,
    /// The groups of commands, which were asked as such.
    pub groups: HashSet<i32>,
    /// Once the grace period is over.
    pub killing: Option<Killing>,
    /// All processes that were signalled.
    pub processes: HashSet<i32>,
    /// Those of them whose children could not be listed at the moment, with their nesting depths.
    pub unlisted: HashMap<i32, usize>,
    /// What the last look at all processes found, and when each of it was started.
    pub known: Option<HashMap<i32, u64>>,
    /// Whether the last look found nothing.
    pub clean: bool,
    /// When to look again, if not told earlier.
    pub look: Option<Instant>,
    interval: Duration,
}

/// How far the killing has come.
pub struct Killing {
    /// When it began.
    pub since: Instant,
    /// Whether it is never given up.
    pub strong: bool,
    /// What was killed.
    pub killed: HashSet<i32>,
    /// What was told of as surviving.
    pub survivors: HashSet<i32>,
    /// How many were left when it was given up; only the last of them are being killed then.
    pub given_up: Option<usize>,
}

impl Emptying {
    /// Of a scope, from now on.
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            groups: HashSet::new(),
            killing: None,
            processes: HashSet::new(),
            unlisted: HashMap::new(),
            known: None,
            clean: false,
            look: None,
            interval: FIRST_LOOK,
        }
    }

    /// The grace period is over.
    pub fn kill(&mut self, strong: bool, now: Instant) {
        let (killed, survivors) = (HashSet::new(), HashSet::new());
        self.killing = Some(Killing { since: now, strong, killed, survivors, given_up: None });
        self.interval = FIRST_LOOK;
        self.known = None;
    }

    /// Whether the moment to look again has come.
    pub fn is_due(&self, now: Instant) -> bool {
        self.look.is_some_and(|look| look <= now)
    }

    /// The time until the next look.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Looks less often from now on, but at least as often as `slowest` says.
    pub fn wait_longer(&mut self, slowest: Duration) {
        self.interval = (self.interval * 2).min(slowest);
    }
}
