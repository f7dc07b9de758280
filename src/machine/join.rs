//! Tasks side by side: the branches of a `forall` or a hedged `forany`, and the stages of a pipeline.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Machine;
use super::code::{Address, Loop};
use super::effect::{Effect, FdChange, FdSource, IoId, PipeId, ScopeId, TaskId};
use super::ending::{Ending, Left, Thrown};
use super::flow::{Flow, Step};
use super::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use super::halt::Halt;
use super::held::{Held, Outputs};
use super::loops::pop_items;
use super::opening::{Phase, Redirects};
use super::outcome::{Failure, FailureKind};
use super::record::{Level, LogEvent, Record};
use super::tally::{Failed, Tally};
use super::task::{AfterEmptied, State, Task};
use super::timer::TimerKey;
use super::value::{Handle, Value};
use crate::syntax::clauses::{ForAllClauses, Output};

/// What is wrong where the innermost structure isn't the one whose tasks end.
const NO_JOIN: &str = "the innermost structure has no tasks";

/// How a branch fails that is cancelled.
const CANCELLED: Option<(FailureKind, i32)> = Some((FailureKind::Cancelled, 1));

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
        let Some(io) = task.opened.take() else { return Ok(self.open_for_branches(task)) };
        task.turn(clauses.values());
        let ForAllClauses { at_most, at_least, output, keep_going } =
            clauses.try_map(task, |task, ()| task.pop()?.integer().map_err(Halt::expression))?;
        let at_most = positive(at_most, "forall can't run at most")?;
        let at_least = positive(at_least, "forall can't have the success of at least")?;
        let clauses = ForAllClauses { at_most, at_least, output, keep_going };
        let outputs = output.map(|Output::Grouped { in_order }| Box::new(Outputs::new(in_order)));
        let mut tally = Box::new(Tally::new(pop_items(task, code.items), self.now));
        tally.decide(&clauses);
        let kind = JoinKind::Branches { code: Arc::clone(code), clauses, io, tally, outputs };
        task.enter(FrameKind::Join(Box::new(JoinFrame {
            end: code.end,
            running: BTreeSet::new(),
            kind,
        })));
        Ok(Flow::Fork)
    }

    /// Opens the descriptors that all branches share. They would fight for the standard input, so that
    /// they read nothing, unless redirected.
    pub(super) fn open_for_branches(&mut self, task: &mut Task) -> Flow {
        let null = FdChange { descriptor: 0, source: FdSource::Null };
        self.open(task, Phase { changes: vec![null], written: None })
    }

    /// Starts some of the branches that may run; a list can be too long to start all at once.
    pub(super) fn more_branches(&mut self, task: &mut Task) -> Flow {
        if let Some(JoinKind::Hedge(_)) = top_join(task).map(|it| &it.kind) {
            return self.more_hedges(task);
        }
        self.more_output(task);
        for _ in 0..BATCH {
            self.budget = self.budget.saturating_sub(1);
            if let Some(flow) = self.crowded(task) {
                return flow;
            }
            let Some((code, value, io)) = next_branch(task) else { return Self::joined(task) };
            let word = value.clone();
            let now = self.now;
            let (branch, held) = self.begin_branch(task, "forall", &code, value, io);
            if let Some(JoinKind::Branches { tally, outputs, .. }) =
                top_join(task).map(|it| &mut it.kind)
            {
                tally.began(branch, word, now);
                outputs.iter_mut().zip(held).for_each(|(it, held)| it.begin(branch, held));
            }
        }
        Flow::Fork
    }

    /// What becomes of a task that can't start a branch more, because there are so many.
    pub(super) fn crowded(&mut self, task: &mut Task) -> Option<Flow> {
        if self.tasks.len() < MANY_BRANCHES {
            return None;
        }
        if !top_join(task)?.running.is_empty() {
            return Some(Flow::Wait(State::Children));
        }
        // Nothing of its own will make room.
        if self.tasks.len() < MOST_BRANCHES {
            return None;
        }
        self.leave(task);
        let message = format!("there are {MOST_BRANCHES} branches already");
        Some(Flow::Throw(task.thrown(FailureKind::Failure, 1, message, "")))
    }

    /// Starts a branch, and says where what it prints is held, if it is.
    pub(super) fn begin_branch(
        &mut self,
        task: &mut Task,
        keyword: &'static str,
        code: &Loop,
        word: Value,
        io: Handle<IoId>,
    ) -> (TaskId, Option<Held>) {
        let scope = self.new_scope(Some(task.scope));
        let mut branch = self.fork(task, 0, code.body, io, scope);
        self.iterate(&mut branch, keyword, code, word);
        let held = self.hold_output(task, &mut branch);
        let id = branch.id;
        if let Some(join) = top_join(task) {
            join.running.insert(id);
        }
        if let State::Ready = branch.state {
            self.ready.push_back(id);
        }
        self.tasks.insert(id, branch);
        (id, held)
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

    fn fork(
        &mut self,
        task: &mut Task,
        index: usize,
        at: Address,
        io: Handle<IoId>,
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
            attempts: 0,
            answers: Vec::new(),
            expanded: None,
            redirects: Redirects::default(),
            opened: None,
            cleaning: Vec::new(),
            replacing: None,
            locals: Vec::new(),
        })
    }

    /// A task ended that `parent` waits for. What a stage did to variables is the script's.
    pub(super) fn child_ended(
        &mut self,
        (parent, index): (TaskId, usize),
        (child, attempts): (TaskId, u64),
        ending: Ending,
        left: Left,
    ) {
        let mut decided = None;
        self.resume(parent, |machine, task| {
            let is_doomed = matches!(task.state, State::Doomed);
            let Some(join) = top_join(task) else { return Flow::Throw(task.broken(NO_JOIN)) };
            join.running.remove(&child);
            if is_doomed {
                // What it has set is lost, as of those that had nothing to clean up.
                let is_last = join.running.is_empty();
                machine.branch_ended(task, (child, attempts), CANCELLED);
                return if is_last { machine.clean(task) } else { Flow::Wait(State::Doomed) };
            }
            match &mut join.kind {
                JoinKind::Stages(endings) => {
                    let Some(slot) = endings.get_mut(index) else {
                        return Flow::Throw(task.broken("a stage more than there are"));
                    };
                    *slot = Some(ending);
                    Self::absorb(task, left);
                    Self::joined(task)
                }
                JoinKind::Branches { code, clauses, tally, outputs, .. } => {
                    if let Some(outputs) = outputs {
                        outputs.end(child);
                    }
                    let secrets = &machine.config.secrets;
                    if tally.ends(child, &ending, &code.variable, clauses, secrets) {
                        decided = Some(reason(&ending));
                    }
                    machine.branch_ended(task, (child, attempts), ending.failure());
                    fork_again(task)
                }
                JoinKind::Hedge(_) => {
                    decided = machine.hedge_ended(task, child, &ending, left);
                    fork_again(task)
                }
            }
        });
        if let Some(why) = decided {
            self.cancel_children(parent, why);
        }
    }

    /// A branch of a task has ended, and nothing is left of it, or soon will be: the log tells how.
    pub(super) fn branch_ended(
        &mut self,
        task: &mut Task,
        (branch, attempts): (TaskId, u64),
        failure: Option<(FailureKind, i32)>,
    ) {
        let now = self.now;
        let Some(JoinKind::Branches { code, tally, .. }) = top_join(task).map(|it| &mut it.kind)
        else {
            return;
        };
        let Some((place, word, started)) = tally.forget(branch) else { return };
        if self.config.log_level < Level::STRUCTURES {
            return;
        }
        let event = LogEvent::BranchEnded {
            name: code.variable.to_string(),
            word: word.text().unwrap_or_default().to_string(),
            place,
            failure,
            attempts,
            elapsed: now - started,
        };
        let record = Record { task: Some(branch), ..self.record(task, task.line(), event) };
        self.effects.push_back(Effect::Log(record));
    }

    /// A branch is failing: that may take its siblings along.
    pub(super) fn branch_failing(&mut self, parent: TaskId, child: TaskId, ending: &Ending) {
        let Some(task) = self.tasks.get_mut(&parent) else { return };
        let decided = match top_join(task).map(|join| &mut join.kind) {
            Some(JoinKind::Hedge(_)) => return self.hedge_failing(parent, child, ending),
            Some(JoinKind::Branches { code, clauses, tally, .. }) => {
                tally.ends(child, ending, &code.variable, clauses, &self.config.secrets)
            }
            Some(JoinKind::Stages(_)) | None => {
                return self.resume(parent, |_, task| Flow::Throw(task.broken(NO_JOIN)));
            }
        };
        if decided {
            self.cancel_children(parent, reason(ending));
        }
    }

    /// What another task did to variables is done here; a call around both ends what is `local`.
    fn absorb(task: &mut Task, left: Left) {
        for name in &left.locals {
            Self::local(task, name);
        }
        task.variables.absorb(left.variables);
    }

    /// Goes on if all have ended.
    pub(super) fn joined(task: &mut Task) -> Flow {
        if top_join(task).is_some_and(|join| !join.is_done()) {
            return Flow::Wait(State::Children);
        }
        let Some(Frame { height, kind: FrameKind::Join(join) }) = task.frames.pop() else {
            return Flow::Throw(task.broken(NO_JOIN));
        };
        task.stack.truncate(height);
        let failed = match join.kind {
            JoinKind::Branches { clauses, tally, .. } => {
                if let Some(failed) = tally.result(&clauses) {
                    return Flow::Throw(branches_failed(task, failed));
                }
                None
            }
            JoinKind::Hedge(hedge) => match hedge.result() {
                Some(Ok(mut left)) => {
                    task.args = std::mem::take(&mut left.args);
                    task.directory = left.directory.take();
                    Self::absorb(task, left);
                    None
                }
                Some(Err(thrown)) => return Flow::Throw(thrown),
                None => return Flow::Throw(task.broken("a hedged `forany` ends without a word")),
            },
            JoinKind::Stages(endings) => failed_stage(endings),
        };
        match failed {
            Some(Ending::Failed(thrown)) => Flow::Throw(thrown),
            Some(Ending::Exited(code)) => Flow::Throw(exited(task, code)),
            Some(Ending::Succeeded) | None => {
                task.jump(join.end);
                Flow::Continue
            }
        }
    }
}

