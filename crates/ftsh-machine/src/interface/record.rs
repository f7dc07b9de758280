//! What the log tells.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::interface::id::TaskId;
use crate::outcome::{Failure, FailureKind};
use crate::secrets::Secrets;
use crate::time::Time;
use ftsh_syntax::ast::Name;
use ftsh_syntax::engine::EngineId;

/// How much a log tells: each level includes those below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// What ends the run: the failure that nothing contains, or a signal.
    pub const ENDING: Self = Self(5);
    /// Failures.
    pub const FAILURES: Self = Self(10);
    /// Commands with their exit codes.
    pub const COMMANDS: Self = Self(20);
    /// Structures: try attempts, delays, conditions, loops.
    pub const STRUCTURES: Self = Self(30);
    /// Processes and signals.
    pub const PROCESSES: Self = Self(40);

    /// The level that tells a failure, by whether the run ends by it.
    pub fn of_failure(uncaught: bool) -> Self {
        if uncaught { Self::ENDING } else { Self::FAILURES }
    }
}

/// A `try` that waits longer than this is told of to those who see no more than failures, once.
pub const LONG_DELAY: Duration = Duration::from_secs(60);

/// Something that happened, where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Time,
    /// The lowest level of a log that tells it.
    pub level: Level,
    /// The task it happened in, if any.
    pub task: Option<TaskId>,
    /// The task that waits for that one, if any.
    pub parent: Option<TaskId>,
    /// The outermost branch around whose output is held, if there is one.
    pub group: Option<TaskId>,
    /// The script.
    pub file: Arc<str>,
    /// The line, from 1; 0 if there is none.
    pub line: u32,
    /// The present attempt of the innermost `try`, from 1.
    pub attempt: Option<u64>,
    /// Whether it is a failure that nothing contains, so that the run ends by it.
    pub uncaught: bool,
    /// What happened.
    pub event: LogEvent,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A command, a function or a builtin failed.
    CommandFailed(Box<Failure>),
    /// An expression, a redirection or a block failed, outside a command.
    Failed(Box<Failure>),
    /// A `try` gave up.
    TryFailed {
        /// The failure of its last attempt.
        failure: Box<Failure>,
        /// How many attempts were made.
        attempts: u64,
        /// How long it tried.
        elapsed: Duration,
    },
    /// The run ends by this failure, which something might have contained when it happened.
    EndedBy(Box<Failure>),
    /// The script doesn't begin yet.
    Waiting {
        /// What for.
        reason: String,
        /// How long, at most.
        time: Duration,
    },
    /// A command starts; its words.
    CommandStarted(String),
    /// A command succeeded.
    CommandSucceeded {
        /// Its words.
        command: String,
        /// How long it ran.
        elapsed: Duration,
    },
    /// `name=value`; no value if the variable was unset.
    Assigned {
        /// The variable.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// An attempt of a `try` begins.
    Attempt {
        /// From 1.
        number: u64,
        /// When the `try` must end by a limit of its own.
        until: Option<Time>,
        /// When the attempt must end by that of each.
        each: Option<Time>,
    },
    /// A `try` waits before its next attempt.
    Delay {
        /// How long.
        delay: Duration,
        /// The attempt it waits for.
        attempt: u64,
        /// Whether that attempt is the last before the deadline.
        last: bool,
    },
    /// A `try` waits before it makes the same attempt again, as that said `defer`.
    Deferred {
        /// How long.
        delay: Duration,
        /// The attempt's number.
        attempt: u64,
    },
    /// An attempt of a `try` waits for its turn in a channel.
    Queued {
        /// The channel.
        channel: Name,
        /// The attempt's number.
        attempt: u64,
        /// How long, at most, if there is a limit.
        time: Option<Duration>,
    },
    /// An attempt that had to wait goes through its channel.
    Entered {
        /// The channel.
        channel: Name,
        /// The attempt's number.
        attempt: u64,
        /// How long it has waited.
        waited: Duration,
    },
    /// What the attempts of a `try` read has come to its end since the first: this one reads nothing.
    InputEnded(u64),
    /// A `try` succeeded at this attempt.
    TrySucceeded(u64),
    /// A `catch` block begins.
    Catch,
    /// A `finally` group begins.
    Finally,
    /// A `finally` group isn't run to its end, or at all: what is around it ends before.
    FinallyCut {
        /// Whether it had begun.
        begun: bool,
    },
    /// The output of this branch, which was held, is written, or never will be. No log has a line of it.
    GroupEnded(TaskId),
    /// A branch or a stage ends early: another one failed, or time ran out.
    Cancelled,
    /// A branch begins on another machine.
    Placed {
        /// The machine.
        node: String,
    },
    /// A branch doesn't begin elsewhere, and is sent again.
    NotSent {
        /// By what.
        engine: EngineId,
        /// The machine, if it came to one.
        node: Option<String>,
        /// Why.
        why: String,
        /// How long nothing is sent, if the engine is to blame.
        delay: Option<Duration>,
    },
    /// A machine is avoided for a while.
    Avoided {
        /// The machine.
        node: String,
        /// Why.
        why: Trouble,
        /// How long.
        time: Duration,
    },
    /// An `if` or `while` decided.
    Condition(bool),
    /// A loop's variable got its next value.
    Iteration {
        /// `for`, `forany` or `forall`.
        kind: &'static str,
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// A branch of a `forall` ended.
    BranchEnded {
        /// The loop's variable.
        name: String,
        /// Its word.
        word: BString,
        /// The word's place in the list, from 0.
        place: u64,
        /// The machine that it began on last, if it was sent to others.
        node: Option<String>,
        /// The kind of its failure and its code; none if it succeeded.
        failure: Option<(FailureKind, i32)>,
        /// How many attempts its tries made.
        attempts: u64,
        /// How long it took.
        elapsed: Duration,
    },
    /// A function returned this value.
    Returned(String),
    /// A program runs as this process.
    Spawned {
        /// Its process id.
        pid: i32,
        /// Its name.
        command: String,
    },
    /// A process ended.
    Exited {
        /// Its process id.
        pid: i32,
        /// How, for people.
        status: String,
    },
    /// A signal was sent.
    Signaled {
        /// To which process or group.
        pid: i32,
        /// Its number.
        signal: i32,
    },
    /// A scope is being emptied: told to end, or killed.
    Emptying {
        /// Which.
        scope: u64,
        /// Whether by SIGKILL.
        kill: bool,
    },
    /// Nothing is left of a scope.
    Emptied {
        /// Which.
        scope: u64,
        /// How many processes there were.
        processes: usize,
        /// How long it took.
        elapsed: Duration,
    },
    /// A process that lost its parent came to the shell.
    Adopted {
        /// Its process id.
        pid: i32,
        /// Its name.
        command: String,
    },
    /// A process can't be killed.
    Survivor {
        /// Its process id.
        pid: i32,
        /// Its name.
        command: String,
    },
    /// The shell was told to end by this signal.
    Interrupted(i32),
    /// The shell ends, by this signal or because of a deadline that only this start of the run has; the
    /// run doesn't.
    Suspended(Option<i32>),
    /// The run goes on in another process; of so many commands nobody knows what came of them.
    Resumed {
        /// How many.
        lost: usize,
    },
    /// Something worth knowing about the shell itself.
    Note(String),
}

/// What a machine did to a branch, so that it is avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// It didn't run it.
    Refused,
    /// Nobody knows what came of it.
    Lost,
    /// It failed there.
    Failed,
}

