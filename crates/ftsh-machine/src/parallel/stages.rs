//! The stages of a pipeline: their start, and the stage whose failure counts.

use std::sync::Arc;

use super::Forker;
use crate::branches::{JoinFrame, JoinKind};
use crate::core::Flow;
use crate::effect::{FdChange, FdSource, PipeId};
use crate::endings::{EndedStage, TaskEnding, TaskResidue};
use crate::frames::FrameKind;
use crate::program::Address;
use crate::tasks::{Task, TaskState, Tasks};
use ftsh_syntax::ast::Question;

impl Forker<'_> {
    /// Starts a pipeline. The stages share the scope of the task, and neighbors share a pipe.
    pub(crate) fn pipeline(
        &mut self,
        task: &mut Task,
        stages: &Arc<[(Address, bool)]>,
        end: Address,
    ) -> Flow {
        self.core.keep_output(task);
        let kind = JoinKind::Stages(stages.iter().map(|_| None).collect());
        let mut pipe: Option<PipeId> = None;
        let mut children = Vec::with_capacity(stages.len());
        for (index, (address, errors)) in stages.iter().enumerate() {
            let mut redirects = Vec::new();
            let reader = pipe.take().map(FdSource::PipeReader);
            redirects.extend(reader.map(|source| FdChange { descriptor: 0, source }));
            if index + 1 < stages.len() {
                let id = PipeId(self.core.next_id());
                pipe = Some(id);
                redirects.push(FdChange { descriptor: 1, source: FdSource::PipeWriter(id) });
                if *errors {
                    redirects.push(FdChange { descriptor: 2, source: FdSource::Descriptor(1) });
                }
            }
            let mut stage = self.fork(task, index, *address, task.io.clone(), task.scope);
            let operation;
            (operation, stage.io) = self.core.open_io(&task.io, &stage, redirects);
            stage.state = TaskState::Piped(operation);
            children.push(stage);
        }
        let running = children.iter().map(|child| child.id).collect();
        task.enter(FrameKind::Join(Box::new(JoinFrame { end, running, kind })));
        for child in children {
            self.core.parts().tasks.put(child);
        }
        Flow::Wait(TaskState::Children)
    }
}

impl Tasks {
    /// Returns the parent of a task that is a stage of a pipeline.
    pub(crate) fn parent_of_stage(&self, task: &Task) -> Option<&Task> {
        let parent = self.get(task.parent?.0)?;
        match &parent.frames.last()?.kind {
            FrameKind::Join(join) => match &join.kind {
                JoinKind::Stages(_) => Some(parent),
                JoinKind::Branches { .. } | JoinKind::Hedge(_) | JoinKind::Beside(_) => None,
            },
            _ => None,
        }
    }
}

/// Collects the state returned by an ended stage. Variables made `local` in the stage, and its
/// directory, are not returned.
pub(crate) fn stage_ended(task: &Task, ending: TaskEnding, residue: TaskResidue) -> EndedStage {
    let mut changes = residue.variables.into_changes();
    for (name, before) in residue.locals {
        match before {
            Some(change) => changes.insert(name, change),
            None => changes.remove(&name),
        };
    }
    if residue.directory != task.directory {
        changes.retain(|name, _| !matches!(&**name, "PWD" | "OLDPWD"));
    }
    EndedStage { ending, changes }
}

/// Applies the changes of variables by all stages, later stages last. Returns the first failure. A
/// stage whose reader was gone has not failed. In a condition, the answer `false` counts only
/// without other failures. `.yes.` takes the answer from the last stage. A single stage is the group
/// of a `$(…)`, which changes no variables.
pub(crate) fn join_stages(task: &mut Task, stages: Vec<Option<EndedStage>>) -> Option<TaskEnding> {
    let last = stages.len().saturating_sub(1);
    let question = match task.barrier() {
        Some(FrameKind::Probe(question, _)) => Some(*question),
        _ => None,
    };
    let is_negative_answer = |ending: &TaskEnding, question| !matches!(ending, TaskEnding::Failed(thrown) if !thrown.is_negative_answer(question));
    let mut failed: Option<TaskEnding> = None;
    for (index, EndedStage { mut ending, changes }) in stages.into_iter().flatten().enumerate() {
        if last > 0 {
            task.variables.absorb(changes);
        }
        if let TaskEnding::Failed(thrown) = &mut ending
            && question == Some(Question::Yes)
        {
            thrown.answers &= index == last;
        }
        let failed_here = match &ending {
            TaskEnding::Succeeded => false,
            TaskEnding::Exited(_) | TaskEnding::Failed(_) => {
                index == last || !ending.is_broken_pipe()
            }
        };
        let is_first = match &failed {
            Some(before) => question.is_some_and(|question| {
                is_negative_answer(before, question) && !is_negative_answer(&ending, question)
            }),
            None => true,
        };
        if failed_here && is_first {
            failed = Some(ending);
        }
    }
    failed
}
