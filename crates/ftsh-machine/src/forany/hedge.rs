//! What is known of a hedged `forany`: the words to come, those that run, and how it is decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::commands::table::Table;
use crate::effect::TaskId;
use crate::grouped_output::held::{Held, Outputs};
use crate::program::code::Loop;
use crate::tasks::timer::TimerKey;
use crate::time::Time;
use crate::unwind::ending::{TaskResidue, Thrown};
use crate::values::items::Items;
use crate::values::value::Value;

/// A `forany` whose words run beside each other.
#[derive(Debug)]
pub struct Hedge {
    /// Its code.
    pub code: Arc<Loop>,
    /// The descriptors of every word's branch.
    pub io: Table,
    /// What they print.
    pub outputs: Option<Box<Outputs>>,
    items: Items,
    /// How many words have not begun.
    left: u64,
    /// How long until the next one begins.
    pub after: Duration,
    /// How many run at once.
    at_most: u64,
    /// How many are to begin as soon as there is room.
    due: u64,
    /// Has the next one begin, if there is one.
    pub timer: Option<TimerKey>,
    /// The branches that run and have not failed.
    alive: BTreeSet<TaskId>,
    /// All that have not ended: which one of all that began, its word, and when it began.
    begun: BTreeMap<TaskId, (u64, Value, Time)>,
    /// What the winner leaves, or how the last one failed.
    result: Option<Result<TaskResidue, Thrown>>,
    decided: bool,
}

impl Hedge {
    /// Nothing has begun yet; the first word is to.
    pub fn new(code: Arc<Loop>, io: Table, items: Items, after: Duration, at_most: u64) -> Self {
        Self {
            code,
            io,
            outputs: Some(Box::new(Outputs::new(false))),
            left: items.len(),
            items,
            after,
            at_most,
            due: 1,
            timer: None,
            alive: BTreeSet::new(),
            begun: BTreeMap::new(),
            result: None,
            decided: false,
        }
    }

    /// How many words there are.
    pub fn total(&self) -> u64 {
        self.items.len()
    }

    /// Whether a word has succeeded.
    pub fn is_won(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    /// Whether the others are being ended because one has failed.
    pub fn is_lost(&self) -> bool {
        self.decided && !self.is_won()
    }

    /// Whether it may go on when a word has failed: another one runs, or can begin.
    pub fn outlives_a_failure(&self) -> bool {
        self.left > 0 || self.alive.len() > 1
    }

    /// The next word is to begin as soon as there is room.
    pub fn is_due(&mut self) {
        self.due += 1;
    }

    /// Whether the next word is to begin now, beside so many that run.
    pub fn begins(&self, running: usize) -> bool {
        self.due > 0 && self.has_more(running)
    }

    /// The next word.
    pub fn next(&mut self) -> Option<Value> {
        (self.due, self.left) = (self.due.checked_sub(1)?, self.left.checked_sub(1)?);
        self.items.next_round()
    }

    /// Whether one more could run.
    pub fn has_more(&self, running: usize) -> bool {
        !self.decided
            && self.left > 0
            && (running as u64) < self.at_most
            && self.outputs.as_ref().is_none_or(|outputs| outputs.has_room())
    }

    /// A word's branch begins.
    pub fn began(&mut self, task: TaskId, word: Value, held: Option<Held>, now: Time) {
        self.alive.insert(task);
        let place = self.total() - self.left - 1;
        self.begun.insert(task, (place, word, now));
        if let (Some(outputs), Some(held)) = (&mut self.outputs, held) {
            outputs.begin(task, held, String::new());
        }
    }

    /// The word of a branch that has not ended.
    pub fn word(&self, task: TaskId) -> Option<&Value> {
        self.begun.get(&task).map(|(_, word, _)| word)
    }

    /// A branch has ended: which one it was, its word, and when it began.
    pub fn forget(&mut self, task: TaskId) -> Option<(u64, Value, Time)> {
        self.begun.remove(&task)
    }

    /// A branch is ending; only the first word on it counts. Says whether that decides it, so that the
    /// others are to be ended.
    pub fn ends(&mut self, task: TaskId, result: Result<TaskResidue, Thrown>) -> bool {
        if !self.alive.remove(&task) || self.decided {
            return false;
        }
        self.decided = match &result {
            Ok(_) => true,
            Err(thrown) => thrown.retry.is_for_the_try(),
        };
        if let Some(outputs) = &mut self.outputs
            && result.is_ok()
        {
            outputs.end(task);
        }
        self.due += 1;
        self.result = Some(result);
        self.decided
    }

    /// It fails, whatever becomes of the branches.
    pub fn fail(&mut self, thrown: Thrown) {
        (self.decided, self.result) = (true, Some(Err(thrown)));
    }

    /// How it ended; none if no word ever did.
    pub fn result(self) -> Option<Result<TaskResidue, Thrown>> {
        self.result
    }
}
