//! Buffers the output of branches, and writes each group in turn.

use super::GroupedOutput;
use crate::branches::JoinKind;
use crate::core::Flow;
use crate::effect::{
    Action, BufferId, Effect, FdChange, FdSource, IoId, ProcessId, Run, ScopeId, TaskId,
};
use crate::endings::{Retry, Thrown};
use crate::event::{CommandStatus, Refusal, SpawnError};
use crate::frames::FrameKind;
use crate::invocation::IoTable;
use crate::outcome::FailureKind;
use crate::outputs::{BufferedOutput, Flushing, GroupPart, OutputBuffers, OutputGroup};
use crate::record::{Level, LogEvent};
use crate::tasks::{Task, TaskState, Tasks};
use ftsh_syntax::slug::Slug;

/// Reason for canceling branches.
pub(crate) const NOT_WRITTEN: &str = "the output of a branch cannot be written";

impl GroupedOutput<'_> {
    /// Buffers the output of a branch, if its loop buffers output.
    pub(crate) fn buffer_output(
        &mut self,
        task: &mut Task,
        branch: &mut Task,
    ) -> Option<BufferedOutput> {
        let kind = &task.top_join()?.kind;
        kind.outputs()?;
        let buffers = [self.core.new_handle(BufferId), self.core.new_handle(BufferId)];
        // Where both lead to one file, the first buffer holds both. Standard error comes first only
        // where a failed branch is reported with it, because the exact order is lost then.
        let mut changes = [(1, &buffers[0]), (2, &buffers[1])].map(|(descriptor, buffer)| {
            FdChange { descriptor, source: FdSource::Hold(buffer.id()) }
        });
        if matches!(kind, JoinKind::Hedge(_)) {
            changes.reverse();
        }
        let operation;
        (operation, branch.io) = self.core.open_io(&branch.io, branch, changes.into());
        branch.state = TaskState::Piped(operation);
        let [output, errors] = buffers;
        Some(BufferedOutput { output, errors })
    }

    /// Writes the output of ended branches.
    pub(crate) fn flush_ended(&mut self, task: &mut Task) {
        let Some((io, mut outputs)) = take_buffers(task) else { return };
        self.flush_next(task, io.id(), &mut outputs);
        put_buffers(task, outputs);
    }

    /// Continues after a part was written, or failed to be written. Returns true if the loop fails.
    pub(crate) fn part_flushed(&mut self, task: &mut Task, result: Result<(), WriteError>) -> bool {
        let Some((io, mut outputs)) = take_buffers(task) else { return false };
        let written = self.continue_flush(task, io.id(), &mut outputs, result);
        let over = match written {
            Ok(()) => false,
            Err(refused) => {
                self.log_groups_ended(task, &outputs.tasks());
                outputs.refuse();
                self.write_failed(task, &io, refused)
            }
        };
        put_buffers(task, outputs);
        over
    }

    /// Fails the loop because output cannot be written, unless a `finally` group must continue
    /// anyway. Returns true if the loop fails.
    pub(crate) fn write_failed(
        &mut self,
        task: &mut Task,
        io: &IoTable,
        refused: WriteError,
    ) -> bool {
        let broken_pipe = refused.is_broken_pipe() && io.has_readers();
        let mut thrown = refused.thrown(task, NOT_WRITTEN);
        if broken_pipe && self.core.tasks().continues_without_reader(task) {
            self.core.log_failure(task, &thrown.failure, Level::COMMANDS, false);
            return false;
        }
        if broken_pipe {
            thrown.retry = Retry::BrokenPipe;
        }
        match task.top_join().map(|it| &mut it.kind) {
            Some(JoinKind::Branches { tally, .. }) => tally.fail(thrown),
            Some(JoinKind::Hedge(hedge)) => hedge.fail(thrown),
            Some(JoinKind::Beside(_) | JoinKind::Stages(_)) | None => {}
        }
        true
    }

    /// Writes the output of branches that were cut short, as part of cleaning up. Returns `None`
    /// when finished.
    pub(crate) fn flush_canceled(&mut self, task: &mut Task) -> Option<Flow> {
        task.top_join().filter(|join| join.kind.has_unwritten_output())?;
        let scope = task.cancellations.last()?.scope;
        let (io, mut outputs) = take_buffers(task)?;
        if outputs.cut(scope) {
            self.flush_next(task, io.id(), &mut outputs);
        }
        put_buffers(task, outputs);
        Some(Flow::Wait(TaskState::AwaitingCleanup))
    }

    /// Logs that no more output of these branches will be written.
    pub(crate) fn log_groups_ended(&mut self, task: &Task, branches: &[TaskId]) {
        for branch in branches {
            self.core.log(task, || LogEvent::GroupEnded(*branch), Level::ENDING);
        }
    }

    /// Writes the next group, unless a group is being written.
    pub(crate) fn flush_next(&mut self, task: &Task, io: IoId, outputs: &mut OutputBuffers) {
        if let Some(group) = outputs.next() {
            let part = group.first();
            outputs.flushing = Some(self.flush_part(task, io, outputs.scope(), group, part));
        }
    }

    /// Writes a part of a group to its original target.
    fn flush_part(
        &mut self,
        task: &Task,
        io: IoId,
        scope: Option<ScopeId>,
        group: OutputGroup,
        part: GroupPart,
    ) -> Flushing {
        let scope = scope.unwrap_or(task.scope);
        let from =
            |buffer: BufferId| FdChange { descriptor: 0, source: FdSource::BufferRead(buffer) };
        let process = match part {
            GroupPart::Remark => {
                let action = Action::Print(group.remark().into());
                self.write_to(task, io, scope, action, Vec::new(), 2)
            }
            GroupPart::Output => {
                let redirects = vec![from(group.buffered.output.id())];
                self.write_to(task, io, scope, Action::Copy, redirects, 1)
            }
            GroupPart::Errors => {
                let redirects = vec![from(group.buffered.errors.id())];
                self.write_to(task, io, scope, Action::Copy, redirects, 2)
            }
        };
        Flushing { process, group, part }
    }

    /// Writes the content of a buffer to a descriptor of a table.
    pub(crate) fn copy(
        &mut self,
        task: &Task,
        io: IoId,
        buffer: BufferId,
        descriptor: u8,
    ) -> ProcessId {
        let redirects = vec![FdChange { descriptor: 0, source: FdSource::BufferRead(buffer) }];
        self.write_to(task, io, task.scope, Action::Copy, redirects, descriptor)
    }

    /// Starts a process that writes to a descriptor of a table.
    fn write_to(
        &mut self,
        task: &Task,
        io: IoId,
        scope: ScopeId,
        action: Action,
        mut redirects: Vec<FdChange>,
        descriptor: u8,
    ) -> ProcessId {
        if descriptor != 1 {
            let source = FdSource::Descriptor(descriptor);
            redirects.push(FdChange { descriptor: 1, source });
        }
        self.core.open_scope(scope);
        let process = self.core.new_process(task);
        self.core.request(Effect::Run(Box::new(Run {
            process,
            task: task.id,
            scope,
            action,
            directory: task.directory.clone(),
            umask: task.umask,
            io,
            redirects,
            feeds: 0,
            deadline: self.core.deadline_of(task),
            grace: None,
            line: task.line(),
            is_last: false,
        })));
        process
    }

    /// Continues after a part was written. An error is the reason why writing failed.
    pub(crate) fn continue_flush(
        &mut self,
        task: &Task,
        io: IoId,
        outputs: &mut OutputBuffers,
        result: Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        result?;
        if let Some(Flushing { group, part, .. }) = outputs.flushing.take() {
            match part.next() {
                Some(part) => {
                    let scope = outputs.scope();
                    outputs.flushing = Some(self.flush_part(task, io, scope, group, part));
                }
                None => self.log_groups_ended(task, &[group.task]),
            }
        }
        self.flush_next(task, io, outputs);
        Ok(())
    }
}

