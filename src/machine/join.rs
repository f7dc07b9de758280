//! Tasks side by side: the branches of a `forall` and the stages of a pipeline.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Machine;
use super::code::{Address, Loop};
use super::effect::{PipeId, Plumbing, Port, ScopeId, TaskId};
use super::ending::{Ending, Thrown};
use super::flow::{Flow, Step};
use super::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use super::halt::Halt;
use super::loops::pop_items;
use super::opening::{Phase, Redirects};
use super::outcome::{Failure, FailureKind};
use super::task::{State, Task};
use super::value::{Handle, Value};
use super::variables::Variables;
use crate::syntax::clauses::ForAllClauses;

/// What is wrong where the innermost structure isn't the one whose tasks end.
const NO_JOIN: &str = "the innermost structure has no tasks";

const SIGPIPE: i32 = 13;

/// How many branches start in a row.
const BATCH: usize = 100;

/// A `forall` that has branches starts no more while there are so many tasks: it would take long to
/// end them all when a limit passes.
const MANY_BRANCHES: usize = 50_000;
/// What recursion can have: there each has but one.
const MOST_BRANCHES: usize = 2 * MANY_BRANCHES;

impl Machine {
    /// `forall`: first the descriptors that all branches share, then the branches.
    pub(super) fn for_all(
        &mut self,
        task: &mut Task,
        code: &Arc<Loop>,
        clauses: &ForAllClauses<()>,
    ) -> Step {
        let Some(io) = task.opened.take() else {
            // Branches would fight for the standard input; they read nothing, unless redirected.
            let null = Plumbing { descriptor: 0, port: Port::Null };
            return Ok(self.open(task, Phase { plumbing: vec![null], written: None }));
        };
        task.turn(clauses.values());
        let clauses = clauses.try_map(task, |task, ()| {
            let at_most = task.pop()?.integer().map_err(Halt::expression)?;
            match u64::try_from(at_most) {
                Ok(at_most @ 1..) => Ok(at_most),
                _ => Err(Halt::expression(format!("forall can't run at most {at_most} branches"))),
            }
        })?;
        let items = pop_items(task, code.items);
        let kind = JoinKind::Branches {
            code: Arc::clone(code),
            items,
            next: 0,
            clauses,
            io,
            failed: None,
        };
        task.enter(FrameKind::Join(Box::new(JoinFrame {
            end: code.end,
            running: BTreeSet::new(),
            kind,
        })));
        Ok(Flow::Fork)
    }

