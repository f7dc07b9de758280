//! Results of the branches of a `forall`, and the decision about the whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::effect::TaskId;
use crate::outcome::{BranchFailure, BranchResults, BranchWords, FailureKind, UnknownWords};
use crate::tasks::trace::TraceStep;
use crate::time::Time;
use crate::unwind::ending::{Retry, TaskEnding, Thrown};
use crate::values::items::Items;
use crate::values::value::Value;
use ftsh_syntax::clauses::ForAllClauses;

/// Maximum number of failures reported separately.
const MAX_REPORTED_FAILURES: usize = 20;

/// Running branches, and results of the others.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Beginning of the `forall`.
    since: Time,
    /// List, positioned at the word of the next branch.
    items: Items,
    /// Number of branches started.
    started: u64,
    /// Branches that have not ended.
    running: BTreeMap<TaskId, RunningBranch>,
    /// Nodes on which remote branches began last.
    nodes: BTreeMap<TaskId, Box<str>>,
    succeeded: Places,
    failed: u64,
    /// Number of permanent failures.
    fatal: u64,
    /// Number of deferred branches, and their longest delay.
    deferred: (u64, Duration),
    reported: Vec<BranchFailure>,
    first: Option<TaskEnding>,
    /// Step of the first failed branch.
    first_step: Option<TraceStep>,
    decided: bool,
    /// Failure of the `forall` itself, regardless of the branches.
    broken: Option<Thrown>,
}

/// Branch that has not ended.
#[derive(Debug)]
struct RunningBranch {
    /// Index in the list.
    place: u64,
    word: Value,
    started: Time,
    /// True if the result is already counted.
    counted: bool,
}

impl Tally {
    /// Creates a tally without branches.
    pub(crate) fn new(items: Items, now: Time) -> Self {
        Self {
            since: now,
            items,
            started: 0,
            running: BTreeMap::new(),
            nodes: BTreeMap::new(),
            succeeded: Places::default(),
            failed: 0,
            fatal: 0,
            deferred: (0, Duration::ZERO),
            reported: Vec::new(),
            first: None,
            first_step: None,
            decided: false,
            broken: None,
        }
    }

    /// Returns the next word, unless the result is decided.
    pub(crate) fn next(&mut self) -> Option<Value> {
        if self.decided || self.items.needs_input() { None } else { self.items.next() }
    }

    /// True if more words may come.
    pub(crate) fn awaits_words(&self) -> bool {
        self.items.is_open() && !self.decided
    }

    /// The words.
    pub(crate) fn items(&mut self) -> &mut Items {
        &mut self.items
    }

    /// Adds a branch that begins.
    pub(crate) fn began(&mut self, task: TaskId, word: Value, now: Time) {
        let branch = RunningBranch { place: self.started, word, started: now, counted: false };
        self.running.insert(task, branch);
        self.started += 1;
    }

    /// Returns the word of a branch that has not ended.
    pub(crate) fn word(&self, task: TaskId) -> Option<&Value> {
        self.running.get(&task).map(|it| &it.word)
    }

    /// Records the node on which a branch begins.
    pub(crate) fn placed(&mut self, task: TaskId, node: &str) {
        self.nodes.insert(task, node.into());
    }

    /// Returns the node on which a branch began last.
    pub(crate) fn node(&self, task: TaskId) -> Option<&str> {
        self.nodes.get(&task).map(|node| &**node)
    }

    /// Removes an ended branch. Returns its index, word and start.
    pub(crate) fn forget(&mut self, task: TaskId) -> Option<(u64, Value, Time)> {
        self.nodes.remove(&task);
        self.running.remove(&task).map(|it| (it.place, it.word, it.started))
    }

    /// Returns the total number of branches.
    pub(crate) fn total(&self) -> u64 {
        self.items.len()
    }

    /// Returns the number of successful branches.
    pub(crate) fn succeeded(&self) -> u64 {
        self.succeeded.count
    }

