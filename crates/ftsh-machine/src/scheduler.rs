//! Clock of a run, timers, and tasks ready to continue.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use crate::effect::{ScopeId, TaskId};
use crate::time::Time;

/// Number of instructions between two readings of the clock.
const SLICE: usize = 5_000;

/// Handling this many bytes counts as one instruction.
const BYTES: usize = 256;

/// Starting a process, here or for a remote branch, counts as this many instructions, because it
/// takes about a millisecond.
const START: usize = 50;

/// Clock, timers, and queue of ready tasks.
#[derive(Debug)]
pub(crate) struct Scheduler {
    now: Time,
    timers: Timers,
    ready: VecDeque<TaskId>,
    /// Number of instructions before the next reading of the clock.
    budget: usize,
    /// Number of bytes handled by the current instruction.
    handled: Cell<usize>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            now: Time::START,
            timers: Timers::default(),
            ready: VecDeque::new(),
            budget: SLICE,
            handled: Cell::new(0),
        }
    }
}

impl Scheduler {
    /// Returns the current moment.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Advances the clock to a moment, never back.
    pub(crate) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Arms a timer.
    pub(crate) fn arm(&mut self, at: Time, timer: Timer) -> TimerKey {
        self.timers.arm(at, timer)
    }

    /// Disarms timers; unknown timers are ignored.
    pub(crate) fn cancel(&mut self, keys: impl IntoIterator<Item = TimerKey>) {
        self.timers.cancel(keys);
    }

    /// Takes the next timer that is due.
    pub(crate) fn due(&mut self) -> Option<Timer> {
        self.timers.pop(self.now)
    }

    /// Returns the number of armed timers.
    pub(crate) fn armed(&self) -> usize {
        self.timers.count()
    }

    /// Appends a task to the queue of ready tasks.
    pub(crate) fn queue(&mut self, task: TaskId) {
        self.ready.push_back(task);
    }

    /// Puts a task at the front of the queue of ready tasks.
    pub(crate) fn queue_first(&mut self, task: TaskId) {
        self.ready.push_front(task);
    }

    /// Empties the queue of ready tasks.
    pub(crate) fn clear(&mut self) {
        self.ready.clear();
    }

    /// Takes the next ready task, if the slice has budget left.
    pub(crate) fn next(&mut self) -> Option<TaskId> {
        if self.has_budget() { self.ready.pop_front() } else { None }
    }

    /// Ends a slice. Returns the beginning of the next slice: now if a task is ready, or the time
    /// of the next timer. While a task is ready, the slice lasts until all events are handled, so
    /// that events do not wait behind those of the starts of many branches.
    pub(crate) fn end_slice(&mut self) -> Time {
        if self.ready.is_empty() {
            self.renew();
            self.timers.next()
        } else {
            self.now
        }
    }

    /// Restores the full budget of the slice.
    pub(crate) fn renew(&mut self) {
        self.budget = SLICE;
    }

    /// Returns true if the slice has budget for another instruction.
    pub(crate) fn has_budget(&self) -> bool {
        self.budget > 0
    }

    /// Counts an instruction, with the bytes handled.
    pub(crate) fn count_instruction(&mut self) {
        let handled = self.handled.take() / BYTES;
        self.budget = self.budget.saturating_sub(1 + handled);
    }

    /// Counts the start of a branch as an instruction.
    pub(crate) fn count_branch(&mut self) {
        self.budget = self.budget.saturating_sub(1);
    }

    /// Counts the start of a process or of a remote branch.
    pub(crate) fn count_start(&mut self) {
        self.budget = self.budget.saturating_sub(START);
    }

    /// Adds to the bytes handled by the current instruction.
    pub(crate) fn handle(&self, bytes: usize) {
        self.handled.set(self.handled.get() + bytes);
    }

    /// Returns the counter of handled bytes, for the expansion of words.
    pub(crate) fn handled(&self) -> &Cell<usize> {
        &self.handled
    }
}

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
    /// Start of the group of a `with` in this task.
    Group(TaskId),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_timer_is_due_at_its_time_unless_it_is_canceled() {
        let mut scheduler = Scheduler::default();
        let at = |seconds| Time::START + Duration::from_secs(seconds);
        let first = scheduler.arm(at(1), Timer::Wake(TaskId(1)));
        scheduler.arm(at(2), Timer::Wake(TaskId(2)));
        assert_eq!((scheduler.armed(), scheduler.end_slice()), (2, at(1)));
        scheduler.cancel([first]);
        scheduler.advance(at(1));
        assert_eq!(scheduler.due(), None);
        scheduler.advance(at(3));
        assert_eq!(scheduler.due(), Some(Timer::Wake(TaskId(2))));
        scheduler.advance(at(2));
        assert_eq!((scheduler.now(), scheduler.end_slice()), (at(3), Time::NEVER));
    }

    #[test]
    fn tasks_have_their_turns_while_the_slice_lasts() {
        let mut scheduler = Scheduler::default();
        scheduler.queue(TaskId(1));
        scheduler.queue(TaskId(2));
        scheduler.queue_first(TaskId(3));
        assert_eq!(scheduler.next(), Some(TaskId(3)));
        scheduler.handle(SLICE * BYTES);
        scheduler.count_instruction();
        assert!(!scheduler.has_budget());
        assert_eq!(scheduler.next(), None);
        assert_eq!((scheduler.end_slice(), scheduler.next()), (scheduler.now(), None));
        scheduler.renew();
        assert_eq!([scheduler.next(), scheduler.next()], [Some(TaskId(1)), Some(TaskId(2))]);
        assert_eq!(scheduler.next(), None);
    }
}
