//! Records of the log.

pub mod spans;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use self::spans::SpanEvent;
use super::{
    id::TaskId,
    outcome::{Failure, FailureKind},
    time::Time,
};
use crate::secrets::Secrets;
use ftsh_syntax::ast::Name;
use ftsh_syntax::engine::EngineId;

/// Level of a log. Each level includes the levels below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// End of the run: an uncontained failure, or a signal.
    pub const ENDING: Self = Self(5);
    /// Failures.
    pub const FAILURES: Self = Self(10);
    /// Commands with their exit codes.
    pub const COMMANDS: Self = Self(20);
    /// Structures: try attempts, delays, conditions, loops.
    pub const STRUCTURES: Self = Self(30);
    /// Processes and signals.
    pub const PROCESSES: Self = Self(40);
    /// Events that only spans need. No log has this level.
    pub const SPANS: Self = Self(u8::MAX);

    /// Returns the level of a failure, which depends on whether the failure ends the run.
    pub fn of_failure(uncaught: bool) -> Self {
        if uncaught { Self::ENDING } else { Self::FAILURES }
    }
}

/// Delay beyond which a waiting `try` is logged once even at the level of failures.
pub const LONG_DELAY: Duration = Duration::from_secs(60);

/// Event of the log, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Time of the event.
    pub at: Time,
    /// Lowest level of a log with the event.
    pub level: Level,
    /// Task of the event, if any.
    pub task: Option<TaskId>,
    /// Task that waits for the task of the event, if any.
    pub parent: Option<TaskId>,
    /// Structures around the event.
    pub around: Box<Surroundings>,
    /// Name of the script.
    pub file: Arc<str>,
    /// Line, from 1; 0 if there is none.
    pub line: u32,
    /// Current attempt of the innermost `try`, from 1.
    pub attempt: Option<u64>,
    /// True for a failure that nothing contains, and that ends the run.
    pub uncaught: bool,
    /// Kind of the event, with its details.
    pub event: LogEvent,
}

/// Structures around an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// True if the task is a stage of a pipeline.
    pub is_stage: bool,
    /// Variables and words of the enclosing branches, outermost first, as `dc=a, host=web3`.
    pub branch: Option<String>,
    /// Outermost enclosing branch with grouped output, if any.
    pub group: Option<TaskId>,
    /// Number of the task's own structures.
    pub depth: usize,
}