    /// Returns the number of failed branches.
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Returns the beginning of the `forall`.
    pub(crate) fn since(&self) -> Time {
        self.since
    }

    /// Returns true if the result is decided and the other branches are being ended.
    pub(crate) fn is_decided(&self) -> bool {
        self.decided
    }

    /// Counts the result of a branch, whose step in a trace is `step`; only the first result
    /// counts. Returns true if the result decides the `forall`, so that the other branches must
    /// end.
    pub(crate) fn record_result(
        &mut self,
        task: TaskId,
        ending: &TaskEnding,
        step: Option<TraceStep>,
        clauses: &ForAllClauses<u64, BString>,
    ) -> bool {
        let Some(branch) = self.running.get_mut(&task) else { return false };
        if std::mem::replace(&mut branch.counted, true) || self.decided {
            return false;
        }
        if let TaskEnding::Succeeded = ending {
            self.succeeded.insert(branch.place);
        } else {
            self.failed += 1;
            match ending {
                TaskEnding::Failed(Thrown { retry: Retry::Never, .. }) => self.fatal += 1,
                TaskEnding::Failed(Thrown { retry: Retry::Deferred(by), .. }) => {
                    self.deferred = (self.deferred.0 + 1, self.deferred.1.max(*by));
                }
                _ => {}
            }
            if self.reported.len() < MAX_REPORTED_FAILURES
                && let Some(step) = &step
                && let Some((name, word)) = step.branch()
            {
                let story = describe_failure(ending, step);
                self.reported.push(BranchFailure { word: format!("{name}={word}"), story });
            }
            if self.first.is_none() {
                (self.first, self.first_step) = (Some(ending.clone()), step);
            }
        }
        if let TaskEnding::Failed(thrown) = ending
            && ending.is_broken_pipe()
        {
            self.fail(thrown.clone());
            return true;
        }
        self.decide(clauses)
    }

    /// Returns true if the result of the `forall` has just become decided.
    pub(crate) fn decide(&mut self, clauses: &ForAllClauses<u64, BString>) -> bool {
        if self.decided || clauses.keep_going {
            return false;
        }
        self.decided = match clauses.at_least {
            None => self.failed > 0,
            Some(least) => {
                let may_suffice = self.items.is_open() || self.total() - self.failed >= least;
                self.succeeded.count >= least || !may_suffice
            }
        };
        self.decided
    }

    /// Fails the `forall`, regardless of the branches.
    pub(crate) fn fail(&mut self, thrown: Thrown) {
        self.decided = true;
        self.broken.get_or_insert(thrown);
    }

    /// Returns the failure of the `forall`; `None` after success.
    pub(crate) fn result(mut self, clauses: &ForAllClauses<u64, BString>) -> Option<Failed> {
        let total = self.total();
        let needed = clauses.at_least.unwrap_or(total);
        let enough = match clauses.at_least {
            Some(least) => self.succeeded.count >= least,
            None => self.first.is_none(),
        };
        if enough && self.broken.is_none() {
            return None;
        }
        let counted = self.broken.is_none() && clauses.is_counted();
        if let Some(broken) = self.broken.take() {
            self.first = Some(TaskEnding::Failed(broken));
        }
        let message = counted.then(|| self.message(clauses.at_least));
        let retry = if total - self.fatal.min(total) < needed && self.fatal > 0 {
            Retry::Never
        } else if self.deferred.0 > 0 && self.deferred.0 == self.failed {
            Retry::Deferred(self.deferred.1)
        } else {
            Retry::AsUsual
        };
        let branches = self.current_results(counted);
        Some(Failed { first: self.first, step: self.first_step, message, retry, branches })
    }

    /// Returns the results of the branches up to now, with each failure if `counted`.
    fn current_results(&self, counted: bool) -> Arc<BranchResults> {
        let (items, succeeded) = (self.items.clone(), self.succeeded.clone());
        let reported = if counted { self.reported.clone() } else { Vec::new() };
        Arc::new(BranchResults {
            reported,
            failed: self.failed,
            words: Arc::new(TalliedWords { items, succeeded }),
        })
    }

