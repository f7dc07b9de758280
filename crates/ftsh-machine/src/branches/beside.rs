//! State of a `with`: the group and the command beside it.

use std::collections::BTreeSet;

use crate::effect::TaskId;
use crate::endings::{Continuation, TaskEnding, TaskResidue};
use crate::program::Address;
use crate::scheduler::TimerKey;
use crate::time::Time;
use crate::values::Value;

/// A `with`. The group begins once the command runs.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Text of the command.
    pub name: Value,
    /// Address of the group.
    pub body: Address,
    /// Task of the command.
    pub companion: TaskId,
    /// Start of the command.
    pub started: Time,
    /// Number of stages of the command.
    stages: usize,
    /// Stages that run a program, have waited for time or have ended.
    begun: BTreeSet<usize>,
    /// Timer for the start of the group; `None` once the group has begun.
    pub timer: Option<TimerKey>,
    /// Jump that left the group, with which the task continues.
    pub leaves: Option<Continuation>,
    /// State that the group leaves, also when it fails or is canceled.
    pub residue: Option<TaskResidue>,
    /// Task that ended first, with its end.
    result: Option<(TaskId, TaskEnding)>,
}

impl Beside {
    /// Creates the state before the group begins.
    pub(crate) fn new(
        (name, stages): (Value, usize),
        body: Address,
        (companion, started): (TaskId, Time),
        timer: TimerKey,
    ) -> Self {
        Self {
            name,
            body,
            companion,
            started,
            stages,
            begun: BTreeSet::new(),
            timer: Some(timer),
            leaves: None,
            residue: None,
            result: None,
        }
    }

    /// Records that a stage of the command runs. Returns true if the group begins.
    pub(crate) fn stage_began(&mut self, stage: usize) -> bool {
        self.begun.insert(stage);
        self.begun.len() >= self.stages
    }

    /// Returns true for the command if it is a pipeline.
    pub(crate) fn is_pipeline(&self, task: TaskId) -> bool {
        self.stages > 1 && task == self.companion
    }

    /// Returns true before the first end.
    pub(crate) fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// Keeps the state of an ended task if it is the group.
    pub(crate) fn keep_residue(&mut self, task: TaskId, residue: TaskResidue) {
        if task != self.companion {
            self.residue = Some(residue);
        }
    }

    /// Records the end of a task; only the first end counts. Returns the reason for ending the other
    /// task.
    pub(crate) fn record_result(
        &mut self,
        task: TaskId,
        ending: TaskEnding,
    ) -> Option<&'static str> {
        if !self.is_open() {
            return None;
        }
        self.result = Some((task, ending));
        Some(if task == self.companion { "the command of `with` ended" } else { "the group ended" })
    }

    /// Returns the first end, and true if the command has ended first.
    pub(crate) fn result(self) -> Option<(bool, TaskEnding)> {
        self.result.map(|(task, ending)| (task == self.companion, ending))
    }
}