    /// Starts some of the branches that may run; a list can be too long to start all at once.
    pub(super) fn more_branches(&mut self, task: &mut Task) -> Flow {
        for _ in 0..BATCH {
            self.budget = self.budget.saturating_sub(1);
            if self.tasks.len() >= MANY_BRANCHES
                && let Some(join) = top_join(task)
            {
                if !join.running.is_empty() {
                    return Flow::Wait(State::Children);
                }
                // Nothing of its own will make room.
                if self.tasks.len() >= MOST_BRANCHES {
                    self.leave(task);
                    let message = format!("there are {MOST_BRANCHES} branches already");
                    return Flow::Throw(task.thrown(FailureKind::Failure, 1, message, ""));
                }
            }
            let Some((code, value, io)) = next_branch(task) else { return Self::joined(task) };
            let scope = self.new_scope(Some(task.scope));
            let mut branch = self.fork(task, 0, code.body, io, scope);
            self.iterate(&mut branch, "forall", &code, value);
            if let Some(join) = top_join(task) {
                join.running.insert(branch.id);
            }
            self.ready.push_back(branch.id);
            self.tasks.insert(branch.id, branch);
        }
        Flow::Fork
    }

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
            let reader = pipe.take().map(Port::PipeReader);
            redirects.extend(reader.map(|port| Plumbing { descriptor: 0, port }));
            if index + 1 < stages.len() {
                let id = PipeId(self.next_id());
                pipe = Some(id);
                redirects.push(Plumbing { descriptor: 1, port: Port::PipeWriter(id) });
                if *errors {
                    redirects.push(Plumbing { descriptor: 2, port: Port::Descriptor(1) });
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
                JoinKind::Branches { .. } => None,
            },
            _ => None,
        }
    }

    fn fork(
        &mut self,
        task: &mut Task,
        index: usize,
        at: Address,
        io: Handle<super::effect::IoId>,
        scope: ScopeId,
    ) -> Box<Task> {
        let id = TaskId(self.next_id());
        Box::new(Task {
            id,
            parent: Some((task.id, index)),
            program: Arc::clone(&task.program),
            at,
            stack: Vec::new(),
            frames: Vec::new(),
            variables: task.variables.fork(),
            args: Arc::clone(&task.args),
            directory: task.directory.clone(),
            io,
            scope,
            inherited: task.bequest(),
            state: State::Ready,
            since: self.now,
            answers: Vec::new(),
            expanded: None,
            redirects: Redirects::default(),
            opened: None,
        })
    }

    /// A task ended that `parent` waits for. What a stage did to variables is the script's.
    pub(super) fn child_ended(
        &mut self,
        (parent, index): (TaskId, usize),
        child: TaskId,
        ending: Ending,
        variables: Variables,
    ) {
        self.resume(parent, |_, task| {
            let Some(join) = top_join(task) else { return Flow::Throw(task.broken(NO_JOIN)) };
            join.running.remove(&child);
            match &mut join.kind {
                JoinKind::Stages(endings) => {
                    let Some(slot) = endings.get_mut(index) else {
                        return Flow::Throw(task.broken("a stage more than there are"));
                    };
                    *slot = Some(ending);
                    task.variables.absorb(variables);
                    Self::joined(task)
                }
                JoinKind::Branches { failed, .. } => {
                    if failed.is_none() && !matches!(ending, Ending::Succeeded) {
                        *failed = Some(ending);
                    }
                    match task.state {
                        State::Forking => Flow::Wait(State::Forking),
                        _ => Flow::Fork,
                    }
                }
            }
        });
    }

    /// A branch is failing: the first one to do so takes its siblings along.
    pub(super) fn branch_failing(&mut self, parent: TaskId, ending: &Ending) {
        let Some(task) = self.tasks.get_mut(&parent) else { return };
        match top_join(task).map(|join| &mut join.kind) {
            Some(JoinKind::Branches { failed: failed @ None, .. }) => {
                *failed = Some(ending.clone());
            }
            // Another one was first.
            Some(JoinKind::Branches { failed: Some(_), .. }) => return,
            Some(JoinKind::Stages(_)) | None => {
                return self.resume(parent, |_, task| Flow::Throw(task.broken(NO_JOIN)));
            }
        }
        self.cancel_children(parent);
    }

    /// Goes on if all have ended.
    fn joined(task: &mut Task) -> Flow {
        if top_join(task).is_some_and(|join| !join.running.is_empty()) {
            return Flow::Wait(State::Children);
        }
        let Some(Frame { height, kind: FrameKind::Join(join) }) = task.frames.pop() else {
            return Flow::Throw(task.broken(NO_JOIN));
        };
        task.stack.truncate(height);
        let failed = match join.kind {
            JoinKind::Branches { failed, .. } => failed,
            JoinKind::Stages(endings) => failed_stage(endings),
        };
        match failed {
            Some(Ending::Failed(thrown)) => Flow::Throw(thrown),
            Some(Ending::Exited(code)) => {
                let message = format!("a branch exited with {code}");
                Flow::Throw(task.thrown(FailureKind::Exit, i32::from(code), message, "exit"))
            }
            Some(Ending::Succeeded) | None => {
                task.jump(join.end);
                Flow::Continue
            }
        }
    }
}

/// The tasks that a task waits for.
pub fn children(task: &Task) -> Vec<TaskId> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => join.running.iter().copied().collect(),
        _ => Vec::new(),
    }
}

fn top_join(task: &mut Task) -> Option<&mut JoinFrame> {
    match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

type Branch = (Arc<Loop>, Value, Handle<super::effect::IoId>);

fn next_branch(task: &mut Task) -> Option<Branch> {
    let join = top_join(task)?;
    match &mut join.kind {
        JoinKind::Branches { code, items, next, clauses, io, failed: None }
            if clauses.at_most.is_none_or(|most| (join.running.len() as u64) < most) =>
        {
            let value = items.next()?;
            *next += 1;
            Some((Arc::clone(code), value, io.clone()))
        }
        _ => None,
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
            JoinKind::Branches { .. } => false,
        },
        _ => false,
    }
}

/// The first stage that failed. One that died writing to a later stage is no failure of its own.
fn failed_stage(endings: Vec<Option<Ending>>) -> Option<Ending> {
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