impl Tasks {
    /// Returns true if a process writes the grouped output of a task's branches.
    pub(crate) fn is_flushed_by(&self, task: TaskId, process: ProcessId) -> bool {
        self.get(task).is_some_and(|task| flushing(task) == Some(process))
    }
}

/// Reasons why buffered output cannot be written.
pub(crate) enum WriteError {
    /// The reader is gone; the writer was killed by this signal.
    BrokenPipe(i32),
    /// An error.
    Error(Refusal),
    /// The shell ended meanwhile.
    Lost,
}

impl WriteError {
    /// Converts the result of the writing process.
    pub(crate) fn by(result: Result<CommandStatus, SpawnError>) -> Result<(), Self> {
        match result {
            Ok(CommandStatus::Exited(0)) => Ok(()),
            Ok(CommandStatus::Signaled(signal)) => Err(Self::BrokenPipe(signal)),
            Ok(_) => Err(Self::Error(Refusal::new("the exit status of the writer was lost"))),
            Err(SpawnError { message, errno, .. }) => Err(Self::Error(Refusal { message, errno })),
        }
    }

    /// Returns true if only the reader is gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::BrokenPipe(_))
    }

    /// Creates the failure; `what` describes the action that failed.
    pub(crate) fn thrown(self, task: &Task, what: &str) -> Thrown {
        let (kind, code, why) = match self {
            Self::BrokenPipe(signal) => (FailureKind::Signal, signal, "the reader is gone"),
            Self::Lost => (FailureKind::Lost, 1, "the shell ended meanwhile"),
            Self::Error(Refusal { message, errno }) => {
                let message = format!("{what}: {message}");
                let refusal = Refusal { message, errno };
                return task.refused(FailureKind::Builtin, refusal).named(Slug::Output);
            }
        };
        task.thrown(kind, code, format!("{what}: {why}"), "")
    }
}

/// Returns the process that writes output of a task's branches.
pub(crate) fn flushing(task: &Task) -> Option<ProcessId> {
    match &task.frames.last()?.kind {
        FrameKind::Join(join) => join.kind.outputs()?.process(),
        _ => None,
    }
}

/// Stops writing output of a task's branches. Returns the process that was writing.
pub(crate) fn halt_flush(task: &mut Task) -> Option<ProcessId> {
    match &mut task.top_join()?.kind {
        JoinKind::Branches { outputs, .. } => outputs.as_mut()?.halt(),
        JoinKind::Hedge(hedge) => hedge.outputs.as_mut()?.halt(),
        JoinKind::Beside(_) | JoinKind::Stages(_) => None,
    }
}

/// Takes the buffered output out of the task, together with the table of descriptors.
fn take_buffers(task: &mut Task) -> Option<(IoTable, Box<OutputBuffers>)> {
    match &mut task.top_join()?.kind {
        JoinKind::Branches { io, outputs, .. } => Some((io.clone(), outputs.take()?)),
        JoinKind::Hedge(hedge) => Some((hedge.io.clone(), hedge.outputs.take()?)),
        JoinKind::Beside(_) | JoinKind::Stages(_) => None,
    }
}

/// Puts the buffered output back.
fn put_buffers(task: &mut Task, taken: Box<OutputBuffers>) {
    match task.top_join().map(|it| &mut it.kind) {
        Some(JoinKind::Branches { outputs, .. }) => *outputs = Some(taken),
        Some(JoinKind::Hedge(hedge)) => hedge.outputs = Some(taken),
        Some(JoinKind::Beside(_) | JoinKind::Stages(_)) | None => {}
    }
}
