//! The tasks of a run, except the one being executed.

use std::collections::BTreeMap;

use crate::MAIN;
use crate::effect::TaskId;
use crate::tasks::task::Task;

/// Tasks by id. A task is taken out while it is executed, and put back afterwards.
#[derive(Debug, Default)]
pub struct Tasks {
    tasks: BTreeMap<TaskId, Box<Task>>,
}

impl Tasks {
    /// Returns a task by id.
    pub fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(AsRef::as_ref)
    }

    /// Returns a task by id, mutable.
    pub fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(&id).map(AsMut::as_mut)
    }

    /// Returns the script's own task.
    pub fn main(&self) -> Option<&Task> {
        self.get(MAIN)
    }

    /// Takes a task out.
    pub fn take(&mut self, id: TaskId) -> Option<Box<Task>> {
        self.tasks.remove(&id)
    }

    /// Puts a task in, or back.
    pub fn put(&mut self, task: Box<Task>) {
        self.tasks.insert(task.id, task);
    }

    /// Returns the number of tasks.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the ids. A parent precedes its children.
    pub fn ids(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// Iterates over all tasks.
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(AsRef::as_ref)
    }

    /// Returns the task that waits for a task.
    pub fn parent(&self, task: &Task) -> Option<&Task> {
        self.get(task.parent?.0)
    }

    /// Iterates over a task and the tasks waiting for it, from the inside out.
    pub fn and_around<'t>(&'t self, task: &'t Task) -> impl Iterator<Item = &'t Task> {
        std::iter::successors(Some(task), |task| self.parent(task))
    }
}