/// What becomes of a branch that is dropped: one that only waits for the end of what it started keeps
/// its ending.
pub fn cut_short(branch: &Task) -> Option<(FailureKind, i32)> {
    match &branch.state {
        State::Emptying(_, AfterEmptied::End(ending)) => ending.failure(),
        _ => CANCELLED,
    }
}

/// The tasks that a task waits for.
pub fn children(task: &Task) -> Vec<TaskId> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => join.running.iter().copied().collect(),
        _ => Vec::new(),
    }
}

impl JoinFrame {
    /// Whether nothing is left to wait for.
    fn is_done(&self) -> bool {
        self.running.is_empty() && self.kind.outputs().is_none_or(Outputs::is_done)
    }

    /// What is armed for it alone.
    pub fn timer(&self) -> Option<TimerKey> {
        match &self.kind {
            JoinKind::Hedge(hedge) => hedge.timer,
            JoinKind::Branches { .. } | JoinKind::Stages(_) => None,
        }
    }
}

impl JoinKind {
    /// What its tasks print, if that is held.
    pub fn outputs(&self) -> Option<&Outputs> {
        match self {
            Self::Branches { outputs, .. } => outputs.as_deref(),
            Self::Hedge(hedge) => hedge.outputs.as_deref(),
            Self::Stages(_) => None,
        }
    }
}

