//! Requests to the driver, and the tasks waiting for their results.

use std::collections::{BTreeMap, VecDeque};

use super::Core;
use super::flow::{Flow, begin_word_call};
use crate::effect::{
    Directory, Effect, FdChange, IoId, OperationId, ProcessId, Query, TaskId, Umask,
};
use crate::invocation::IoTable;
use crate::program::Instruction;
use crate::resources::{Released, Resource, ResourceHandle};
use crate::tasks::{Task, TaskState};
use crate::values::{Number, Suspend};
use ftsh_syntax::ast::Parameter;
use ftsh_syntax::slug::Slug;

/// Effects not yet performed by the driver, and the tasks waiting for the events of earlier
/// effects.
#[derive(Default)]
pub(crate) struct Requests {
    effects: VecDeque<Effect>,
    operations: BTreeMap<OperationId, TaskId>,
    processes: BTreeMap<ProcessId, TaskId>,
    /// Resources of the driver to which nothing in the machine refers any more.
    released: Released,
    /// Number of ids given so far.
    ids: u64,
}

impl Requests {
    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Wraps an id in a handle, which releases the resource with its last clone.
    pub(crate) fn handle<Id: Copy>(&self, id: Id) -> ResourceHandle<Id>
    where
        Resource: From<Id>,
    {
        ResourceHandle::new(id, &self.released)
    }

    /// Takes the next effect. Released resources come last.
    pub(crate) fn next(&mut self) -> Option<Effect> {
        let released = || std::iter::from_fn(|| self.released.pop()).find_map(Resource::dropped);
        self.effects.pop_front().or_else(released)
    }

    /// Returns true if no effect waits for the driver, apart from released resources.
    pub(crate) fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Returns true if only log records wait for the driver.
    pub(crate) fn only_logs(&self) -> bool {
        self.effects.iter().all(|effect| matches!(effect, Effect::Log(_)))
    }

    /// Returns the number of effects that wait for the driver.
    pub(crate) fn count(&self) -> usize {
        self.effects.len()
    }

    /// Drops the log records added since the number of effects was `before`.
    pub(crate) fn drop_logs_since(&mut self, before: usize) {
        let asked = self.effects.split_off(before);
        self.effects.extend(asked.into_iter().filter(|it| !matches!(it, Effect::Log(_))));
    }

    /// Queues the release of resources before the next effect.
    pub(crate) fn flush_released(&mut self) {
        let released = std::iter::from_fn(|| self.released.pop());
        self.effects.extend(released.filter_map(Resource::dropped));
    }

    /// Makes a task wait for an operation already begun.
    pub(crate) fn await_operation(&mut self, operation: OperationId, task: TaskId) {
        self.operations.insert(operation, task);
    }

    /// Returns the task that waits for an operation.
    pub(crate) fn awaits_operation(&self, operation: OperationId) -> Option<TaskId> {
        self.operations.get(&operation).copied()
    }

    /// Ends the wait for an operation. Returns the task that waited.
    pub(crate) fn end_operation(&mut self, operation: OperationId) -> Option<TaskId> {
        self.operations.remove(&operation)
    }

    /// Returns the number of operations that tasks wait for.
    pub(crate) fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Returns the task that waits for a process.
    pub(crate) fn awaits_process(&self, process: ProcessId) -> Option<TaskId> {
        self.processes.get(&process).copied()
    }

    /// Returns the number of processes that tasks wait for.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Drops the effects whose processes no task awaits.
    pub(crate) fn drop_unawaited(&mut self) {
        let processes = &self.processes;
        self.effects.retain(|effect| match effect {
            Effect::Run(run) | Effect::Exec(run) => processes.contains_key(&run.process),
            Effect::Dispatch(branch) => processes.contains_key(&branch.process),
            _ => true,
        });
    }
}

