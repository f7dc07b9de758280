//! What a run is doing: a snapshot, for people who ask and for the line that a terminal shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::atomic::transaction::Committing;
use crate::effect::{ScopeId, TaskId};
use crate::grouped_output::let_out::letting_out;
use crate::outcome::Failure;
use crate::program::code::Loop;
use crate::remote::remote_branch::RemoteState;
use crate::secrets::Secrets;
use crate::tasks::core::Core;
use crate::tasks::frame::{Frame, FrameKind, JoinFrame, JoinKind, TryFrame, TryPhase};
use crate::tasks::task::{State, Task};
use crate::time::Time;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;

/// A snapshot of a run.
#[derive(Debug)]
pub struct Status {
    /// When it was taken.
    pub now: Time,
    /// What isn't to be said of it.
    pub secrets: Secrets,
    /// The tasks, each before those it waits for; as many as were asked for.
    pub tasks: Vec<TaskStatus>,
    /// How many of the other tasks do what at which line of which script. Those that only wait for
    /// others are not counted.
    pub more: BTreeMap<(Arc<str>, u32, &'static str), usize>,
}

/// What a task is doing.
#[derive(Debug)]
pub struct TaskStatus {
    /// The task.
    pub task: TaskId,
    /// The task that waits for it.
    pub parent: Option<TaskId>,
    /// `name=value` of the loop that it is a branch of.
    pub item: Option<String>,
    /// The script.
    pub source: Arc<Source>,
    /// The line.
    pub line: u32,
    /// What it does there.
    pub doing: Doing,
    /// Since when.
    pub since: Time,
    /// The tries that it is in itself, innermost first.
    pub tries: Vec<TryStatus>,
    /// When its `finally` group must end, if it runs one because it was cancelled.
    pub cleaning: Option<Time>,
    /// Set when it runs a `finally` group.
    pub in_finally: bool,
}

/// What a task can be doing.
#[derive(Debug)]
pub enum Doing {
    /// Nothing that takes long.
    Computing,
    /// Running this command.
    Command(String),
    /// Waiting for a file system: an opening, a test, a search.
    Files,
    /// Writing what an atomic attempt has printed, which has succeeded.
    Printing,
    /// In a `sleep`.
    Sleeping {
        /// Its end.
        until: Time,
    },
    /// Waiting before the next attempt of its innermost `try`.
    Waiting {
        /// The attempt's start.
        until: Time,
    },
    /// Waiting for the turn of an attempt in this channel.
    Entering(Name),
    /// Waiting for a machine to run on.
    Placing,
    /// Running on this machine.
    Elsewhere(String),
    /// Waiting for the branches of a loop.
    Branches(Box<Branches>),
    /// Waiting for the stages of a pipeline.
    Stages,
    /// Waiting for the end of what a failed or cancelled attempt, branch or script started.
    Ending,
    /// Waiting for its turn to run `finally` groups, or for others that run theirs.
    CleaningUp,
}

/// The branches of a loop.
#[derive(Debug)]
pub struct Branches {
    /// Which loop it is: `forall`, or a hedged `forany`.
    pub keyword: &'static str,
    /// The loop's variable.
    pub variable: String,
    /// How many there are.
    pub total: u64,
    /// How many successes end it before its end, if not all are wanted.
    pub enough: Option<u64>,
    /// When it began.
    pub since: Time,
    /// How many have succeeded.
    pub done: u64,
    /// How many have failed for good.
    pub failed: u64,
    /// How many are making an attempt, or anything else.
    pub running: u64,
    /// How many have failed for now, and wait before their next attempt.
    pub waiting: u64,
    /// How many wait for their turn in a channel, or for a machine.
    pub queued: u64,
    /// The first of these to go on: when, and how it had failed.
    pub next: Option<(Time, Arc<Failure>)>,
    /// Whether it is decided how the `forall` ends, and the others are being cancelled.
    pub ending: bool,
    /// Whether what one has printed is being written on.
    pub printing: bool,
}

/// How far a `try` has come.
#[derive(Debug)]
pub struct TryStatus {
    /// The script it stands in.
    pub file: Arc<str>,
    /// Its line.
    pub line: u32,
    /// When it began.
    pub started: Time,
    /// The present attempt, or the one before the present delay; from 1.
    pub attempt: u64,
    /// Whether it failed, and the condition after it is being decided.
    pub condition: bool,
    /// The family of what that attempt, or that condition, started.
    pub scope: ScopeId,
    /// How many may be made, if that is limited.
    pub times: Option<u64>,
    /// When it must end, if it must.
    pub deadline: Option<Time>,
    /// How its last failed attempt failed.
    pub failure: Option<Arc<Failure>>,
    /// Whether its limits count; not around a `finally` group that has a limit of its own.
    pub counts: bool,
    /// Set when a `finally` group runs inside it, which may outlast its limits.
    pub outlasted: bool,
}

/// How much a run has in progress. What is there when a run is over, but for its own task and
/// scope and a limit it lives under, or what only grows, is a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InProgress {
    /// The script, branches and stages.
    pub tasks: usize,
    /// Commands that a task waits for.
    pub commands: usize,
    /// Questions and openings that a task waits for.
    pub operations: usize,
    /// Relays of what branches print.
    pub relays: usize,
    /// Families of processes.
    pub scopes: usize,
    /// Families whose end a task waits for.
    pub emptying: usize,
    /// Limits and delays.
    pub timers: usize,
}

