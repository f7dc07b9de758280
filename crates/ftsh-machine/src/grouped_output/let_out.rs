//! Buffers the output of branches, and writes each group in turn.

use crate::commands::table::Table;
use crate::effect::{
    Action, BufferId, Effect, FdChange, FdSource, IoId, ProcessId, Run, ScopeId, TaskId,
};
use crate::event::{SpawnError, Status};
use crate::grouped_output::GroupedOutput;
use crate::grouped_output::held::{Group, Held, LettingOut, Outputs, Part};
use crate::interface::requests::Requests;
use crate::outcome::FailureKind;
use crate::record::{Level, LogEvent};
use crate::tasks::flow::Flow;
use crate::tasks::frame::{FrameKind, JoinKind};
use crate::tasks::join::top_join;
use crate::tasks::table::Tasks;
use crate::tasks::task::{State, Task};
use crate::unwind::ending::{Retry, Thrown};

/// Reason for canceling branches.
pub const NOT_WRITTEN: &str = "what a branch printed can't be written";

impl Requests {
    /// Buffers the output of a branch, if its loop buffers output.
    pub(crate) fn hold_output(&mut self, task: &mut Task, branch: &mut Task) -> Option<Held> {
        top_join(task)?.kind.outputs()?;
        let (held, changes) = self.hold();
        let operation = self.new_operation(branch);
        branch.io = self.open_io(&branch.io, branch, operation, changes);
        branch.state = State::Piped(operation);
        Some(held)
    }

    /// Creates the buffers for a branch's output, and the changes of descriptors.
    pub(crate) fn hold(&mut self) -> (Held, Vec<FdChange>) {
        let (output, errors) = (BufferId(self.next_id()), BufferId(self.next_id()));
        let changes = [(1, output), (2, errors)]
            .map(|(descriptor, buffer)| FdChange { descriptor, source: FdSource::Hold(buffer) });
        let handle = |buffer| self.handle(buffer);
        (Held { output: handle(output), errors: handle(errors) }, changes.into())
    }
}

