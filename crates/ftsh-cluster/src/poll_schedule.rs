//! Times at which the queue of an engine is polled, and the jobs that the queue has lost.
//!
//! The command that submitted a job waits until the engine starts the job. The command never
//! returns if the engine was killed and forgot the job, or if a message was lost. The same happens
//! if a node has the job and runs nothing. Polls find these jobs. The module starts no processes
//! and has no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ftsh_machine::Time;

/// Pause before the first poll after a submission, and after a poll that missed a job.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause between polls. Each pause is twice as long as the pause before.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Schedule of the polls of one queue.
#[derive(Debug)]
pub(crate) struct PollSchedule {
    /// Time of the next poll; never while a poll runs or nothing is pending.
    due: Time,
    /// Pause before the first poll, and after a poll that missed a job.
    first_pause: Duration,
    pause: Duration,
    /// Jobs that the running poll checks, by the number of their branch.
    sought: BTreeMap<u64, String>,
    /// Branches whose jobs the last list lacked.
    missed: BTreeSet<u64>,
}

impl PollSchedule {
    /// Creates a schedule without a poll.
    pub(crate) fn new(first_pause: Duration) -> Self {
        Self {
            due: Time::NEVER,
            first_pause,
            pause: first_pause,
            sought: BTreeMap::new(),
            missed: BTreeSet::new(),
        }
    }

    /// Returns the time of the next poll.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Schedules a poll after a submission that may have to wait.
    pub(crate) fn sent(&mut self, now: Time) {
        if self.due == Time::NEVER && self.sought.is_empty() {
            self.pause = self.first_pause;
            self.due = now + self.first_pause;
        }
    }

    /// Begins a poll for these jobs, which may be some of the pending jobs only.
    pub(crate) fn begin(&mut self, sought: BTreeMap<u64, String>, pending: impl Fn(u64) -> bool) {
        self.missed.retain(|number| pending(*number));
        (self.due, self.sought) = (Time::NEVER, sought);
    }

    /// Handles the list of waiting jobs, or a poll without an answer. Returns the branches whose
    /// jobs are missing in two consecutive lists of these jobs. A busy engine may have started a
    /// job before the command receives the message.
    pub(crate) fn answered(&mut self, now: Time, waiting: Option<&BTreeSet<&str>>) -> Vec<u64> {
        let sought = std::mem::take(&mut self.sought);
        let mut lost = Vec::new();
        if let Some(waiting) = waiting {
            let missed = sought.iter().filter(|(_, job)| !waiting.contains(job.as_str()));
            let missed = missed.map(|(number, _)| *number).collect::<BTreeSet<_>>();
            lost = missed.intersection(&self.missed).copied().collect();
            let missed = &missed - &self.missed;
            self.missed.retain(|number| !sought.contains_key(number));
            self.missed.extend(missed);
        }
        if self.missed.is_empty() {
            self.due = now + self.pause;
            self.pause = (self.pause * 2).min(MAX_PAUSE);
        } else {
            self.due = now + self.first_pause;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    fn at(seconds: u64) -> Time {
        Time::after(Duration::from_secs(seconds))
    }

    /// Branches 1, 2 … with jobs that are called `a`, `b` ….
    fn jobs(ids: &str) -> BTreeMap<u64, String> {
        ids.chars().map(|name| (u64::from(name) - 96, name.to_string())).collect()
    }

    /// Polls for some jobs when a poll is due, with a list of these names.
    fn poll(schedule: &mut PollSchedule, sought: &str, listed: Option<&[&str]>) -> Vec<u64> {
        poll_some(schedule, sought, sought, listed)
    }

    /// Polls for some of the pending jobs.
    fn poll_some(
        schedule: &mut PollSchedule,
        pending: &str,
        sought: &str,
        listed: Option<&[&str]>,
    ) -> Vec<u64> {
        let (now, pending) = (schedule.due(), jobs(pending));
        schedule.begin(jobs(sought), |number| pending.contains_key(&number));
        assert_eq!(schedule.due(), Time::NEVER, "one poll at a time");
        let listed = listed.map(|ids| ids.iter().copied().collect());
        schedule.answered(now, listed.as_ref())
    }

    #[test]
    fn a_job_missing_twice_is_lost() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        schedule.sent(at(0));
        assert_eq!(poll(&mut schedule, "abc", Some(&["a"])), NONE);
        assert_eq!(poll(&mut schedule, "abc", Some(&["a", "c"])), [2]);
        assert_eq!(poll(&mut schedule, "ac", Some(&["a"])), NONE);
        assert_eq!(poll(&mut schedule, "ac", Some(&["a"])), [3]);
        assert_eq!(poll(&mut schedule, "a", Some(&["a"])), NONE);
    }

    #[test]
    fn a_list_of_other_jobs_proves_nothing() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        schedule.sent(at(0));
        assert_eq!(poll_some(&mut schedule, "abc", "ab", Some(&["a"])), NONE);
        assert_eq!(poll_some(&mut schedule, "abc", "c", Some(&["c"])), NONE);
        assert_eq!(poll_some(&mut schedule, "abc", "c", Some(&[])), NONE);
        assert_eq!(poll_some(&mut schedule, "abc", "ab", Some(&["a"])), [2]);
        assert_eq!(poll_some(&mut schedule, "ac", "c", Some(&["c"])), NONE);
        assert_eq!(poll_some(&mut schedule, "ac", "c", Some(&[])), NONE);
    }

    #[test]
    fn a_poll_without_answer_proves_nothing() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        schedule.sent(at(0));
        assert_eq!(poll(&mut schedule, "a", None), NONE);
        assert_eq!(poll(&mut schedule, "a", None), NONE);
        assert_eq!(poll(&mut schedule, "a", Some(&[])), NONE);
        assert_eq!(poll(&mut schedule, "a", None), NONE);
        assert_eq!(poll(&mut schedule, "a", Some(&[])), [1]);
    }

    #[test]
    fn a_job_that_no_longer_waits_is_not_lost_later() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        schedule.sent(at(0));
        assert_eq!(poll(&mut schedule, "ab", Some(&["b"])), NONE);
        assert_eq!(poll(&mut schedule, "b", Some(&["b"])), NONE);
        assert_eq!(poll(&mut schedule, "ab", Some(&["b"])), NONE);
    }

    #[test]
    fn pauses_between_polls_grow() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        schedule.sent(at(0));
        schedule.sent(at(3));
        let mut times = Vec::new();
        for _ in 0..6 {
            times.push(schedule.due().elapsed().as_secs());
            poll(&mut schedule, "a", Some(&["a"]));
        }
        assert_eq!(times, [5, 10, 20, 40, 80, 140]);
        poll(&mut schedule, "a", Some(&[]));
        assert_eq!(schedule.due(), at(205), "soon, when a job is missed");
    }

    #[test]
    fn no_poll_without_waiting_jobs() {
        let mut schedule = PollSchedule::new(FIRST_PAUSE);
        assert_eq!(schedule.due(), Time::NEVER);
        schedule.sent(at(0));
        schedule.begin(BTreeMap::new(), |_| false);
        assert_eq!(schedule.due(), Time::NEVER);
        schedule.sent(at(60));
        assert_eq!(schedule.due(), at(65));
    }
}
