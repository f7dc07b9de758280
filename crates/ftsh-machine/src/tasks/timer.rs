//! What happens when time passes.

use std::collections::BTreeMap;

use crate::effect::{ScopeId, TaskId};
use crate::time::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The time limit of a `try` passes.
    Deadline {
        /// The task it is in.
        task: TaskId,
        /// Which `try`.
        id: u64,
    },
    /// The limit of a single attempt passes.
    EachAttempt {
        /// The task it is in.
        task: TaskId,
        /// Which `try`.
        id: u64,
    },
    /// A delay between attempts, or a `sleep`, ends.
    Wake(TaskId),
    /// The next word of a hedged `forany` is to begin, which this task waits in.
    Hedge(TaskId),
    /// The time to obey SIGTERM is over.
    KillGrace(ScopeId),
    /// The time is over that the `finally` groups of a cancelled task share.
    Cleaning {
        /// The task.
        task: TaskId,
        /// How many of its structures stay.
        keep: usize,
    },
    /// The limit that the whole run lives under passes.
    RunDeadline,
}

/// Names an armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey(Time, u64);

/// The armed timers, by time; of two at the same time, the one armed first comes first.
#[derive(Debug, Default)]
pub struct Timers {
    armed: BTreeMap<TimerKey, Timer>,
    count: u64,
}

impl TimerKey {
    /// When the timer is due.
    pub fn due(self) -> Time {
        self.0
    }
}

impl Timers {
    /// How many are armed.
    pub fn count(&self) -> usize {
        self.armed.len()
    }

    /// Arms a timer.
    pub fn arm(&mut self, at: Time, timer: Timer) -> TimerKey {
        self.count += 1;
        let key = TimerKey(at, self.count);
        self.armed.insert(key, timer);
        key
    }

    /// Disarms a timer, if it is armed.
    pub fn cancel(&mut self, key: impl IntoIterator<Item = TimerKey>) {
        for key in key {
            self.armed.remove(&key);
        }
    }

    /// When the next timer is due; never, if there is none.
    pub fn next(&self) -> Time {
        self.armed.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    /// Takes the next timer that is due.
    pub fn pop(&mut self, now: Time) -> Option<Timer> {
        let entry = self.armed.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
