//! Clock of a run, timers, and tasks ready to continue.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::effect::TaskId;
use crate::tasks::timer::{Timer, TimerKey, Timers};
use crate::time::Time;

/// Number of instructions between two readings of the clock.
const SLICE: usize = 5_000;

/// Handling this many bytes counts as one instruction.
const BYTES: usize = 256;

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
    /// of the next timer.
    pub(crate) fn end_slice(&mut self) -> Time {
        self.renew();
        if self.ready.is_empty() { self.timers.next() } else { self.now }
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

    /// Adds to the bytes handled by the current instruction.
    pub(crate) fn handle(&self, bytes: usize) {
        self.handled.set(self.handled.get() + bytes);
    }

    /// Returns the counter of handled bytes, for the expansion of words.
    pub(crate) fn handled(&self) -> &Cell<usize> {
        &self.handled
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
        assert_eq!(scheduler.end_slice(), scheduler.now());
        assert_eq!([scheduler.next(), scheduler.next()], [Some(TaskId(1)), Some(TaskId(2))]);
        assert_eq!(scheduler.next(), None);
    }
}
