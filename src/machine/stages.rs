//! The stages of a pipeline: how they begin, and which of them fails it.

use std::sync::Arc;

use super::Machine;
use super::code::Address;
use super::effect::{FdChange, FdSource, PipeId};
use super::ending::{Ending, Thrown};
use super::flow::Flow;
use super::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use super::outcome::{Failure, FailureKind};
use super::task::{State, Task};

const SIGPIPE: i32 = 13;

impl Machine {
    /// A pipeline: its stages share the scope, and each pair a pipe.
    pub(super) fn pipeline(
        &mut self,
        task: &mut Task,
        stages: &Arc<[(Address, bool)]>,
        end: Address,
    ) -> Flow {
        let endings = stages.iter().map(|_| None).collect();
        let kind = JoinKind::Stages(endings);
        let mut pipe: Option<PipeId> = None;
        let mut children = Vec::with_capacity(stages.len());
        for (index, (address, errors)) in stages.iter().enumerate() {
            let mut redirects = Vec::new();
            let reader = pipe.take().map(FdSource::PipeReader);
            redirects.extend(reader.map(|source| FdChange { descriptor: 0, source }));
            if index + 1 < stages.len() {
                let id = PipeId(self.next_id());
                pipe = Some(id);
                redirects.push(FdChange { descriptor: 1, source: FdSource::PipeWriter(id) });
                if *errors {
                    redirects.push(FdChange { descriptor: 2, source: FdSource::Descriptor(1) });
                }
            }
            let mut stage = self.fork(task, index, *address, task.io.clone(), task.scope);
            let operation = self.new_operation(&stage);
            stage.io = self.open_io(task.io.id(), task, operation, redirects);
            stage.state = State::Piped(operation);
            children.push(stage);
        }
        let running = children.iter().map(|child| child.id).collect();
        task.enter(FrameKind::Join(Box::new(JoinFrame { end, running, kind })));
        self.tasks.extend(children.into_iter().map(|child| (child.id, child)));
        Flow::Wait(State::Children)
    }

    /// The task that waits for a stage of a pipeline, which one it is, and how many there are.
    pub(super) fn parent_of_stage(&self, task: &Task) -> Option<(&Task, usize, usize)> {
        let (parent, index) = task.parent?;
        let parent = self.tasks.get(&parent)?;
        match &parent.frames.last()?.kind {
            FrameKind::Join(join) => match &join.kind {
                JoinKind::Stages(endings) => Some((parent, index, endings.len())),
                JoinKind::Branches { .. } | JoinKind::Hedge(_) => None,
            },
            _ => None,
        }
    }

    /// The first stage that failed. One that died writing to a later stage is no failure of its own.
    pub(super) fn failed_stage(endings: Vec<Option<Ending>>) -> Option<Ending> {
        let last = endings.len() - 1;
        let cut_off = |ending: &Ending| match ending {
            Ending::Failed(Thrown { failure, .. }) => is_cut_off(failure),
            _ => false,
        };
        let mut failed = endings.into_iter().flatten().enumerate().filter(|(index, ending)| {
            !matches!(ending, Ending::Succeeded) && (*index == last || !cut_off(ending))
        });
        failed.next().map(|(_, ending)| ending)
    }
}

/// Whether a command died of writing to something that reads no more.
pub fn is_cut_off(failure: &Failure) -> bool {
    failure.kind == FailureKind::Signal && failure.code == SIGPIPE
}

/// Whether a stage before this one has failed, so that the pipeline fails by that.
pub fn has_failed_before(parent: &Task, index: usize) -> bool {
    match parent.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => match &join.kind {
            JoinKind::Stages(endings) => endings[..index].iter().flatten().any(|ending| {
                matches!(ending, Ending::Exited(_))
                    || matches!(ending, Ending::Failed(thrown) if !is_cut_off(&thrown.failure))
            }),
            JoinKind::Branches { .. } | JoinKind::Hedge(_) => false,
        },
        _ => false,
    }
}
