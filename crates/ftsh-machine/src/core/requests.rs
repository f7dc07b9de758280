//! Requests to the driver, and the tasks waiting for their results.

use std::collections::{BTreeMap, VecDeque};

use super::flow::{Flow, begin_word_call};
use crate::effect::{Effect, OperationId, ProcessId, Query, TaskId};
use crate::program::Instruction;
use crate::resources::{Released, Resource, ResourceHandle};
use crate::tasks::{Task, TaskState};
use crate::values::{Number, Suspend};
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
    /// Returns an id unique in the run.
    pub(crate) fn next_id(&mut self) -> u64 {
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

    /// Creates an id wrapped in a handle, which releases the resource with its last clone.
    pub(crate) fn new_handle<Id: Copy>(&mut self, id: impl FnOnce(u64) -> Id) -> ResourceHandle<Id>
    where
        Resource: From<Id>,
    {
        let id = id(self.next_id());
        self.handle(id)
    }

    /// Adds an effect after all earlier ones.
    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
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

    /// Creates an operation for which a task waits.
    pub(crate) fn new_operation(&mut self, task: &Task) -> OperationId {
        let operation = OperationId(self.next_id());
        self.operations.insert(operation, task.id);
        operation
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

    /// Ends the wait for an unfinished operation.
    pub(crate) fn abandon(&mut self, operation: OperationId) {
        self.operations.remove(&operation);
        self.effects.push_back(Effect::Abandon(operation));
    }

    /// Returns the number of operations that tasks wait for.
    pub(crate) fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Creates a process for which a task waits.
    pub(crate) fn new_process(&mut self, task: TaskId) -> ProcessId {
        let process = ProcessId(self.next_id());
        self.processes.insert(process, task);
        process
    }

    /// Returns the task that waits for a process.
    pub(crate) fn awaits_process(&self, process: ProcessId) -> Option<TaskId> {
        self.processes.get(&process).copied()
    }

    /// Ends the wait for a process. Returns the task that waited.
    pub(crate) fn end_process(&mut self, process: ProcessId) -> Option<TaskId> {
        self.processes.remove(&process)
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

    /// Queues a query for a task, in the task's directory.
    pub(crate) fn query(&mut self, task: &Task, query: Query) -> OperationId {
        let operation = self.new_operation(task);
        let directory = task.directory.clone();
        self.effects.push_back(Effect::Query { operation, directory, query });
        operation
    }

    /// Queues the query or begins the call that a suspended instruction needs, or makes the
    /// instruction fail.
    pub(crate) fn suspend(&mut self, task: &mut Task, suspend: Suspend) -> Flow {
        match suspend {
            Suspend::Call(start) => begin_word_call(task, start),
            Suspend::Pending(query) => {
                Flow::Wait(TaskState::Query(self.query(task, query.clone()), query))
            }
            Suspend::Broken(what) => Flow::Throw(task.broken(what)),
            Suspend::Failed(kind, slug, message) => {
                let slug = operand_slug(task, slug);
                Flow::Throw(task.thrown(kind, kind.code(), message, "").named(slug))
            }
        }
    }
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
    use crate::effect::{BufferId, ScopeId};

    #[test]
    fn a_task_waits_until_its_requests_end() {
        let mut requests = Requests::default();
        let process = requests.new_process(TaskId(1));
        assert_eq!(requests.awaits_process(process), Some(TaskId(1)));
        assert_eq!(requests.end_process(process), Some(TaskId(1)));
        assert_eq!(requests.end_process(process), None);
        requests.await_operation(OperationId(7), TaskId(2));
        assert_eq!((requests.operations(), requests.processes()), (1, 0));
        requests.abandon(OperationId(7));
        assert_eq!(requests.awaits_operation(OperationId(7)), None);
        assert!(matches!(requests.next(), Some(Effect::Abandon(OperationId(7)))));
    }

    #[test]
    fn released_resources_come_last_unless_they_are_flushed() {
        let mut requests = Requests::default();
        let kept = requests.handle(BufferId(1));
        drop(requests.handle(BufferId(2)));
        requests.push(Effect::Terminate(ScopeId(3)));
        assert!(matches!(requests.next(), Some(Effect::Terminate(_))));
        assert!(matches!(requests.next(), Some(Effect::DropBuffer(BufferId(2)))));
        assert!(requests.next().is_none());
        drop(kept);
        assert!(requests.is_empty());
        requests.flush_released();
        requests.push(Effect::Terminate(ScopeId(3)));
        assert!(matches!(requests.next(), Some(Effect::DropBuffer(BufferId(1)))));
    }
}