/// Event of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A command, a function or a builtin failed.
    CommandFailed(Box<Failure>),
    /// An expression, a redirection or a block failed, outside a command.
    Failed(Box<Failure>),
    /// A `try` gave up.
    TryFailed {
        /// Failure of the last attempt.
        failure: Box<Failure>,
        /// Number of attempts made.
        attempts: u64,
        /// Duration of the `try`.
        elapsed: Duration,
    },
    /// The run ends by this failure, which could still have been contained when it happened.
    EndedBy(Box<Failure>),
    /// The script waits before its start.
    Waiting {
        /// Reason for the wait.
        reason: String,
        /// Maximum duration of the wait.
        time: Duration,
    },
    /// A command with these words starts.
    CommandStarted(String),
    /// A command succeeded.
    CommandSucceeded {
        /// Words of the command.
        command: String,
        /// Duration of the command.
        elapsed: Duration,
        /// Status of the command; not 0 if `accept` lists the status.
        status: i32,
    },
    /// A variable was assigned or unset.
    Assigned {
        /// Name of the variable.
        name: String,
        /// New value; `None` if the variable was unset.
        value: Option<String>,
    },
    /// An attempt of a `try` begins.
    Attempt {
        /// Number of the attempt, from 1.
        number: u64,
        /// Deadline of the `try`, if the `try` has its own limit.
        until: Option<Time>,
        /// Deadline of the attempt, if each attempt has a limit.
        each: Option<Time>,
    },
    /// A `try` waits before its next attempt.
    Delay {
        /// Length of the delay.
        delay: Duration,
        /// Number of the next attempt.
        attempt: u64,
        /// True if the next attempt is the last before the deadline.
        last: bool,
    },
    /// A `try` waits before it repeats an attempt that executed `defer`.
    Deferred {
        /// Length of the delay.
        delay: Duration,
        /// Number of the attempt.
        attempt: u64,
    },
    /// An attempt of a `try` waits for its turn in a channel.
    Queued {
        /// Name of the channel.
        channel: Name,
        /// Number of the attempt.
        attempt: u64,
        /// Maximum duration of the wait, if limited.
        time: Option<Duration>,
    },
    /// A waiting attempt was admitted to its channel.
    Entered {
        /// Name of the channel.
        channel: Name,
        /// Number of the attempt.
        attempt: u64,
        /// Duration of the wait.
        waited: Duration,
    },
    /// The next branch of a `forall` waits for memory or for a lower load.
    ResourcesAwaited {
        /// Missing resources, for people.
        missing: String,
    },
    /// The next branch of a `forall` may begin after a wait for resources.
    ResourcesAvailable {
        /// Duration of the wait.
        waited: Duration,
    },
    /// An attempt, given by its number, reads nothing, because its standard input ended in an
    /// earlier attempt.
    InputEnded(u64),
    /// A `try` succeeded at the attempt with this number.
    TrySucceeded(u64),
    /// A `limit` begins a group that may take this time.
    Limit(Duration),
    /// A `catch` block begins.
    Catch,
    /// A `finally` group begins.
    Finally,
    /// A `finally` group is cut short or skipped, because an enclosing structure ends first.
    FinallyCut {
        /// True if the group had begun.
        begun: bool,
    },
    /// A running `finally` group continues, although everything around it is canceled.
    FinallyContinues {
        /// Maximum remaining duration of the group.
        time: Duration,
    },
    /// The grouped output of this branch is written, or never will be. Logs have no line for this
    /// event.
    GroupEnded(TaskId),
    /// The task's failures inside at least this number of structures happen no more: their `try` or
    /// the task has ended. Logs have no line for this event.
    RetriesEnded(usize),
    /// A branch or a stage is canceled, because another one failed or time ran out.
    Canceled,
    /// A branch begins on another machine.
    Placed {
        /// Name of the machine.
        node: String,
    },
    /// A branch could not be started elsewhere, and is dispatched again.
    NotSent {
        /// Engine of the branch.
        engine: EngineId,
        /// Name of the machine, if the branch reached a machine.
        node: Option<String>,
        /// Reason for people.
        why: String,
        /// Time without dispatches, if the engine is to blame.
        delay: Option<Duration>,
        /// Time since a machine ran a branch or the first refusal, if long and not yet logged.
        idle: Option<Duration>,
    },
    /// A machine is avoided for a while.
    Avoided {
        /// Name of the machine.
        node: String,
        /// Reason.
        why: AvoidReason,
        /// Duration.
        time: Duration,
    },
    /// An `if` or `while` evaluated its condition.
    Condition(bool),
    /// A loop's variable was set to its next value.
    Iteration {
        /// `for`, `forany`, `forall` or `with`.
        kind: &'static str,
        /// Name of the variable.
        name: String,
        /// Value of the variable.
        value: String,
    },
    /// A branch of a `forall` or the command of a `with` ended.
    BranchEnded {
        /// Name of the loop's variable.
        name: String,
        /// Word of the branch.
        word: BString,
        /// Index of the word in the list, from 0.
        place: u64,
        /// Machine on which the branch began last, if dispatched.
        node: Option<String>,
        /// Kind and code of the failure; `None` after success.
        failure: Option<(FailureKind, i32)>,
        /// Number of attempts made by the branch's tries.
        attempts: u64,
        /// Duration of the branch.
        elapsed: Duration,
    },
    /// A word of a `forall` has no branch, because it runs only once.
    BranchSkipped {
        /// Name of the loop's variable.
        name: String,
        /// The word.
        word: BString,
        /// Index of the word in the list, from 0.
        place: u64,
    },
    /// A function returned this value.
    Returned(String),
    /// A program was started.
    Spawned {
        /// Process id.
        pid: i32,
        /// Name of the program.
        command: String,
    },
    /// A process ended.
    Exited {
        /// Process id.
        pid: i32,
        /// Exit status for people.
        status: String,
    },
    /// A signal was sent.
    Signaled {
        /// Id of the process or of the process group.
        pid: i32,
        /// Number of the signal.
        signal: i32,
    },
    /// A scope is being emptied.
    Emptying {
        /// Id of the scope.
        scope: u64,
        /// True for SIGKILL, false for SIGTERM.
        kill: bool,
    },
    /// Nothing of a scope is left.
    Emptied {
        /// Id of the scope.
        scope: u64,
        /// Number of processes ended.
        processes: usize,
        /// Duration of the emptying.
        elapsed: Duration,
    },
    /// The shell adopted an orphan.
    Adopted {
        /// Process id.
        pid: i32,
        /// Name of the program.
        command: String,
    },
    /// A process cannot be killed.
    Survivor {
        /// Process id.
        pid: i32,
        /// Name of the program.
        command: String,
    },
    /// A canceled call of the shell hangs in the kernel, and is left behind.
    Hanging {
        /// The call and its file, such as "opening `file`".
        call: String,
    },
    /// A signal, given by its number, ends the shell.
    Interrupted(i32),
    /// The shell ends without ending the run, by a signal or because of a deadline of this start.
    Suspended(Option<i32>),
    /// The run was resumed in another process.
    Resumed {
        /// Number of commands whose results are unknown.
        lost: usize,
    },
    /// Note about the shell itself.
    Note(String),
    /// Event for spans. Logs have no line for it.
    Span(Box<SpanEvent>),
}