impl GroupedOutput<'_> {
    /// Writes the output of ended branches.
    pub(crate) fn more_output(&mut self, task: &mut Task) {
        let Some((io, mut outputs)) = take_outputs(task) else { return };
        self.let_out(task, io.id(), &mut outputs);
        put_outputs(task, outputs);
    }

    /// Continues after a part was written, or failed to be written. Returns true if the loop fails.
    pub(crate) fn output_done(&mut self, task: &mut Task, result: Result<(), Refused>) -> bool {
        let Some((io, mut outputs)) = take_outputs(task) else { return false };
        let written = self.written_on(task, io.id(), &mut outputs, result);
        let over = match written {
            Ok(()) => false,
            Err(refused) => {
                self.log_groups_ended(task, &outputs.tasks());
                outputs.refuse();
                self.output_refused(task, &io, refused)
            }
        };
        put_outputs(task, outputs);
        over
    }

    /// Fails the loop because output cannot be written, unless a `finally` group must continue
    /// anyway. Returns true if the loop fails.
    pub(crate) fn output_refused(&mut self, task: &mut Task, io: &Table, refused: Refused) -> bool {
        let unread = refused.is_unread() && io.has_readers();
        let mut thrown = refused.thrown(task, NOT_WRITTEN);
        if unread && self.core.tasks.outlasts_readers(task) {
            self.core.log_failure(task, &thrown.failure, Level::COMMANDS, false);
            return false;
        }
        if unread {
            thrown.retry = Retry::Unread;
        }
        match top_join(task).map(|it| &mut it.kind) {
            Some(JoinKind::Branches { tally, .. }) => tally.fail(thrown),
            Some(JoinKind::Hedge(hedge)) => hedge.fail(thrown),
            Some(JoinKind::Stages(_)) | None => {}
        }
        true
    }

    /// Writes the output of branches that were cut short, as part of cleaning up. Returns `None`
    /// when finished.
    pub(crate) fn let_out_cut(&mut self, task: &mut Task) -> Option<Flow> {
        top_join(task).filter(|join| join.kind.holds_output())?;
        let scope = task.cleaning.last()?.scope;
        let (io, mut outputs) = take_outputs(task)?;
        if outputs.cut(scope) {
            self.let_out(task, io.id(), &mut outputs);
        }
        put_outputs(task, outputs);
        Some(Flow::Wait(State::Doomed))
    }

    /// Logs that no more output of these branches will be written.
    pub(crate) fn log_groups_ended(&mut self, task: &Task, branches: &[TaskId]) {
        for branch in branches {
            self.core.log(task, || LogEvent::GroupEnded(*branch), Level::ENDING);
        }
    }

    /// Writes the next group, unless a group is being written.
    pub(crate) fn let_out(&mut self, task: &Task, io: IoId, outputs: &mut Outputs) {
        if let Some(group) = outputs.next() {
            let part = group.first();
            outputs.letting_out = Some(self.write_on(task, io, outputs.scope(), group, part));
        }
    }

    /// Writes a part of a group to its original target.
    fn write_on(
        &mut self,
        task: &Task,
        io: IoId,
        scope: Option<ScopeId>,
        group: Group,
        part: Part,
    ) -> LettingOut {
        let scope = scope.unwrap_or(task.scope);
        let from =
            |buffer: BufferId| FdChange { descriptor: 0, source: FdSource::BufferRead(buffer) };
        let process = match part {
            Part::Remark => {
                let action = Action::Print(group.remark().into());
                self.write_to(task, io, scope, action, Vec::new(), 2)
            }
            Part::Output => {
                let redirects = vec![from(group.held.output.id())];
                self.write_to(task, io, scope, Action::Copy, redirects, 1)
            }
            Part::Errors => {
                let redirects = vec![from(group.held.errors.id())];
                self.write_to(task, io, scope, Action::Copy, redirects, 2)
            }
        };
        LettingOut { process, group, part }
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
        let process = self.core.requests.new_process(task.id);
        self.core.requests.push(Effect::Run(Box::new(Run {
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
    pub(crate) fn written_on(
        &mut self,
        task: &Task,
        io: IoId,
        outputs: &mut Outputs,
        result: Result<(), Refused>,
    ) -> Result<(), Refused> {
        result?;
        if let Some(LettingOut { group, part, .. }) = outputs.letting_out.take() {
            match part.next() {
                Some(part) => {
                    let scope = outputs.scope();
                    outputs.letting_out = Some(self.write_on(task, io, scope, group, part));
                }
                None => self.log_groups_ended(task, &[group.task]),
            }
        }
        self.let_out(task, io, outputs);
        Ok(())
    }
}

impl Tasks {
    /// Returns true if a process writes the grouped output of a task's branches.
    pub fn lets_out(&self, task: TaskId, process: ProcessId) -> bool {
        self.get(task).is_some_and(|task| letting_out(task) == Some(process))
    }
}

/// Reasons why buffered output cannot be written.
pub enum Refused {
    /// The reader is gone; the writer was killed by this signal.
    NobodyReads(i32),
    /// An error with a message.
    Error(String),
    /// The shell ended meanwhile.
    Lost,
}

impl Refused {
    /// Converts the result of the writing process.
    pub fn by(result: Result<Status, SpawnError>) -> Result<(), Self> {
        match result {
            Ok(Status::Exited(0)) => Ok(()),
            Ok(Status::Signaled(signal)) => Err(Self::NobodyReads(signal)),
            Ok(_) => Err(Self::Error("how that ended is lost".into())),
            Err(error) => Err(Self::Error(error.message)),
        }
    }

    /// Returns true if only the reader is gone.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::NobodyReads(_))
    }

    /// Creates the failure; `what` describes the action that failed.
    pub fn thrown(self, task: &Task, what: &str) -> Thrown {
        let (kind, code, why) = match self {
            Self::NobodyReads(signal) => (FailureKind::Signal, signal, "nobody reads".into()),
            Self::Error(error) => (FailureKind::Builtin, 1, error),
            Self::Lost => (FailureKind::Lost, 1, "the shell ended meanwhile".into()),
        };
        task.thrown(kind, code, format!("{what}: {why}"), "")
    }
}

/// Returns the process that writes output of a task's branches.
pub fn letting_out(task: &Task) -> Option<ProcessId> {
    match &task.frames.last()?.kind {
        FrameKind::Join(join) => join.kind.outputs()?.process(),
        _ => None,
    }
}

/// Stops writing output of a task's branches. Returns the process that was writing.
pub fn halt_letting_out(task: &mut Task) -> Option<ProcessId> {
    match &mut top_join(task)?.kind {
        JoinKind::Branches { outputs, .. } => outputs.as_mut()?.halt(),
        JoinKind::Hedge(hedge) => hedge.outputs.as_mut()?.halt(),
        JoinKind::Stages(_) => None,
    }
}

/// Takes the buffered output out of the task, together with the table of descriptors.
fn take_outputs(task: &mut Task) -> Option<(Table, Box<Outputs>)> {
    match &mut top_join(task)?.kind {
        JoinKind::Branches { io, outputs, .. } => Some((io.clone(), outputs.take()?)),
        JoinKind::Hedge(hedge) => Some((hedge.io.clone(), hedge.outputs.take()?)),
        JoinKind::Stages(_) => None,
    }
}

/// Puts the buffered output back.
fn put_outputs(task: &mut Task, taken: Box<Outputs>) {
    match top_join(task).map(|it| &mut it.kind) {
        Some(JoinKind::Branches { outputs, .. }) => *outputs = Some(taken),
        Some(JoinKind::Hedge(hedge)) => hedge.outputs = Some(taken),
        Some(JoinKind::Stages(_)) | None => {}
    }
}