/// Has a task that waits for branches look after them.
pub fn fork_again(task: &Task) -> Flow {
    match task.state {
        State::Forking => Flow::Wait(State::Forking),
        _ => Flow::Fork,
    }
}

/// The tasks that the innermost structure waits for, if it does.
pub fn top_join(task: &mut Task) -> Option<&mut JoinFrame> {
    match task.frames.last_mut() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

type Branch = (Arc<Loop>, Value, Handle<IoId>);

fn next_branch(task: &mut Task) -> Option<Branch> {
    let join = top_join(task)?;
    match &mut join.kind {
        JoinKind::Branches { code, clauses, io, tally, outputs }
            if clauses.at_most.is_none_or(|most| (join.running.len() as u64) < most)
                && outputs.as_ref().is_none_or(|outputs| outputs.has_room()) =>
        {
            let value = tally.next()?;
            Some((Arc::clone(code), value, io.clone()))
        }
        _ => None,
    }
}

/// Whether what waits for these tasks may go on when one of them has failed.
pub fn outlives_a_failure(kind: &JoinKind, thrown: &Thrown) -> bool {
    match kind {
        JoinKind::Hedge(hedge) => !thrown.fatal && hedge.outlives_a_failure(),
        JoinKind::Branches { clauses, .. } => clauses.keep_going || clauses.at_least.is_some(),
        JoinKind::Stages(_) => false,
    }
}

/// Why the other branches are ended when one has ended like this.
fn reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Succeeded => "enough branches succeeded",
        Ending::Exited(_) | Ending::Failed(_) => "another branch failed",
    }
}

/// A number in a clause.
pub fn positive(number: Option<i64>, cannot: &str) -> Result<Option<u64>, Halt> {
    let Some(number) = number else { return Ok(None) };
    match u64::try_from(number) {
        Ok(number @ 1..) => Ok(Some(number)),
        _ => Err(Halt::expression(format!("{cannot} {number} branches"))),
    }
}

/// The failure of a `forall`.
fn branches_failed(task: &Task, failed: Failed) -> Thrown {
    let (kind, code) = failed.kind();
    let mut thrown = match (failed.message, failed.first) {
        (Some(message), _) => {
            Thrown { fatal: failed.fatal, ..task.thrown(kind, code, message, "") }
        }
        (None, Some(Ending::Failed(thrown))) => thrown,
        (None, Some(Ending::Exited(code))) => exited(task, code),
        (None, Some(Ending::Succeeded) | None) => task.broken("a `forall` fails for no reason"),
    };
    Arc::make_mut(&mut thrown.failure).branches = Some(failed.branches);
    thrown
}

/// The failure of a branch that said `exit`.
pub fn exited(task: &Task, code: u8) -> Thrown {
    let message = format!("a branch exited with {code}");
    task.thrown(FailureKind::Exit, i32::from(code), message, "exit")
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
