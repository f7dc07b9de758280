//! Snapshot of a run, for status requests and for the status line of a terminal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attempts::{TryFrame, TryPhase};
use crate::branches::{JoinFrame, JoinKind};
use crate::core::Core;
use crate::effect::{ScopeId, TaskId};
use crate::elsewhere::RemoteState;
use crate::frames::{Frame, FrameKind};
use crate::grouped_output::flushing;
use crate::outcome::Failure;
use crate::program::Loop;
use crate::secrets::Secrets;
use crate::tasks::{Task, TaskState};
use crate::time::{Deadline, Time};
use crate::transactions::Committing;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;

/// A snapshot of a run.
#[derive(Debug)]
pub struct Status {
    /// Moment of the snapshot.
    pub now: Time,
    /// Values to hide.
    pub secrets: Secrets,
    /// First tasks, each before the tasks it waits for. The number is limited by the request.
    pub tasks: Vec<TaskStatus>,
    /// Number of the other tasks by script, line and activity. Tasks that only wait for other tasks
    /// are not counted.
    pub more: BTreeMap<(Arc<str>, u32, &'static str), usize>,
}

/// Status of a task.
#[derive(Debug)]
pub struct TaskStatus {
    /// Id of the task.
    pub task: TaskId,
    /// Parent of the task.
    pub parent: Option<TaskId>,
    /// `name=value` of the task's loop, if the task is a branch.
    pub item: Option<String>,
    /// Source text of the script.
    pub source: Arc<Source>,
    /// Current line.
    pub line: u32,
    /// Current activity.
    pub doing: Doing,
    /// Beginning of the activity.
    pub since: Time,
    /// Enclosing tries of the task itself, innermost first.
    pub tries: Vec<TryStatus>,
    /// Deadline of its `finally` group, if the group runs because of a cancellation.
    pub cleaning: Option<Deadline>,
    /// True inside a `finally` group.
    pub in_finally: bool,
}

/// Activity of a task.
#[derive(Debug)]
pub enum Doing {
    /// Executing instructions.
    Computing,
    /// Running a command.
    Command(String),
    /// Waiting for a file system: an opening, a test, a search.
    Files,
    /// Writing the output of a successful atomic attempt.
    Printing,
    /// Executing `sleep`.
    Sleeping {
        /// End of the pause.
        until: Time,
    },
    /// Waiting before the next attempt of the innermost `try`.
    Waiting {
        /// Start of the next attempt.
        until: Time,
    },
    /// Waiting for a turn in a channel.
    Entering(Name),
    /// Waiting for a machine.
    Placing,
    /// Running on a machine.
    Elsewhere(String),
    /// Waiting for the branches of a loop.
    Branches(Box<Branches>),
    /// Waiting for the stages of a pipeline.
    Stages,
    /// Waits for the group of a `with` and the command beside it.
    Beside,
    /// Waiting for the processes of a failed or canceled attempt, branch or script to end.
    Ending,
    /// Waiting for `finally` groups: for a turn to run its own, or for those of other tasks.
    CleaningUp,
}

/// Branches of a loop.
#[derive(Debug)]
pub struct Branches {
    /// Keyword of the loop: `forall`, or `forany` if hedged.
    pub keyword: &'static str,
    /// Variable of the loop.
    pub variable: String,
    /// Total number of branches.
    pub total: u64,
    /// Number of successes that suffice, if not all are needed.
    pub enough: Option<u64>,
    /// Beginning of the loop.
    pub since: Time,
    /// Number of successful branches.
    pub done: u64,
    /// Number of failed branches.
    pub failed: u64,
    /// Number of active branches.
    pub running: u64,
    /// Number of branches waiting before their next attempt.
    pub waiting: u64,
    /// Number of branches waiting for a channel or a machine.
    pub queued: u64,
    /// True if the next branch waits for memory, or for a lower load.
    pub gated: bool,
    /// Earliest next attempt among the waiting branches, with the last failure of its `try`.
    pub next: Option<(Time, Arc<Failure>)>,
    /// True if the result of the loop is decided, and the other branches are being canceled.
    pub ending: bool,
    /// True while the output of a branch is written.
    pub printing: bool,
}

/// Progress of a `try`.
#[derive(Debug)]
pub struct TryStatus {
    /// Script of the `try`.
    pub file: Arc<str>,
    /// Line of the `try`.
    pub line: u32,
    /// Beginning of the `try`.
    pub started: Time,
    /// Number of the current attempt, or of the attempt before the current delay; from 1.
    pub attempt: u64,
    /// True while the condition after a failed attempt is evaluated.
    pub condition: bool,
    /// Scope of the current attempt or condition.
    pub scope: ScopeId,
    /// Maximum number of attempts, if limited.
    pub times: Option<u64>,
    /// Deadline of the `try`, if any.
    pub deadline: Deadline,
    /// Failure of the last failed attempt.
    pub failure: Option<Arc<Failure>>,
    /// True if the deadline applies; false around a `finally` group with its own deadline.
    pub counts: bool,
    /// True if the `try` contains a running `finally` group, which may outlast the deadline.
    pub outlasted: bool,
}

/// Amount of work in progress. After the end of a run, only its own task, its scope and the timer
/// of a deadline may remain. Anything else, or anything that only grows, is a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InProgress {
    /// Number of tasks: the script, branches and stages.
    pub tasks: usize,
    /// Number of commands for which a task waits.
    pub commands: usize,
    /// Number of operations for which a task waits.
    pub operations: usize,
    /// Number of relays of branches' output.
    pub relays: usize,
    /// Number of scopes.
    pub scopes: usize,
    /// Number of scopes for whose end a task waits.
    pub emptying: usize,
    /// Number of armed timers.
    pub timers: usize,
}

