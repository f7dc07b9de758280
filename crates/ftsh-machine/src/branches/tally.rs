//! Results of the branches of a `forall`, and the decision about the whole.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use super::{
    once::{Once, Place},
    results::{BranchErrors, Places, TalliedWords},
};
use crate::effect::TaskId;
use crate::endings::{Retry, TaskEnding, Thrown};
use crate::items::Items;
use crate::outcome::{BranchFailure, BranchResults, FailureKind};
use crate::size::MAX_REPORTED_LINES;
use crate::time::Time;
use crate::trace::TraceStep;
use crate::values::Value;
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
    /// Failures of the branches.
    errors: Arc<BranchErrors>,
    first: Option<TaskEnding>,
    /// Step of the first failed branch.
    first_step: Option<TraceStep>,
    decided: bool,
    /// Set when no further branch begins, and those that run finish.
    finishing: bool,
    /// Numbers of the running branches.
    slots: Slots,
    /// Words that need not run, by `once in`.
    once: Option<Box<Once>>,
    /// Files that the branches give.
    pub given: BTreeSet<Vec<u8>>,
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
    /// Number among the running branches.
    slot: Option<NonZeroU32>,
    /// True if the result is already counted.
    counted: bool,
}

impl Tally {
    /// Creates a tally without branches.
    pub(crate) fn new(items: Items, once: Option<Box<Once>>, now: Time) -> Self {
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
            errors: Arc::default(),
            first: None,
            first_step: None,
            decided: false,
            finishing: false,
            slots: Slots::default(),
            once,
            given: BTreeSet::new(),
            broken: None,
        }
    }

    /// Returns the next word, unless no further branch begins.
    pub(crate) fn next(&mut self) -> Option<Next> {
        if self.begins_no_more() || self.items.needs_input() {
            return None;
        }
        let word = self.items.next()?;
        let Some(once) = &mut self.once else { return Some(Next::Begins(word)) };
        let place = self.started;
        match once.find(&word.text().unwrap_or_default(), place) {
            Place::New => return Some(Next::Begins(word)),
            Place::Recorded => self.succeeded.insert(place),
            Place::Repeated => {}
        }
        self.started += 1;
        Some(Next::Skipped(word, place))
    }

    /// True if a word has come that is still to be handled.
    pub(crate) fn has_word(&self) -> bool {
        !self.begins_no_more() && self.items.has_next()
    }

    /// True if no further branch begins.
    pub(crate) fn begins_no_more(&self) -> bool {
        self.decided || self.finishing
    }

    /// True if more words may come.
    pub(crate) fn awaits_words(&self) -> bool {
        self.items.is_open() && !self.begins_no_more()
    }

    /// True if the driver has been asked for the next words.
    pub(crate) fn asks_for_words(&self) -> bool {
        self.items.is_asked()
    }

    /// Returns the words that need not run, by `once in`.
    pub(crate) fn once(&mut self) -> Option<&mut Once> {
        self.once.as_deref_mut()
    }

    /// Returns the lowest number that no running branch has.
    pub(crate) fn take_slot(&mut self) -> NonZeroU32 {
        self.slots.take()
    }

    /// The words.
    pub(crate) fn items(&mut self) -> &mut Items {
        &mut self.items
    }

    /// Adds a branch that begins.
    pub(crate) fn began(&mut self, task: TaskId, word: Value, slot: Option<NonZeroU32>, now: Time) {
        let branch =
            RunningBranch { place: self.started, word, started: now, slot, counted: false };
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
        let branch = self.running.remove(&task)?;
        branch.slot.into_iter().for_each(|slot| self.slots.give_back(slot));
        Some((branch.place, branch.word, branch.started))
    }

    /// Returns the total number of branches. A word that runs once counts once.
    pub(crate) fn total(&self) -> u64 {
        self.items.len() - self.once.as_ref().map_or(0, |once| once.repeated())
    }

    /// Returns the number of known words whose branches have not begun.
    fn never_begun(&self) -> u64 {
        self.items.len().saturating_sub(self.started)
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
        let is_counted = std::mem::replace(&mut branch.counted, true);
        if is_counted || self.decided {
            if let TaskEnding::Succeeded = ending {
                self.succeeded.insert(branch.place);
            }
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
            if let Some(step) = &step
                && let Some((name, word)) = step.branch()
            {
                let story = describe_failure(ending, step);
                Arc::make_mut(&mut self.errors).push(branch.place, &story);
                if self.reported.len() < MAX_REPORTED_FAILURES {
                    let printed = match ending {
                        TaskEnding::Failed(thrown) => thrown.failure.last_lines(MAX_REPORTED_LINES),
                        _ => Vec::new(),
                    };
                    let word = format!("{name}={word}");
                    self.reported.push(BranchFailure { word, story, printed });
                }
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
        if clauses.finish_running && self.failed > 0 {
            self.finishing = true;
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
        let message = counted.then(|| self.message(clauses));
        let retry = if total - self.fatal.min(total) < needed && self.fatal > 0 {
            Retry::Never
        } else if self.deferred.0 > 0 && self.deferred.0 == self.failed {
            Retry::Deferred(self.deferred.1)
        } else {
            Retry::AsUsual
        };
        let sums_up = counted && matches!(self.first, Some(TaskEnding::Failed(_)));
        let branches = self.current_results(counted, sums_up);
        Some(Failed { first: self.first, step: self.first_step, message, retry, branches })
    }

    /// Returns the results of the branches up to now, with each failure if `counted`.
    fn current_results(&self, counted: bool, sums_up: bool) -> Arc<BranchResults> {
        let reported = if counted { self.reported.clone() } else { Vec::new() };
        let words = TalliedWords {
            items: self.items.clone(),
            started: self.started,
            succeeded: self.succeeded.clone(),
            repeated: self.once.as_ref().map(|once| once.repetitions()).unwrap_or_default(),
            errors: Arc::clone(&self.errors),
        };
        Arc::new(BranchResults { reported, failed: self.failed, sums_up, words: Arc::new(words) })
    }

    /// Returns the results of the branches when an enclosing structure cuts the `forall` short.
    pub(crate) fn cut(&self, clauses: &ForAllClauses<u64, BString>) -> Arc<BranchResults> {
        self.current_results(clauses.is_counted(), false)
    }

    fn message(&self, clauses: &ForAllClauses<u64, BString>) -> String {
        let total = self.total();
        let noun = if total == 1 { "branch" } else { "branches" };
        let mut message = format!("{} of {total} {noun} failed", self.failed);
        let never_begun = self.never_begun();
        if self.finishing && never_begun > 0 {
            message += &format!(", {never_begun} never began");
        }
        if let Some(least) = clauses.at_least {
            message += &format!(", and {least} had to succeed");
            if total < least {
                let words = if total == 1 { "word" } else { "words" };
                message += &format!(": the list has only {total} {words}");
            }
        }
        if let Some(BranchFailure { word, story, .. }) = self.reported.first() {
            message += &format!("; the first, {word}: {story}");
        }
        message
    }
}

/// Next word of a `forall`.
#[derive(Debug)]
pub(crate) enum Next {
    /// Word whose branch begins.
    Begins(Value),
    /// Word that need not run, with its index in the list.
    Skipped(Value, u64),
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

    /// Returns the name of the system's error that caused the failure, if known.
    pub(crate) fn errno(&self) -> Option<String> {
        match &self.first {
            Some(TaskEnding::Failed(thrown)) => thrown.failure.errno.clone(),
            _ => None,
        }
    }
}

/// Numbers from 1 up, of which a new branch takes the lowest free one.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: BinaryHeap<Reverse<NonZeroU32>>,
    /// Highest number given out so far.
    highest: u32,
}

impl Slots {
    /// Takes the lowest free number.
    pub(crate) fn take(&mut self) -> NonZeroU32 {
        if let Some(Reverse(slot)) = self.free.pop() {
            return slot;
        }
        self.highest += 1;
        NonZeroU32::new(self.highest).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the number of an ended branch.
    pub(crate) fn give_back(&mut self, slot: NonZeroU32) {
        self.free.push(Reverse(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_comes_next() {
        let mut slots = Slots::default();
        let mut take = |back: &[u32]| {
            for slot in back {
                slots.give_back(NonZeroU32::new(*slot).expect("above 0"));
            }
            [slots.take(), slots.take(), slots.take()].map(NonZeroU32::get)
        };
        assert_eq!(take(&[]), [1, 2, 3]);
        assert_eq!(take(&[3, 1]), [1, 3, 4]);
    }
}