impl Trouble {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

impl Record {
    /// What a shell tells that is no task's doing.
    pub fn of_shell(at: Time, file: Arc<str>, line: u32, event: LogEvent) -> Self {
        let level = event.level();
        let (task, parent, group, attempt, uncaught) = (None, None, None, None, false);
        Self { at, level, task, parent, group, file, line, attempt, uncaught, event }
    }

    /// It without what is secret.
    pub fn hide(&self, secrets: &Secrets) -> Cow<'_, Self> {
        if secrets.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        if let Some(output) = record.event.output() {
            *output = Arc::new(secrets.hide_bytes(output).into_owned().into());
        }
        if let LogEvent::BranchEnded { word, .. } = &mut record.event {
            *word = secrets.hide_bytes(word).into_owned().into();
        }
        record.event.texts().into_iter().for_each(|text| secrets.hide_in(text));
        record.file = secrets.hide(&self.file).into();
        Cow::Owned(record)
    }
}

impl LogEvent {
    /// All its words that a script, its arguments or its files may have a say in.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::EndedBy(failure)
            | Self::TryFailed { failure, .. } => {
                let words = failure.trace.words();
                words.chain([&mut failure.message, &mut failure.command]).collect()
            }
            Self::Assigned { name, value } => value.iter_mut().chain([name]).collect(),
            Self::NotSent { why: text, .. }
            | Self::Waiting { reason: text, .. }
            | Self::CommandStarted(text)
            | Self::CommandSucceeded { command: text, .. }
            | Self::Iteration { value: text, .. }
            | Self::Returned(text)
            | Self::Spawned { command: text, .. }
            | Self::Adopted { command: text, .. }
            | Self::Survivor { command: text, .. }
            | Self::Note(text) => vec![text],
            Self::BranchEnded { .. }
            | Self::Attempt { .. }
            | Self::Delay { .. }
            | Self::Deferred { .. }
            | Self::Queued { .. }
            | Self::Entered { .. }
            | Self::InputEnded(_)
            | Self::TrySucceeded(_)
            | Self::Catch
            | Self::Finally
            | Self::FinallyCut { .. }
            | Self::GroupEnded(_)
            | Self::Cancelled
            | Self::Condition(_)
            | Self::Placed { .. }
            | Self::Avoided { .. }
            | Self::Exited { .. }
            | Self::Signaled { .. }
            | Self::Emptying { .. }
            | Self::Emptied { .. }
            | Self::Interrupted(_)
            | Self::Suspended(_)
            | Self::Resumed { .. } => Vec::new(),
        }
    }

    /// What the attempt had printed of whose failure it tells.
    fn output(&mut self) -> Option<&mut Arc<BString>> {
        match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::EndedBy(failure)
            | Self::TryFailed { failure, .. } => failure.output.as_mut(),
            _ => None,
        }
    }

    /// The failure it tells of.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::EndedBy(failure)
            | Self::TryFailed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// True if logs have a line of such events.
    pub fn has_line(&self) -> bool {
        !matches!(self, Self::GroupEnded(_))
    }

    /// How long a `try` waits, if it tells of that.
    pub fn delay(&self) -> Option<Duration> {
        match self {
            Self::Delay { delay, .. } | Self::Deferred { delay, .. } => Some(*delay),
            _ => None,
        }
    }

    /// The lowest level of a log that tells such events.
    pub fn level(&self) -> Level {
        match self {
            Self::CommandFailed(_)
            | Self::Failed(_)
            | Self::TryFailed { .. }
            | Self::InputEnded(_)
            | Self::NotSent { .. }
            | Self::Survivor { .. }
            | Self::Resumed { .. } => Level::FAILURES,
            // A cleanup that was not done has to be known, whatever else the log holds.
            Self::FinallyCut { .. } => Level::NOTHING,
            Self::EndedBy(_) | Self::Interrupted(_) | Self::Suspended(_) | Self::GroupEnded(_) => {
                Level::ENDING
            }
            Self::Waiting { .. }
            | Self::Queued { .. }
            | Self::CommandStarted(_)
            | Self::CommandSucceeded { .. }
            | Self::Assigned { .. } => Level::COMMANDS,
            Self::Attempt { .. }
            | Self::Delay { .. }
            | Self::Deferred { .. }
            | Self::Entered { .. }
            | Self::TrySucceeded(_)
            | Self::Catch
            | Self::Finally
            | Self::Cancelled
            | Self::Condition(_)
            | Self::Placed { .. }
            | Self::Avoided { .. }
            | Self::Iteration { .. }
            | Self::BranchEnded { .. }
            | Self::Returned(_) => Level::STRUCTURES,
            Self::Spawned { .. }
            | Self::Exited { .. }
            | Self::Signaled { .. }
            | Self::Emptying { .. }
            | Self::Emptied { .. }
            | Self::Adopted { .. }
            | Self::Note(_) => Level::PROCESSES,
        }
    }
}
