//! Whether an engine still knows what waits in its queue.
//!
//! What has brought a branch into the queue waits until it is told that its turn has come. If the engine was
//! killed and has forgotten the job, or if its word was lost, that is for ever; so is waiting for a word from a
//! node that has a job and runs nothing. So the engine's list is looked at now and then, once for all that have
//! not begun. Nothing is run here, and there is no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ftsh_machine::Time;

/// How soon after something was sent there is a first look, and after one that has missed something another.
pub const SOON: Duration = Duration::from_secs(5);
/// How far looks are apart at most: each is twice as far from the last one as that from the one before.
const SELDOM: Duration = Duration::from_secs(60);

/// The looks of a run.
#[derive(Debug)]
pub struct Inquiry {
    /// When the next one is due; never, if nothing is on its way or one is being taken.
    due: Time,
    /// Pause before the first poll, and after a poll that missed something.
    soon: Duration,
    pause: Duration,
    /// What is looked for just now: branches by their numbers, with their jobs.
    sought: BTreeMap<u64, String>,
    /// Those that the last answer didn't have.
    missed: BTreeSet<u64>,
}

impl Inquiry {
    /// One that has nothing to look for.
    pub fn new(soon: Duration) -> Self {
        Self {
            due: Time::NEVER,
            soon,
            pause: soon,
            sought: BTreeMap::new(),
            missed: BTreeSet::new(),
        }
    }

    /// When the next look is due.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Something was sent that may have to wait.
    pub fn sent(&mut self, now: Time) {
        if self.due == Time::NEVER && self.sought.is_empty() {
            self.pause = self.soon;
            self.due = now + self.soon;
        }
    }

    /// It is time: says whether a look is to be taken, as anything is on its way. These wait.
    pub fn begin(&mut self, sought: BTreeMap<u64, String>, is_needed: bool) -> bool {
        self.missed.retain(|number| sought.contains_key(number));
        (self.due, self.sought) = (Time::NEVER, sought);
        is_needed
    }

    /// The engine has listed the jobs that wait, or hasn't answered: says which branches it has forgotten. An
    /// engine that is busy may have started one that doesn't know of it yet, so it is looked twice.
    pub fn answered(&mut self, now: Time, waiting: Option<&BTreeSet<&str>>) -> Vec<u64> {
        let sought = std::mem::take(&mut self.sought);
        let mut forgotten = Vec::new();
        if let Some(waiting) = waiting {
            let missed = sought.into_iter().filter(|(_, job)| !waiting.contains(job.as_str()));
            let missed = missed.map(|(number, _)| number).collect::<BTreeSet<_>>();
            forgotten = missed.intersection(&self.missed).copied().collect();
            self.missed = &missed - &self.missed;
        }
        if self.missed.is_empty() {
            self.due = now + self.pause;
            self.pause = (self.pause * 2).min(SELDOM);
        } else {
            self.due = now + self.soon;
        }
        forgotten
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
    fn jobs(names: &str) -> BTreeMap<u64, String> {
        names.chars().map(|name| (u64::from(name) - 96, name.to_string())).collect()
    }

    /// A look for some when it is due, at which these are listed.
    fn look(inquiry: &mut Inquiry, sought: &str, listed: Option<&[&str]>) -> Vec<u64> {
        let now = inquiry.due();
        assert!(inquiry.begin(jobs(sought), true));
        assert_eq!(inquiry.due(), Time::NEVER, "one look at a time");
        let listed = listed.map(|names| names.iter().copied().collect());
        inquiry.answered(now, listed.as_ref())
    }

    #[test]
    fn what_is_missed_twice_is_forgotten() {
        let mut inquiry = Inquiry::new(SOON);
        inquiry.sent(at(0));
        assert_eq!(look(&mut inquiry, "abc", Some(&["a"])), NONE);
        assert_eq!(look(&mut inquiry, "abc", Some(&["a", "c"])), [2]);
        assert_eq!(look(&mut inquiry, "ac", Some(&["a"])), NONE);
        assert_eq!(look(&mut inquiry, "ac", Some(&["a"])), [3]);
        assert_eq!(look(&mut inquiry, "a", Some(&["a"])), NONE);
    }

    #[test]
    fn no_answer_proves_nothing() {
        let mut inquiry = Inquiry::new(SOON);
        inquiry.sent(at(0));
        assert_eq!(look(&mut inquiry, "a", None), NONE);
        assert_eq!(look(&mut inquiry, "a", None), NONE);
        assert_eq!(look(&mut inquiry, "a", Some(&[])), NONE);
        assert_eq!(look(&mut inquiry, "a", None), NONE);
        assert_eq!(look(&mut inquiry, "a", Some(&[])), [1]);
    }

    #[test]
    fn what_was_missed_and_waits_no_more_is_not_forgotten_later() {
        let mut inquiry = Inquiry::new(SOON);
        inquiry.sent(at(0));
        assert_eq!(look(&mut inquiry, "ab", Some(&["b"])), NONE);
        assert_eq!(look(&mut inquiry, "b", Some(&["b"])), NONE);
        assert_eq!(look(&mut inquiry, "ab", Some(&["b"])), NONE);
    }

    #[test]
    fn looks_are_few() {
        let mut inquiry = Inquiry::new(SOON);
        inquiry.sent(at(0));
        inquiry.sent(at(3));
        let mut times = Vec::new();
        for _ in 0..6 {
            times.push(inquiry.due().elapsed().as_secs());
            look(&mut inquiry, "a", Some(&["a"]));
        }
        assert_eq!(times, [5, 10, 20, 40, 80, 140]);
        look(&mut inquiry, "a", Some(&[]));
        assert_eq!(inquiry.due(), at(205), "soon, when something is missed");
    }

    #[test]
    fn nothing_is_looked_for_when_nothing_waits() {
        let mut inquiry = Inquiry::new(SOON);
        assert_eq!(inquiry.due(), Time::NEVER);
        inquiry.sent(at(0));
        assert!(!inquiry.begin(BTreeMap::new(), false));
        assert_eq!(inquiry.due(), Time::NEVER);
        inquiry.sent(at(60));
        assert_eq!(inquiry.due(), at(65));
    }
}
