//! The tasks of a run, except the one being executed.

use std::collections::BTreeMap;

use super::task::Task;
use crate::MAIN;
use crate::effect::TaskId;

/// Tasks by id. A task is taken out while it is executed, and put back afterwards.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: BTreeMap<TaskId, Box<Task>>,
}

impl Tasks {
    /// Returns a task by id.
    pub(crate) fn get(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(AsRef::as_ref)
    }

    /// Returns a task by id, mutable.
    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(&id).map(AsMut::as_mut)
    }

    /// Returns the script's own task.
    pub(crate) fn main(&self) -> Option<&Task> {
        self.get(MAIN)
    }

    /// Takes a task out.
    pub(crate) fn take(&mut self, id: TaskId) -> Option<Box<Task>> {
        self.tasks.remove(&id)
    }

    /// Puts a task in, or back.
    pub(crate) fn put(&mut self, task: Box<Task>) {
        self.tasks.insert(task.id, task);
    }

    /// Returns the number of tasks.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the ids. A parent precedes its children.
    pub(crate) fn ids(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// Iterates over all tasks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(AsRef::as_ref)
    }

    /// Returns the task that waits for a task.
    pub(crate) fn parent(&self, task: &Task) -> Option<&Task> {
        self.get(task.parent?.0)
    }

    /// Iterates over a task and the tasks waiting for it, from the inside out.
    pub(crate) fn and_around<'t>(&'t self, task: &'t Task) -> impl Iterator<Item = &'t Task> {
        std::iter::successors(Some(task), |task| self.parent(task))
    }
}
