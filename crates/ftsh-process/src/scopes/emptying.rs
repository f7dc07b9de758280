//! State of scopes that are being emptied.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// First interval between two checks of processes whose end is not reported. The intervals grow.
pub(super) const FIRST_INTERVAL: Duration = Duration::from_millis(5);

/// Scope that is being emptied.
pub(super) struct Emptying {
    /// Time of the first signal.
    pub since: Instant,
    /// Process groups of commands, which received the signal as groups.
    pub groups: HashSet<i32>,
    /// State of the SIGKILL phase, after the kill timeout.
    pub killing: Option<Killing>,
    /// All processes that received a signal.
    pub processes: HashSet<i32>,
    /// Those of `processes` that received another signal than SIGTERM.
    pub gentle: HashSet<i32>,
    /// Those of `processes` that still need SIGTERM after another signal.
    pub again: HashSet<i32>,
    /// True if the children of some of `processes` could not be listed yet.
    pub unlisted: bool,
    /// Processes found by the last full scan, with start times.
    pub known: Option<HashMap<i32, u64>>,
    /// True if the last scan found no process.
    pub clean: bool,
    /// Time of the next check, unless an event causes one before.
    pub look: Option<Instant>,
    interval: Duration,
}

/// Progress of the SIGKILL phase.
pub(super) struct Killing {
    /// Time of the first SIGKILL.
    pub since: Instant,
    /// True if killing is never given up.
    pub strong: bool,
    /// Processes killed.
    pub killed: HashSet<i32>,
    /// Survivors already logged.
    pub survivors: HashSet<i32>,
    /// Number of processes left when killing was given up; set shortly before the scope is closed.
    pub given_up: Option<usize>,
}

impl Emptying {
    /// Creates the state of a scope that is emptied from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            groups: HashSet::new(),
            killing: None,
            processes: HashSet::new(),
            gentle: HashSet::new(),
            again: HashSet::new(),
            unlisted: false,
            known: None,
            clean: false,
            look: None,
            interval: FIRST_INTERVAL,
        }
    }

    /// Begins the SIGKILL phase.
    pub(super) fn kill(&mut self, strong: bool, now: Instant) {
        let (killed, survivors) = (HashSet::new(), HashSet::new());
        self.killing = Some(Killing { since: now, strong, killed, survivors, given_up: None });
        self.interval = FIRST_INTERVAL;
        self.known = None;
    }

    /// True if the time of the next check has come.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.look.is_some_and(|look| look <= now)
    }

    /// Returns the interval to the next check.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Doubles the interval, up to `slowest`.
    pub(super) fn wait_longer(&mut self, slowest: Duration) {
        self.interval = (self.interval * 2).min(slowest);
    }
}