impl Core {
    /// Returns an id unique in the run.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.requests.next_id()
    }

    /// Creates an id wrapped in a handle, which releases the resource with its last clone.
    pub(crate) fn new_handle<Id: Copy>(&mut self, id: impl FnOnce(u64) -> Id) -> ResourceHandle<Id>
    where
        Resource: From<Id>,
    {
        let id = id(self.next_id());
        self.requests.handle(id)
    }

    /// Requests an effect, after all earlier ones.
    pub(crate) fn request(&mut self, effect: Effect) {
        self.requests.effects.push_back(effect);
    }

    /// Creates an operation for which a task waits.
    pub(crate) fn new_operation(&mut self, task: &Task) -> OperationId {
        let operation = OperationId(self.next_id());
        self.requests.await_operation(operation, task.id);
        operation
    }

    /// Ends the wait for an unfinished operation.
    pub(crate) fn abandon(&mut self, operation: OperationId) {
        self.requests.operations.remove(&operation);
        self.request(Effect::Abandon(operation));
    }

    /// Creates a process for which a task waits.
    pub(crate) fn new_process(&mut self, task: &Task) -> ProcessId {
        let process = ProcessId(self.next_id());
        self.requests.processes.insert(process, task.id);
        process
    }

    /// Ends the wait for a process. Returns the task that waited.
    pub(crate) fn end_process(&mut self, process: ProcessId) -> Option<TaskId> {
        self.requests.processes.remove(&process)
    }

    /// Requests the answer to a query, in the task's directory.
    pub(crate) fn query(&mut self, task: &Task, query: Query) -> OperationId {
        let operation = self.new_operation(task);
        let directory = task.directory.clone();
        self.request(Effect::Query { operation, directory, query });
        operation
    }

    /// Requests a table of descriptors like `base` with changes, in the task's directory.
    pub(crate) fn open_io(
        &mut self,
        base: &IoTable,
        task: &Task,
        changes: Vec<FdChange>,
    ) -> (OperationId, IoTable) {
        self.open_io_in((task.directory.clone(), task.umask), base, task, changes)
    }

    /// Requests a table like `open_io`, with another directory and umask.
    pub(crate) fn open_io_in(
        &mut self,
        (directory, umask): (Directory, Umask),
        base: &IoTable,
        task: &Task,
        redirects: Vec<FdChange>,
    ) -> (OperationId, IoTable) {
        let operation = self.new_operation(task);
        let io = self.new_handle(IoId);
        let (id, table) = (io.id(), base.changed(io, &redirects));
        let base = base.id();
        self.request(Effect::Open { operation, io: id, base, directory, umask, redirects });
        (operation, table)
    }

    /// Queues the query or begins the call that a suspended instruction needs, or makes the
    /// instruction fail.
    pub(crate) fn suspend(&mut self, task: &mut Task, suspend: Suspend) -> Flow {
        match suspend {
            Suspend::Call(start) => begin_word_call(task, start),
            Suspend::Pending(query) => {
                Flow::Wait(TaskState::Query(self.query(task, query.clone()), query))
            }
            Suspend::Broken(what) => Flow::broken(task, what),
            Suspend::Failed(kind, slug, message) => {
                let slug = operand_slug(task, slug);
                let message = named(task, message);
                Flow::Throw(task.thrown(kind, kind.code(), message, "").named(slug))
            }
        }
    }
}

/// Adds the name of a variable to the message of a failed instruction that begins with its value.
fn named(task: &Task, message: String) -> String {
    let codes = (1..=2).filter_map(|back| task.program.code.get(task.at.checked_sub(back)?));
    let variables = codes.filter_map(|code| match code {
        Instruction::Operand(word) | Instruction::Argument(word) => word.variable(),
        _ => None,
    });
    for variable in variables {
        if let Parameter::Named(name) = &variable.parameter
            && variable.index.is_none()
            && let Some(variable) = task.variables.get(name)
            && let Some(value) = variable.value.brief()
            && message.starts_with(&format!("`{value}` is n"))
        {
            let advice = message.replace(&format!("`{value} !="), &format!("`${name} !="));
            return format!("`${name}`: {advice}");
        }
    }
    message
}

/// Returns the slug of a failed instruction: an operand without a numeric value has a slug of its
/// own if it is a literal.
fn operand_slug(task: &Task, slug: Slug) -> Slug {
    // The right operand, or the left one before a single instruction.
    let is_wrong = |back: usize| {
        let at = task.at.checked_sub(back);
        at.is_some_and(|at| match &task.program.code[at] {
            Instruction::Push(value) => Number::of(value).is_err(),
            _ => false,
        })
    };
    if slug == Slug::NotANumber && (is_wrong(1) || is_wrong(2)) { Slug::TextOperand } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::effect::{BufferId, ScopeId};

    #[test]
    fn a_task_waits_until_its_requests_end() {
        let mut core = Core::new(Config::default(), Requests::default(), Vec::new());
        let process = ProcessId(core.next_id());
        core.requests.processes.insert(process, TaskId(1));
        assert_eq!(core.requests.awaits_process(process), Some(TaskId(1)));
        assert_eq!(core.end_process(process), Some(TaskId(1)));
        assert_eq!(core.end_process(process), None);
        core.requests.await_operation(OperationId(7), TaskId(2));
        assert_eq!((core.requests.operations(), core.requests.processes()), (1, 0));
        core.abandon(OperationId(7));
        assert_eq!(core.requests.awaits_operation(OperationId(7)), None);
        assert!(matches!(core.requests.next(), Some(Effect::Abandon(OperationId(7)))));
    }

    #[test]
    fn released_resources_come_last_unless_they_are_flushed() {
        let mut core = Core::new(Config::default(), Requests::default(), Vec::new());
        let kept = core.new_handle(BufferId);
        drop(core.new_handle(BufferId));
        core.request(Effect::Terminate(ScopeId(3)));
        assert!(matches!(core.requests.next(), Some(Effect::Terminate(_))));
        assert!(matches!(core.requests.next(), Some(Effect::DropBuffer(BufferId(2)))));
        assert!(core.requests.next().is_none());
        drop(kept);
        assert!(core.requests.is_empty());
        core.requests.flush_released();
        core.request(Effect::Terminate(ScopeId(3)));
        assert!(matches!(core.requests.next(), Some(Effect::DropBuffer(BufferId(1)))));
    }
}
