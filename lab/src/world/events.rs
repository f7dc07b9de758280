//! Future events in the order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ftsh_machine::Time;

/// A clock with scheduled events. Events of the same moment happen in the order of their
/// scheduling.
#[derive(Debug)]
pub struct Events<T> {
    now: Time,
    count: u64,
    heap: BinaryHeap<ScheduledEvent<T>>,
}

#[derive(Debug)]
struct ScheduledEvent<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Events<T> {
    /// Creates a schedule without events.
    pub fn new() -> Self {
        Self { now: Time::START, count: 0, heap: BinaryHeap::new() }
    }

    /// Returns the time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event, at once if its time has passed.
    pub fn schedule(&mut self, at: Time, what: T) {
        self.count += 1;
        self.heap.push(ScheduledEvent { at: at.max(self.now), number: self.count, what });
    }

    /// Returns the next event up to `until` and moves the clock to its time.
    pub fn next(&mut self, until: Time) -> Option<T> {
        if self.heap.peek().is_none_or(|next| next.at > until) {
            return None;
        }
        let next = self.heap.pop()?;
        self.now = next.at;
        Some(next.what)
    }
}

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ScheduledEvent<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

/// Reverse order, so that the heap returns the earliest event first.
impl<T> Ord for ScheduledEvent<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for ScheduledEvent<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for ScheduledEvent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for ScheduledEvent<T> {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn events_come_in_the_order_of_time_and_then_of_scheduling() {
        let at = |seconds| Time::after(Duration::from_secs(seconds));
        let mut events = Events::new();
        for (seconds, what) in [(3, 'd'), (1, 'a'), (2, 'b'), (2, 'c'), (9, 'x')] {
            events.schedule(at(seconds), what);
        }
        let order: String = std::iter::from_fn(|| events.next(at(5))).collect();
        assert_eq!(order, "abcd");
        assert_eq!(events.now(), at(3));
        events.schedule(at(1), 'y');
        assert_eq!(events.next(at(5)), Some('y'), "what is late happens at once");
    }
}
