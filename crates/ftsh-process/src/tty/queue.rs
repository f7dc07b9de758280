//! The order in which commands get the terminal.
//!
//! The kernel stops a command that reads from the terminal in the background. The command then
//! waits here, stopped, until the one in the foreground no longer needs the terminal: two commands
//! that read at once would each get a part of what is typed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::procs::TerminalActivity;

/// Interval between two checks of the foreground command while another command waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Longest pause between two questions of one command: the questions stay together.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);

/// Groups that wait for the terminal.
#[derive(Default)]
pub(crate) struct TerminalQueue {
    /// Stopped groups, in the order of their requests.
    waiting: VecDeque<i32>,
    /// Time of the next check; none if no group waits.
    due: Option<Instant>,
}

impl TerminalQueue {
    /// Adds a group that was stopped because it asked for the terminal.
    pub(crate) fn request(&mut self, group: i32, now: Instant) {
        if !self.contains(group) {
            self.waiting.push_back(group);
        }
        self.check_now(now);
    }

    /// Returns a group to the front of the queue, until the next check.
    pub(crate) fn postpone(&mut self, group: i32, now: Instant) {
        self.waiting.push_front(group);
        self.due = Some(now + CHECK_INTERVAL);
    }

    /// Removes a group whose command has ended, and checks at once who is next.
    pub(crate) fn remove(&mut self, group: i32, now: Instant) {
        self.waiting.retain(|&waiting| waiting != group);
        self.check_now(now);
    }

    fn check_now(&mut self, now: Instant) {
        self.due = (!self.waiting.is_empty()).then_some(now);
    }

    /// True if the group waits for the terminal.
    pub(crate) fn contains(&self, group: i32) -> bool {
        self.waiting.contains(&group)
    }

    /// Returns the time of the next check.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the group whose turn has come, if a check is due and `is_kept` says that the
    /// foreground command no longer needs the terminal.
    pub(crate) fn next(&mut self, now: Instant, is_kept: impl FnOnce() -> bool) -> Option<i32> {
        self.due.take_if(|due| *due <= now)?;
        let next = if is_kept() { None } else { self.waiting.pop_front() };
        self.due = (!self.waiting.is_empty()).then(|| now + CHECK_INTERVAL);
        next
    }
}

/// Use of the terminal by the command that has it.
#[derive(Default)]
pub(crate) struct TerminalUse {
    /// Time when the command was last known to need the terminal.
    last: Option<Instant>,
    /// Time of the last check.
    checked: Option<Instant>,
}

impl TerminalUse {
    /// Use by a command that was stopped because it asked for the terminal.
    pub(crate) fn requested(now: Instant) -> Self {
        Self { last: Some(now), checked: None }
    }

    /// Notes a check, and returns true if the command keeps the terminal. A command that runs at
    /// the first check may be between two reads of one line, and gets time to read on.
    pub(crate) fn check(&mut self, now: Instant, activity: TerminalActivity) -> bool {
        let recent = |time: Option<Instant>| {
            time.is_some_and(|time| now.duration_since(time) < BETWEEN_QUESTIONS)
        };
        let is_used = match activity {
            TerminalActivity::Reading => true,
            TerminalActivity::Running => !recent(self.checked),
            TerminalActivity::Elsewhere => false,
        };
        if is_used {
            self.last = Some(now);
        }
        self.checked = Some(now);
        recent(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_served_first() {
        let start = Instant::now();
        let mut queue = TerminalQueue::default();
        assert_eq!((queue.due(), queue.next(start, || false)), (None, None));
        for group in [7, 5, 7, 9] {
            queue.request(group, start);
        }
        assert_eq!(queue.next(start, || true), None);
        // The next check is not due yet.
        assert_eq!(queue.next(start, || false), None);
        let check = queue.due().expect("a check");
        assert_eq!(queue.next(check, || false), Some(7));
        queue.remove(5, check);
        assert_eq!(queue.next(check, || false), Some(9));
        assert_eq!((queue.due(), queue.contains(9)), (None, false));
    }

    #[test]
    fn a_command_keeps_the_terminal_between_its_questions_only() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        // The command was started in the foreground without a request.
        assert!(!TerminalUse::default().check(start, TerminalActivity::Elsewhere));
        let mut using = TerminalUse::requested(start);
        assert!(using.check(at(499), TerminalActivity::Elsewhere));
        assert!(using.check(at(900), TerminalActivity::Reading));
        assert!(using.check(at(1_399), TerminalActivity::Elsewhere));
        assert!(!using.check(at(1_400), TerminalActivity::Elsewhere));
    }

    #[test]
    fn a_command_that_runs_at_the_first_check_gets_time_to_read_on() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        for mut using in [TerminalUse::default(), TerminalUse::requested(start)] {
            assert!(using.check(at(2_000), TerminalActivity::Running));
            for millis in [2_100, 2_200, 2_300, 2_400] {
                assert!(using.check(at(millis), TerminalActivity::Running), "{millis}");
            }
            assert!(
                !using.check(at(2_500), TerminalActivity::Running),
                "a busy command does not keep it"
            );
        }
    }
}
