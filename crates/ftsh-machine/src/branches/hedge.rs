//! State of a hedged `forany`: the remaining words, the running branches, and the result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::durations::learned::LimitKey;
use crate::effect::TaskId;
use crate::endings::{TaskResidue, Thrown};
use crate::invocation::IoTable;
use crate::items::Items;
use crate::outputs::{BufferedOutput, OutputBuffers};
use crate::program::Loop;
use crate::scheduler::TimerKey;
use crate::time::Time;
use crate::values::Value;

/// A `forany` whose words run in parallel.
#[derive(Debug)]
pub(crate) struct Hedge {
    /// Code of the loop.
    pub code: Arc<Loop>,
    /// Descriptors of every branch.
    pub io: IoTable,
    /// Buffered output of the branches.
    pub outputs: Option<Box<OutputBuffers>>,
    items: Items,
    /// Number of words not yet begun.
    left: u64,
    /// Delay before the next word begins.
    pub after: Duration,
    /// Maximum number of running branches.
    at_most: u64,
    /// Number of words that begin as soon as there is room.
    due: u64,
    /// Timer for the start of the next word.
    pub timer: Option<TimerKey>,
    /// Branches that run and have not failed.
    alive: BTreeSet<TaskId>,
    /// Branches that have not ended, with index, word and start.
    begun: BTreeMap<TaskId, (u64, Value, Time)>,
    /// State returned by the winner, or the failure of the last branch.
    result: Option<Result<TaskResidue, Thrown>>,
    /// Branch whose failure is the result, with its word.
    failed: Option<(TaskId, Value)>,
    decided: bool,
    /// Key of the learned delay, while the words' durations are known.
    pub usual: Option<LimitKey>,
}

impl Hedge {
    /// Creates the state before the first word begins.
    pub(crate) fn new(
        code: Arc<Loop>,
        io: IoTable,
        items: Items,
        after: Duration,
        at_most: u64,
    ) -> Self {
        Self {
            usual: code.usual,
            code,
            io,
            outputs: Some(Box::new(OutputBuffers::new(false))),
            left: items.len(),
            items,
            after,
            at_most,
            due: 1,
            timer: None,
            alive: BTreeSet::new(),
            begun: BTreeMap::new(),
            result: None,
            failed: None,
            decided: false,
        }
    }

    /// Returns the number of words.
    pub(crate) fn total(&self) -> u64 {
        self.items.len()
    }

    /// Returns true if a word has succeeded.
    pub(crate) fn is_won(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    /// Returns true if the other branches are being ended because of a failure.
    pub(crate) fn is_lost(&self) -> bool {
        self.decided && !self.is_won()
    }

    /// Returns true if the loop can continue after the failure of a branch: another branch runs or
    /// can begin.
    pub(crate) fn survives_failure(&self) -> bool {
        self.left > 0 || self.alive.len() > 1
    }

    /// Makes the next word begin as soon as there is room.
    pub(crate) fn make_due(&mut self) {
        self.due += 1;
    }

    /// Returns true if the next word begins now, with `running` branches running.
    pub(crate) fn begins(&self, running: usize) -> bool {
        self.due > 0 && self.has_more(running)
    }

    /// Returns the next word.
    pub(crate) fn next(&mut self) -> Option<Value> {
        (self.due, self.left) = (self.due.checked_sub(1)?, self.left.checked_sub(1)?);
        self.items.next_round()
    }

    /// Returns true if another branch could run.
    pub(crate) fn has_more(&self, running: usize) -> bool {
        !self.decided
            && self.left > 0
            && (running as u64) < self.at_most
            && self.outputs.as_ref().is_none_or(|outputs| outputs.has_room())
    }

    /// Adds a branch that begins.
    pub(crate) fn began(
        &mut self,
        task: TaskId,
        word: Value,
        buffered: Option<BufferedOutput>,
        now: Time,
    ) {
        self.alive.insert(task);
        let place = self.total() - self.left - 1;
        self.begun.insert(task, (place, word, now));
        if let (Some(outputs), Some(buffered)) = (&mut self.outputs, buffered) {
            outputs.begin(task, buffered, String::new());
        }
    }

    /// Returns the word of a branch that has not ended.
    pub(crate) fn word(&self, task: TaskId) -> Option<&Value> {
        self.begun.get(&task).map(|(_, word, _)| word)
    }

    /// Returns the start of a branch that has not ended.
    pub(crate) fn start(&self, task: TaskId) -> Option<Time> {
        self.begun.get(&task).map(|(_, _, start)| *start)
    }

    /// Removes an ended branch. Returns its index, word and start.
    pub(crate) fn forget(&mut self, task: TaskId) -> Option<(u64, Value, Time)> {
        self.begun.remove(&task)
    }

    /// Records the result of a branch; only the first result counts. Returns true if the result
    /// decides the loop, so that the other branches must end.
    pub(crate) fn record_result(
        &mut self,
        task: TaskId,
        result: Result<TaskResidue, Thrown>,
    ) -> bool {
        if !self.alive.remove(&task) || self.decided {
            // The failure of an ended branch has the output of the branch.
            if self.failed.as_ref().is_some_and(|(it, _)| *it == task) && result.is_err() {
                self.result = Some(result);
            }
            return false;
        }
        self.decided = match &result {
            Ok(_) => true,
            Err(thrown) => thrown.retry.is_for_try_only(),
        };
        if let Some(outputs) = &mut self.outputs
            && result.is_ok()
        {
            outputs.end(task);
        }
        self.due += 1;
        let word = self.word(task).filter(|_| result.is_err());
        self.failed = word.map(|word| (task, word.clone()));
        self.result = Some(result);
        self.decided
    }

    /// Fails the loop, regardless of the branches.
    pub(crate) fn fail(&mut self, thrown: Thrown) {
        (self.decided, self.result, self.failed) = (true, Some(Err(thrown)), None);
    }

    /// Takes the word whose failure is the result.
    pub(crate) fn take_failed_word(&mut self) -> Option<Value> {
        self.failed.take().map(|(_, word)| word)
    }

    /// Returns the result; `None` if no word has ended.
    pub(crate) fn result(self) -> Option<Result<TaskResidue, Thrown>> {
        self.result
    }
}
