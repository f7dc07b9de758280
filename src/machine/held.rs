//! Output that is held: what branches print is kept apart, and let out whole, one after the other.

use std::collections::BTreeMap;

use super::effect::{BufferId, ProcessId, TaskId};
use super::value::Handle;

/// So many branches have output that is held, at most: those that run, and those whose turn hasn't come.
pub const MOST_HELD: usize = 256;

/// What a branch prints, until it is let out or dropped.
#[derive(Debug)]
pub struct Held {
    /// What goes to descriptor 1.
    pub output: Handle<BufferId>,
    /// What goes to descriptor 2.
    pub errors: Handle<BufferId>,
}

/// What is written on: a buffer to a descriptor.
#[derive(Debug)]
pub struct LettingOut {
    /// What does it.
    pub process: ProcessId,
    /// Of what.
    pub held: Held,
    /// Whether it is what went to descriptor 2.
    pub errors: bool,
}

/// What the branches of a `forall` print, each by itself.
#[derive(Debug)]
pub struct Outputs {
    /// Whether it comes out in the order of the words, not in that of ending.
    in_order: bool,
    /// Of the branches that run, each with its place among all.
    open: BTreeMap<TaskId, (u64, Held)>,
    begun: u64,
    /// Of those that ended, by their turns.
    ended: BTreeMap<u64, Held>,
    turn: u64,
    /// How many have ended.
    count: u64,
    /// What is being let out.
    pub letting_out: Option<LettingOut>,
    /// Whether it can't be written any more.
    refused: bool,
}

impl Outputs {
    /// None yet.
    pub fn new(in_order: bool) -> Self {
        Self {
            in_order,
            open: BTreeMap::new(),
            begun: 0,
            ended: BTreeMap::new(),
            turn: 0,
            count: 0,
            letting_out: None,
            refused: false,
        }
    }

    /// A branch begins.
    pub fn begin(&mut self, task: TaskId, held: Held) {
        self.open.insert(task, (self.begun, held));
        self.begun += 1;
    }

    /// A branch ended.
    pub fn end(&mut self, task: TaskId) {
        let Some((place, held)) = self.open.remove(&task) else { return };
        if !self.refused {
            self.ended.insert(if self.in_order { place } else { self.count }, held);
        }
        self.count += 1;
    }

    /// What a branch has printed is not wanted.
    pub fn forget(&mut self, task: TaskId) {
        self.open.remove(&task);
    }

    /// Whether there is room for what one more branch prints.
    pub fn has_room(&self) -> bool {
        self.open.len() + self.ended.len() < MOST_HELD
    }

    /// What comes next, if nothing is being let out.
    pub fn next(&mut self) -> Option<Held> {
        if self.letting_out.is_some() {
            return None;
        }
        let held = self.ended.remove(&self.turn)?;
        self.turn += 1;
        Some(held)
    }

    /// Whether all that ended is let out.
    pub fn is_done(&self) -> bool {
        self.letting_out.is_none() && self.ended.is_empty()
    }

    /// What is being let out.
    pub fn process(&self) -> Option<ProcessId> {
        self.letting_out.as_ref().map(|letting| letting.process)
    }

    /// It can't be written any more.
    pub fn refuse(&mut self) {
        self.refused = true;
        (self.letting_out, self.ended) = (None, BTreeMap::new());
    }
}