impl Branches {
    /// Returns the number of branches that have begun, including ended ones.
    pub fn begun(&self) -> u64 {
        self.done + self.failed + self.running + self.waiting + self.queued
    }
}

impl Doing {
    /// Returns a short description.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Command(_) => "running",
            Self::Files => "opening files",
            Self::Printing => "printing",
            Self::Sleeping { .. } => "sleeping",
            Self::Waiting { .. } => "waiting",
            Self::Entering(_) => "waiting for a channel",
            Self::Placing => "waiting for a machine",
            Self::Elsewhere(_) => "running elsewhere",
            Self::Branches(_) | Self::Beside | Self::Stages => "in others",
            Self::Ending | Self::CleaningUp => "ending",
        }
    }
}

/// Returns the amount of work in progress.
pub(crate) fn in_progress(state: &Core) -> InProgress {
    let is_open = |task: &Task| {
        join(task).and_then(|join| join.kind.relay()).is_some_and(|relay| !relay.is_done())
    };
    let relays = state.tasks().iter().filter(|task| is_open(task)).count();
    // The branches of these tasks wait for resources of the machine, or for words.
    let asks = |task: &Task| join(task).map_or(0, |join| join.kind.requests());
    let asking: usize = state.tasks().iter().map(asks).sum();
    InProgress {
        tasks: state.tasks().count(),
        commands: state.requests().processes(),
        operations: state.requests().operations().saturating_sub(relays + asking),
        relays,
        scopes: state.scopes().count(),
        emptying: state.scopes().emptying(),
        timers: state.scheduler().armed(),
    }
}

/// Creates a snapshot of the run: the first `most` tasks, outer ones first, and counts of the
/// others. `now` is the time of the snapshot.
pub(crate) fn take_snapshot(state: &Core, main: Option<&Task>, most: usize, now: Time) -> Status {
    let mut status = Status {
        now,
        secrets: state.config().secrets.clone(),
        tasks: Vec::new(),
        more: BTreeMap::new(),
    };
    let mut left: Vec<(&Task, Option<&Loop>)> = Vec::new();
    left.extend(main.map(|main| (main, None)));
    while let Some((task, code)) = left.pop() {
        if let Some(join) = join(task) {
            let code = match &join.kind {
                JoinKind::Branches { code, .. } => Some(&**code),
                JoinKind::Hedge(hedge) => Some(&*hedge.code),
                JoinKind::Beside(_) | JoinKind::Stages(_) => None,
            };
            let children = join.running.iter().rev().filter_map(|child| state.tasks().get(*child));
            left.extend(children.map(|child| (child, code)));
        }
        if status.tasks.len() < most {
            status.tasks.push(task_status(state, task, code));
        } else if join(task).is_none() {
            let (source, line) = place(task);
            let place = (Arc::clone(source.name()), line, doing(state, task).name());
            *status.more.entry(place).or_default() += 1;
        }
    }
    status
}

fn task_status(state: &Core, task: &Task, code: Option<&Loop>) -> TaskStatus {
    let item = code.and_then(|code| {
        let value = task.variables.get(&code.variable)?.value.brief()?;
        let mut item = format!("{}={value}", code.variable);
        state.config().secrets.hide_in(&mut item);
        Some(item)
    });
    let (source, line) = place(task);
    let (inside, cleaning) = task.cleanup_deadline();
    let tries = task.placed_tries().enumerate();
    let in_group = task.tries_in_group();
    let tries = tries.map(|(at, (frame, source))| TryStatus {
        counts: at < inside,
        outlasted: in_group.is_some_and(|most| at >= most),
        ..try_status(frame, source)
    });
    TaskStatus {
        task: task.id,
        parent: task.parent.map(|(parent, _)| parent),
        item,
        source: Arc::clone(source),
        line,
        doing: doing(state, task),
        since: match &task.state {
            TaskState::Command(command) => command.started,
            _ => task.since,
        },
        tries: tries.collect(),
        cleaning,
        in_finally: in_group.is_some(),
    }
}