    /// Returns the results of the branches when an enclosing structure cuts the `forall` short.
    pub(crate) fn cut(&self, clauses: &ForAllClauses<u64, BString>) -> Arc<BranchResults> {
        self.current_results(clauses.is_counted())
    }

    fn message(&self, at_least: Option<u64>) -> String {
        let total = self.total();
        let noun = if total == 1 { "branch" } else { "branches" };
        let mut message = format!("{} of {total} {noun} failed", self.failed);
        if let Some(least) = at_least {
            message += &format!(", and {least} had to succeed");
            if total < least {
                let words = if total == 1 { "word" } else { "words" };
                message += &format!(": the list has only {total} {words}");
            }
        }
        if let Some(BranchFailure { word, story }) = self.reported.first() {
            message += &format!("; the first, {word}: {story}");
        }
        message
    }
}

/// Returns the place and the message of a branch's failure.
fn describe_failure(ending: &TaskEnding, step: &TraceStep) -> String {
    match ending {
        TaskEnding::Failed(thrown) => {
            let failure = &thrown.failure;
            let way = failure.way(&step.file, failure.trace.inside_branch(step));
            format!("{way}: {}", failure.summary())
        }
        TaskEnding::Exited(code) => format!("exit {code}"),
        TaskEnding::Succeeded => String::new(),
    }
}

/// Failure of a `forall`.
pub(crate) struct Failed {
    /// Ending of the first failed branch, if any.
    pub first: Option<TaskEnding>,
    /// Step of that branch in a trace.
    pub step: Option<TraceStep>,
    /// Own message, unless the failure is simply that of the first failed branch.
    pub message: Option<String>,
    /// Effect on the enclosing `try`, which is deferred if all failed branches were.
    pub retry: Retry,
    /// Results of the branches.
    pub branches: Arc<BranchResults>,
}

impl Failed {
    /// Returns the kind and the code of the failure.
    pub(crate) fn kind(&self) -> (FailureKind, i32) {
        self.first.as_ref().and_then(TaskEnding::failure).unwrap_or((FailureKind::Failure, 1))
    }
}

/// Words of a `forall` by result, listed on demand.
#[derive(Debug)]
struct TalliedWords {
    items: Items,
    succeeded: Places,
}

impl BranchWords for TalliedWords {
    fn each(&self, succeeded: bool, visit: &mut dyn FnMut(&[u8])) -> Result<(), UnknownWords> {
        let mut items = self.items.clone();
        items.rewind(0);
        let mut place = 0;
        while let Some(word) = items.next() {
            if self.succeeded.contains(place) == succeeded {
                visit(&word.text().unwrap_or_default());
            }
            place += 1;
        }
        Ok(())
    }
}

/// Set of indices in a list, stored as ranges from start to end. There are usually few ranges.
#[derive(Clone, Debug, Default)]
struct Places {
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Places {
    fn contains(&self, place: u64) -> bool {
        self.ranges.range(..=place).next_back().is_some_and(|(_, end)| place < *end)
    }

    fn insert(&mut self, place: u64) {
        if self.contains(place) {
            return;
        }
        self.count += 1;
        let end = self.ranges.remove(&(place + 1)).unwrap_or(place + 1);
        match self.ranges.range_mut(..place).next_back() {
            Some((_, before)) if *before == place => *before = end,
            _ => _ = self.ranges.insert(place, end),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn places_are_stored_as_ranges() {
        let mut places = Places::default();
        let mut set = BTreeSet::new();
        for place in [5, 3, 4, 9, 0, 1, 7, 8, 4, 6, 2] {
            places.insert(place);
            set.insert(place);
            assert!((0..12).all(|place| places.contains(place) == set.contains(&place)));
            assert_eq!(places.count, set.len() as u64);
        }
        assert_eq!(places.ranges, BTreeMap::from([(0, 10)]));
    }
}
