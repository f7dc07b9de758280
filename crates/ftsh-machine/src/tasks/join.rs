//! Tasks side by side: the branches of a `forall` or a hedged `forany`, and the stages of a pipeline.

use std::sync::Arc;

use crate::Machine;
use crate::commands::table::Table;
use crate::effect::{ScopeId, TaskId};
use crate::grouped_output::held::Outputs;
use crate::grouped_output::relay::Relay;
use crate::outcome::{FailureKind, KindAndCode};
use crate::program::code::Address;
use crate::tasks::flow::Flow;
use crate::tasks::frame::{Frame, FrameKind, JoinFrame, JoinKind};
use crate::tasks::task::{AfterEmptied, State, Task};
use crate::tasks::timer::TimerKey;
use crate::unwind::ending::{Ending, Left, Retry, Thrown};

/// What is wrong where the innermost structure isn't the one whose tasks end.
pub const NO_JOIN: &str = "the innermost structure has no tasks";

impl Machine {
    /// A task beside those of `task`, with a copy of what it has.
    pub(crate) fn fork(
        &mut self,
        task: &mut Task,
        index: usize,
        at: Address,
        io: Table,
        scope: ScopeId,
    ) -> Box<Task> {
        let id = TaskId(self.next_id());
        let sibling = top_join(task).and_then(|join| self.tasks.get(join.running.first()?));
        let inherited = match sibling {
            Some(sibling) => Arc::clone(&sibling.inherited),
            None => Arc::new(self.inherited_from(task)),
        };
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
            umask: task.umask,
            io,
            scope,
            inherited,
            state: State::Ready,
            since: self.now,
            attempts: 0,
            expanded: None,
            progress: None,
            cleaning: Vec::new(),
            locals: Vec::new(),
        })
    }

    /// A task ended that `parent` waits for.
    pub(crate) fn child_ended(
        &mut self,
        (parent, index): (TaskId, usize),
        (child, attempts): (TaskId, u64),
        ending: Ending,
        left: Left,
    ) {
        let mut decided = None;
        self.resume(parent, |machine, task| {
            let is_doomed = matches!(task.state, State::Doomed);
            let is_good = matches!(ending, Ending::Succeeded);
            let step = if is_good { None } else { machine.branch_step(task, child, 0) };
            let Some(join) = top_join(task) else { return Flow::Throw(task.broken(NO_JOIN)) };
            join.running.remove(&child);
            if is_doomed {
                // What it has set is lost, as of those that had nothing to clean up.
                let is_last = join.running.is_empty();
                machine.branch_ended(task, (child, attempts), ending.failure());
                return if is_last { machine.clean(task) } else { Flow::Wait(State::Doomed) };
            }
            if machine.is_lone(parent) {
                machine.branch_ended(task, (child, attempts), ending.failure());
                return machine.lone_ended(task, &ending, attempts);
            }
            match &mut join.kind {
                JoinKind::Stages(_) => {
                    let ended = Self::stage_ended(task, ending, left);
                    let Some(JoinKind::Stages(stages)) = top_join(task).map(|it| &mut it.kind)
                    else {
                        return Flow::Throw(task.broken(NO_JOIN));
                    };
                    match stages.get_mut(index) {
                        Some(slot) => *slot = Some(ended),
                        None => return Flow::Throw(task.broken("a stage more than there are")),
                    }
                    Self::joined(task)
                }
                JoinKind::Branches { clauses, tally, outputs, .. } => {
                    if let Some(outputs) = outputs {
                        outputs.end(child);
                    }
                    if tally.ends(child, &ending, step, clauses) {
                        decided = Some(reason(&ending));
                    }
                    machine.branch_ended(task, (child, attempts), ending.failure());
                    fork_again(task)
                }
                JoinKind::Hedge(_) => {
                    machine.branch_ended(task, (child, attempts), ending.failure());
                    decided = machine.hedge_ended(task, child, &ending, left);
                    fork_again(task)
                }
            }
        });
        if let Some(why) = decided {
            self.cancel_children(parent, why);
        }
    }

    /// What another task did to variables is done here; a call around both ends what is `local`.
    fn absorb(task: &mut Task, left: Left) {
        for (name, made) in left.locals {
            let made = made.or_else(|| task.variables.change(&name));
            Self::local(task, &name, made);
        }
        task.variables.absorb(left.variables.into_changes());
    }

    /// Goes on if all have ended.
    pub(crate) fn joined(task: &mut Task) -> Flow {
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
                    return Flow::Throw(Self::branches_failed(task, failed));
                }
                None
            }
            JoinKind::Hedge(hedge) => match hedge.result() {
                Some(Ok(mut left)) => {
                    task.args = std::mem::take(&mut left.args);
                    task.directory = left.directory.take();
                    task.umask = left.umask;
                    Self::absorb(task, left);
                    None
                }
                Some(Err(thrown)) => return Flow::Throw(thrown),
                None => return Flow::Throw(task.broken("a hedged `forany` ends without a word")),
            },
            JoinKind::Stages(stages) => Self::join_stages(task, stages),
        };
        match failed {
            Some(Ending::Failed(thrown)) => Flow::Throw(thrown),
            Some(Ending::Exited(code)) => Flow::Throw(exited(task, "stage", code)),
            Some(Ending::Succeeded) | None => {
                task.jump(join.end);
                Flow::Continue
            }
        }
    }
}

/// What becomes of a branch that is dropped: one that only waits for the end of what it started keeps
/// its ending.
pub fn cut_short(branch: &Task, why: KindAndCode) -> Option<KindAndCode> {
    match &branch.state {
        State::Emptying(_, AfterEmptied::End(ending)) => ending.failure(),
        _ => Some(why),
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
        self.running.is_empty()
            && self.kind.outputs().is_none_or(Outputs::is_done)
            && self.kind.relay().is_none_or(Relay::is_done)
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
    /// What writes on what its tasks print, if that is tagged.
    pub fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Branches { relay, .. } => relay.as_ref(),
            Self::Hedge(_) | Self::Stages(_) => None,
        }
    }

    /// True if all that its branches print is written, each by itself.
    pub fn is_grouped(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.is_some(),
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

    /// True if branches have printed what is not written yet, and is to be written whatever cuts them off.
    pub fn holds_output(&self) -> bool {
        match self {
            Self::Branches { outputs, .. } => outputs.as_ref().is_some_and(|it| it.is_left()),
            // A word that is cut off has not won.
            Self::Hedge(_) | Self::Stages(_) => false,
        }
    }

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

/// Whether what waits for these tasks may go on when one of them has failed.
pub fn outlives_a_failure(kind: &JoinKind, thrown: &Thrown) -> bool {
    match kind {
        JoinKind::Hedge(hedge) => !thrown.retry.is_for_the_try() && hedge.outlives_a_failure(),
        JoinKind::Branches { clauses, .. } => clauses.is_counted(),
        JoinKind::Stages(_) => false,
    }
}

/// Why the other branches are ended when one has ended like this.
pub fn reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Succeeded => "enough branches succeeded",
        Ending::Failed(Thrown { retry: Retry::Unread, .. }) => "nobody reads what they write",
        Ending::Exited(_) | Ending::Failed(_) => "another branch failed",
    }
}

/// The failure of a branch or a stage, as `what` says, that said `exit`.
pub fn exited(task: &Task, what: &str, code: u8) -> Thrown {
    let message = format!("a {what} exited with {code}");
    task.thrown(FailureKind::Exit, i32::from(code), message, "exit")
}