/// Reason why a machine is avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AvoidReason {
    /// The machine did not run a branch.
    Refused,
    /// The result of a branch on the machine is unknown.
    Lost,
    /// A branch failed on the machine.
    Failed,
}

impl AvoidReason {
    /// Returns the name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

impl LogRecord {
    /// Creates a record of the shell itself, without a task.
    pub fn of_shell(at: Time, file: Arc<str>, line: u32, event: LogEvent) -> Self {
        let level = event.level();
        Self {
            at,
            level,
            task: None,
            parent: None,
            around: Box::default(),
            file,
            line,
            attempt: None,
            uncaught: false,
            event,
        }
    }

    /// Returns the record without secrets.
    pub fn hide(&self, secrets: &Secrets) -> Cow<'_, Self> {
        if secrets.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        for output in record.event.output() {
            *output = Arc::new(secrets.hide_bytes(output).into_owned().into());
        }
        if let LogEvent::BranchEnded { word, .. } | LogEvent::BranchSkipped { word, .. } =
            &mut record.event
        {
            *word = secrets.hide_bytes(word).into_owned().into();
        }
        let texts = record.event.texts().into_iter().chain(&mut record.around.branch);
        texts.for_each(|text| secrets.hide_in(text));
        record.file = secrets.hide(&self.file).into();
        Cow::Owned(record)
    }
}

impl From<SpanEvent> for LogEvent {
    fn from(event: SpanEvent) -> Self {
        Self::Span(Box::new(event))
    }
}