fn doing(state: &Core, task: &Task) -> Doing {
    match &task.state {
        TaskState::Ready => Doing::Computing,
        TaskState::Committing(Committing::Writing(..)) => Doing::Printing,
        TaskState::Query(..)
        | TaskState::ReadingOutput(..)
        | TaskState::ListingLeftovers(..)
        | TaskState::Opening(..)
        | TaskState::Piped(_)
        | TaskState::CommittingFiles(_)
        | TaskState::CheckingInput(_)
        | TaskState::Recording(..)
        | TaskState::OpeningView(_)
        | TaskState::Beginning(_)
        | TaskState::Committing(_) => Doing::Files,
        TaskState::Entering(entering) => Doing::Entering(Arc::clone(&entering.channel)),
        TaskState::Command(command) => Doing::Command(command.text.clone()),
        TaskState::Sleeping(timer) if delayed(task).is_some() => {
            Doing::Waiting { until: timer.due() }
        }
        TaskState::Sleeping(timer) => Doing::Sleeping { until: timer.due() },
        TaskState::Children | TaskState::Forking => match join(task) {
            Some(join) => joining(state, join),
            None => Doing::Stages,
        },
        TaskState::Remote(_) => match node(task) {
            Some(node) => Doing::Elsewhere(node.to_owned()),
            None => Doing::Placing,
        },
        TaskState::Emptying(..) => Doing::Ending,
        TaskState::AwaitingCleanup if flushing(task).is_some() => Doing::Printing,
        TaskState::AwaitingCleanup | TaskState::Cleaning => Doing::CleaningUp,
    }
}

fn joining(state: &Core, join: &JoinFrame) -> Doing {
    let (keyword, code, total, done, failed) = match &join.kind {
        JoinKind::Branches { code, tally, .. } => {
            ("forall", code, tally.total(), tally.succeeded(), tally.failed())
        }
        JoinKind::Hedge(hedge) => {
            let done = u64::from(hedge.is_won());
            ("forany", &hedge.code, hedge.total(), done, 0)
        }
        JoinKind::Beside(_) => return Doing::Beside,
        JoinKind::Stages(_) => return Doing::Stages,
    };
    let (enough, since, ending) = match &join.kind {
        JoinKind::Branches { clauses, tally, .. } => {
            let enough = clauses.at_least.filter(|_| !clauses.keep_going);
            (enough, tally.since(), tally.is_decided())
        }
        JoinKind::Hedge(hedge) => (Some(1), state.now(), hedge.is_won() || hedge.is_lost()),
        JoinKind::Beside(_) => return Doing::Beside,
        JoinKind::Stages(_) => return Doing::Stages,
    };
    let (mut waiting, mut queued) = (0, 0);
    let mut soonest: Option<(Time, Arc<Failure>)> = None;
    for child in join.running.iter().filter_map(|child| state.tasks().get(*child)) {
        queued += u64::from(match child.state {
            TaskState::Entering(_) => true,
            TaskState::Remote(_) => node(child).is_none(),
            _ => false,
        });
        let (TaskState::Sleeping(timer), Some(frame)) = (&child.state, delayed(child)) else {
            continue;
        };
        waiting += 1;
        if let Some(failure) = &frame.failure
            && soonest.as_ref().is_none_or(|(time, _)| timer.due() < *time)
        {
            soonest = Some((timer.due(), Arc::clone(failure)));
        }
    }
    let here = join.running.len() as u64;
    Doing::Branches(Box::new(Branches {
        keyword,
        variable: code.variable.to_string(),
        total,
        enough,
        since,
        done,
        failed,
        running: here - waiting - queued,
        waiting,
        queued,
        gated: join.kind.awaits_resources(),
        next: soonest,
        ending,
        printing: join.kind.outputs().is_some_and(|outputs| outputs.process().is_some()),
    }))
}

/// Returns the innermost structure if it waits for tasks.
fn join(task: &Task) -> Option<&JoinFrame> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

/// Returns the machine of a remote branch.
fn node(task: &Task) -> Option<&str> {
    match (&task.state, task.frames.last()?) {
        (
            TaskState::Remote(RemoteState::Sent(_)),
            Frame { kind: FrameKind::Remote(remote_branch), .. },
        ) => remote_branch.node(),
        _ => None,
    }
}

/// Returns the `try` before whose next attempt a task waits.
fn delayed(task: &Task) -> Option<&TryFrame> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Try(frame), .. }) if frame.phase == TryPhase::Delay => {
            Some(frame)
        }
        _ => None,
    }
}

/// Returns the place of a task. Between attempts, the place is the `try`, not the failed command.
fn place(task: &Task) -> (&Arc<Source>, u32) {
    let line = match &task.state {
        TaskState::Sleeping(_) => delayed(task).map(|frame| frame.code.line),
        TaskState::Entering(_) => task.tries().next().map(|frame| frame.code.line),
        _ => None,
    };
    (&task.program.source, line.unwrap_or_else(|| task.line()))
}

fn try_status(frame: &TryFrame, source: &Source) -> TryStatus {
    TryStatus {
        file: Arc::clone(source.name()),
        line: frame.code.line,
        started: frame.started,
        // A repeated attempt has not yet begun.
        attempt: frame.attempt - u64::from(frame.deferred),
        condition: frame.phase == TryPhase::Condition,
        scope: frame.scope,
        times: frame.clauses.attempts(),
        deadline: frame.deadline,
        failure: frame.failure.clone(),
        counts: true,
        outlasted: false,
    }
}