impl Branches {
    /// How many have begun, or ended already.
    pub fn begun(&self) -> u64 {
        self.done + self.failed + self.running + self.waiting + self.queued
    }
}

impl Doing {
    /// In a word.
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
            Self::Branches(_) | Self::Stages => "in others",
            Self::Ending | Self::CleaningUp => "ending",
        }
    }
}

impl Core {
    /// How much is in progress.
    pub fn in_progress(&self) -> InProgress {
        let is_open = |task: &Task| {
            join(task).and_then(|join| join.kind.relay()).is_some_and(|relay| !relay.is_done())
        };
        let relays = self.tasks.iter().filter(|task| is_open(task)).count();
        InProgress {
            tasks: self.tasks.count(),
            commands: self.requests.processes(),
            operations: self.requests.operations().saturating_sub(relays),
            relays,
            scopes: self.scopes.count(),
            emptying: self.scopes.emptying(),
            timers: self.scheduler.armed(),
        }
    }

    /// What the run is doing: the first `most` tasks, outer ones first, and counts of the others.
    /// `now` is the time of the snapshot.
    pub fn status(&self, main: Option<&Task>, most: usize, now: Time) -> Status {
        let mut status = Status {
            now,
            secrets: self.config.secrets.clone(),
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
                    JoinKind::Stages(_) => None,
                };
                let children = join.running.iter().rev().filter_map(|child| self.tasks.get(*child));
                left.extend(children.map(|child| (child, code)));
            }
            if status.tasks.len() < most {
                status.tasks.push(self.task_status(task, code));
            } else if join(task).is_none() {
                let (source, line) = place(task);
                let place = (Arc::clone(source.name()), line, self.doing(task).name());
                *status.more.entry(place).or_default() += 1;
            }
        }
        status
    }

    fn task_status(&self, task: &Task, code: Option<&Loop>) -> TaskStatus {
        let item = code.and_then(|code| {
            let value = task.variables.get(&code.variable)?.value.brief()?;
            let mut item = format!("{}={value}", code.variable);
            self.config.secrets.hide_in(&mut item);
            Some(item)
        });
        let (source, line) = place(task);
        let (inside, cleaning) = task.cleaning_up();
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
            doing: self.doing(task),
            since: match &task.state {
                State::Command(command) => command.started,
                _ => task.since,
            },
            tries: tries.collect(),
            cleaning,
            in_finally: in_group.is_some(),
        }
    }

    fn doing(&self, task: &Task) -> Doing {
        match &task.state {
            State::Ready => Doing::Computing,
            State::Committing(Committing::LettingOut(..)) => Doing::Printing,
            State::Query(..)
            | State::Telling(..)
            | State::Opening(..)
            | State::Piped(_)
            | State::Settling(_)
            | State::Asking(_)
            | State::Beginning(_)
            | State::Committing(_) => Doing::Files,
            State::Entering(entering) => Doing::Entering(Arc::clone(&entering.channel)),
            State::Command(command) => Doing::Command(command.text.clone()),
            State::Sleeping(timer) if delayed(task).is_some() => {
                Doing::Waiting { until: timer.due() }
            }
            State::Sleeping(timer) => Doing::Sleeping { until: timer.due() },
            State::Children | State::Forking => match join(task) {
                Some(join) => self.joining(join),
                None => Doing::Stages,
            },
            State::Remote(_) => match node(task) {
                Some(node) => Doing::Elsewhere(node.to_owned()),
                None => Doing::Placing,
            },
            State::Emptying(..) => Doing::Ending,
            State::Doomed if letting_out(task).is_some() => Doing::Printing,
            State::Doomed | State::Cleaning => Doing::CleaningUp,
        }
    }

    fn joining(&self, join: &JoinFrame) -> Doing {
        let (keyword, code, total, done, failed) = match &join.kind {
            JoinKind::Branches { code, tally, .. } => {
                ("forall", code, tally.total(), tally.succeeded(), tally.failed())
            }
            JoinKind::Hedge(hedge) => {
                let done = u64::from(hedge.is_won());
                ("forany", &hedge.code, hedge.total(), done, 0)
            }
            JoinKind::Stages(_) => return Doing::Stages,
        };
        let (enough, since, ending) = match &join.kind {
            JoinKind::Branches { clauses, tally, .. } => {
                let enough = clauses.at_least.filter(|_| !clauses.keep_going);
                (enough, tally.since(), tally.is_decided())
            }
            JoinKind::Hedge(hedge) => (Some(1), self.now(), hedge.is_won() || hedge.is_lost()),
            JoinKind::Stages(_) => return Doing::Stages,
        };
        let (mut waiting, mut queued) = (0, 0);
        let mut soonest: Option<(Time, Arc<Failure>)> = None;
        for child in join.running.iter().filter_map(|child| self.tasks.get(*child)) {
            queued += u64::from(match child.state {
                State::Entering(_) => true,
                State::Remote(_) => node(child).is_none(),
                _ => false,
            });
            let (State::Sleeping(timer), Some(frame)) = (&child.state, delayed(child)) else {
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
            next: soonest,
            ending,
            printing: join.kind.outputs().is_some_and(|outputs| outputs.process().is_some()),
        }))
    }
}

