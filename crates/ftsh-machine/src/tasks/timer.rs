//! Timers of the machine.

use std::collections::BTreeMap;

use crate::effect::{ScopeId, TaskId};
use crate::time::Time;

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Deadline of a `try`.
    Deadline {
        /// Task of the `try`.
        task: TaskId,
        /// Id of the `try`.
        id: u64,
    },
    /// Deadline of a single attempt.
    EachAttempt {
        /// Task of the `try`.
        task: TaskId,
        /// Id of the `try`.
        id: u64,
    },
    /// End of a delay between attempts, or of a `sleep`.
    Wake(TaskId),
    /// Start of the next alternative of a hedged `forany` in this task.
    Hedge(TaskId),
    /// Check of the resources for the next branch of a `forall` in this task.
    Gate(TaskId),
    /// End of the time that a scope has after the signal of `signal NAME`, before SIGTERM.
    Escalation(ScopeId),
    /// End of the kill timeout after the first signal.
    KillGrace(ScopeId),
    /// Deadline of the `finally` groups of a canceled task.
    Cleaning {
        /// Canceled task.
        task: TaskId,
        /// Number of frames that the cancellation keeps.
        keep: usize,
    },
    /// Deadline of the whole run.
    RunDeadline,
}

/// Key of an armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerKey(Time, u64);

/// Armed timers, ordered by time and then by age.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    armed: BTreeMap<TimerKey, Timer>,
    count: u64,
}

impl TimerKey {
    /// Returns the due time.
    pub(crate) fn due(self) -> Time {
        self.0
    }
}

impl Timers {
    /// Returns the number of armed timers.
    pub(crate) fn count(&self) -> usize {
        self.armed.len()
    }

    /// Arms a timer.
    pub(crate) fn arm(&mut self, at: Time, timer: Timer) -> TimerKey {
        self.count += 1;
        let key = TimerKey(at, self.count);
        self.armed.insert(key, timer);
        key
    }

    /// Disarms timers; unknown timers are ignored.
    pub(crate) fn cancel(&mut self, key: impl IntoIterator<Item = TimerKey>) {
        for key in key {
            self.armed.remove(&key);
        }
    }

    /// Returns the due time of the next timer, or [`Time::NEVER`].
    pub(crate) fn next(&self) -> Time {
        self.armed.first_key_value().map_or(Time::NEVER, |(key, _)| key.0)
    }

    /// Takes the next timer that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Timer> {
        let entry = self.armed.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }
}