impl LogEvent {
    /// Returns all texts that may contain words of a script, its arguments or its files.
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
            | Self::ResourcesAwaited { missing: text }
            | Self::Waiting { reason: text, .. }
            | Self::CommandStarted(text)
            | Self::CommandSucceeded { command: text, .. }
            | Self::Iteration { value: text, .. }
            | Self::Returned(text)
            | Self::Spawned { command: text, .. }
            | Self::Adopted { command: text, .. }
            | Self::Survivor { command: text, .. }
            | Self::Hanging { call: text }
            | Self::Note(text) => vec![text],
            Self::Span(event) => match &mut **event {
                SpanEvent::ProgramStarted { name: text, .. } => vec![text],
                SpanEvent::Elsewhere(spans) => spans.finished.iter_mut().collect(),
                _ => Vec::new(),
            },
            Self::BranchEnded { .. }
            | Self::BranchSkipped { .. }
            | Self::Attempt { .. }
            | Self::Delay { .. }
            | Self::Deferred { .. }
            | Self::Queued { .. }
            | Self::Entered { .. }
            | Self::ResourcesAvailable { .. }
            | Self::InputEnded(_)
            | Self::TrySucceeded(_)
            | Self::Limit(_)
            | Self::Catch
            | Self::Finally
            | Self::FinallyCut { .. }
            | Self::FinallyContinues { .. }
            | Self::GroupEnded(_)
            | Self::RetriesEnded(_)
            | Self::Canceled
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

    /// Returns the discarded output of the attempt whose failure is logged.
    fn output(&mut self) -> impl Iterator<Item = &mut Arc<BString>> {
        let failure = match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::EndedBy(failure)
            | Self::TryFailed { failure, .. } => Some(failure),
            _ => None,
        };
        failure.into_iter().flat_map(|it| [&mut it.errors, &mut it.output]).flatten()
    }

    /// Returns the failure that the event reports.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::CommandFailed(failure)
            | Self::Failed(failure)
            | Self::EndedBy(failure)
            | Self::TryFailed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Returns true if logs have a line for the event.
    pub fn has_line(&self) -> bool {
        !matches!(self, Self::GroupEnded(_) | Self::RetriesEnded(_) | Self::Span(_))
    }

    /// Returns the delay of a waiting `try`, if the event reports a delay.
    pub fn delay(&self) -> Option<Duration> {
        match self {
            Self::Delay { delay, .. } | Self::Deferred { delay, .. } => Some(*delay),
            _ => None,
        }
    }

    /// Returns the lowest level of a log with the event.
    pub fn level(&self) -> Level {
        match self {
            Self::CommandFailed(_)
            | Self::Failed(_)
            | Self::TryFailed { .. }
            | Self::NotSent { idle: None, .. }
            | Self::Survivor { .. }
            | Self::RetriesEnded(_)
            | Self::FinallyContinues { .. }
            | Self::Resumed { .. } => Level::FAILURES,
            // A skipped cleanup is logged at every level.
            Self::FinallyCut { .. } => Level::NOTHING,
            // An attempt that reads nothing may well succeed, and nothing else would report that.
            Self::InputEnded(_)
            // The script may wait forever.
            | Self::NotSent { idle: Some(_), .. }
            | Self::EndedBy(_)
            | Self::Hanging { .. }
            | Self::Interrupted(_)
            | Self::Suspended(_)
            | Self::GroupEnded(_) => Level::ENDING,
            Self::Waiting { .. }
            | Self::Queued { .. }
            | Self::ResourcesAwaited { .. }
            | Self::CommandStarted(_)
            | Self::CommandSucceeded { .. }
            | Self::Assigned { .. } => Level::COMMANDS,
            Self::Attempt { .. }
            | Self::Delay { .. }
            | Self::Deferred { .. }
            | Self::Entered { .. }
            | Self::ResourcesAvailable { .. }
            | Self::TrySucceeded(_)
            | Self::Limit(_)
            | Self::Catch
            | Self::Finally
            | Self::Canceled
            | Self::Condition(_)
            | Self::Placed { .. }
            | Self::Avoided { .. }
            | Self::Iteration { .. }
            | Self::BranchEnded { .. }
            | Self::BranchSkipped { .. }
            | Self::Returned(_) => Level::STRUCTURES,
            Self::Spawned { .. }
            | Self::Exited { .. }
            | Self::Signaled { .. }
            | Self::Emptying { .. }
            | Self::Emptied { .. }
            | Self::Adopted { .. }
            | Self::Note(_) => Level::PROCESSES,
            Self::Span(_) => Level::SPANS,
        }
    }
}