/// The structure whose tasks a task waits for.
fn join(task: &Task) -> Option<&JoinFrame> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Join(join), .. }) => Some(join),
        _ => None,
    }
}

/// The machine that a branch runs on, if that is another one.
fn node(task: &Task) -> Option<&str> {
    match (&task.state, task.frames.last()?) {
        (
            State::Remote(RemoteState::Sent(_)),
            Frame { kind: FrameKind::Remote(remote_branch), .. },
        ) => remote_branch.node(),
        _ => None,
    }
}

/// The `try` before whose next attempt a task waits.
fn delayed(task: &Task) -> Option<&TryFrame> {
    match task.frames.last() {
        Some(Frame { kind: FrameKind::Try(frame), .. }) if frame.phase == TryPhase::Delay => {
            Some(frame)
        }
        _ => None,
    }
}

/// Where a task is: between attempts at its `try`, not at the command that failed.
fn place(task: &Task) -> (&Arc<Source>, u32) {
    let line = match &task.state {
        State::Sleeping(_) => delayed(task).map(|frame| frame.code.line),
        State::Entering(_) => task.tries().next().map(|frame| frame.code.line),
        _ => None,
    };
    (&task.program.source, line.unwrap_or_else(|| task.line()))
}

fn try_status(frame: &TryFrame, source: &Source) -> TryStatus {
    TryStatus {
        file: Arc::clone(source.name()),
        line: frame.code.line,
        started: frame.started,
        // One that is made again comes next.
        attempt: frame.attempt - u64::from(frame.deferred),
        condition: frame.phase == TryPhase::Condition,
        scope: frame.scope,
        times: frame.clauses.attempts(),
        deadline: Some(frame.deadline).filter(|deadline| *deadline != Time::NEVER),
        failure: frame.failure.clone(),
        counts: true,
        outlasted: false,
    }
}
