//! Content of a journal, in types of its own.
//!
//! The types of the machine may change at any time, and these types only with the format.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::beginning::Beginning;
use super::started::Started;
use ftsh_machine::channels::Admission;
use ftsh_machine::effect::{BufferId, OperationId, ProcessId, ScopeId};
use ftsh_machine::event::{
    CommandStatus, Event, MemoryUse, Refusal, Reply, Returned, SpawnError, SpawnErrorKind,
    Suspension,
};
use ftsh_machine::outcome::Outcome;
use ftsh_machine::record::LogEvent;
use ftsh_syntax::slug::Slug;

/// Head of a frame, which precedes the entries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FrameHead {
    /// Number of the frame, from 0.
    pub number: u64,
    /// Number of effects requested before the frame was written.
    pub effects: u64,
    /// Checksum of these effects.
    pub digest: u32,
}

/// Entry of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum JournalEntry {
    /// Beginning of the run.
    Began(Box<Beginning>),
    /// Delivery of an event or of the time to the machine.
    Delivered {
        /// Nanoseconds since the previous delivery.
        later: u64,
        /// Event, or the time.
        delivered: Delivered,
    },
    /// Log record that only the driver can make.
    Noted {
        /// Nanoseconds since the last delivery.
        later: u64,
        /// Number of effects since the last delivery; `u32::MAX` if the machine waited.
        effects: u32,
        /// Line of the script.
        line: u32,
        /// Content of the record.
        noted: Noted,
    },
    /// End of the run.
    Over(Over),
    /// Start of a process that begins or continues the run.
    Started(Box<Started>),
    /// Content of a buffer from a byte on, valid from the next delivery on.
    Written {
        /// Id of the buffer.
        buffer: u64,
        /// Position of the first byte.
        from: u64,
        /// Content from this position to the end of the buffer or to the next entry.
        bytes: BString,
    },
    /// Position of a shared input, valid from the next delivery on.
    Position {
        /// Table for which the input was opened.
        io: u64,
        /// Index of the change in the table.
        change: u32,
        /// Position in bytes from the beginning.
        at: u64,
    },
    /// End of the shell, before the end of the run.
    Suspended {
        /// Nanoseconds since the last delivery.
        later: u64,
        /// Number of effects requested so far. Later effects of the machine were never begun.
        effects: u64,
        /// Signal that suspended the run, or `None` for a deadline.
        signal: Option<i32>,
    },
    /// Report of the end of the run to the user.
    Reported,
    /// Lease of remote branches after the end of this process, in nanoseconds. No branch remains if
    /// the lease is 0.
    Outlived { by: u64 },
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Over {
    /// End with an exit status.
    Exited(u8),
    /// End by a signal.
    Interrupted(i32),
    /// Replacement of the shell by a program, whose end is unknown.
    Replaced,
}

impl From<&Outcome> for Over {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Interrupted(signal) => Self::Interrupted(*signal),
            outcome => Self::Exited(outcome.exit_code()),
        }
    }
}

/// Delivery to the machine: an [`Event`], or only the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Delivered {
    /// Delivery of the time alone.
    Time,
    /// `Event::Spawned`
    Spawned { process: u64, pid: i32 },
    /// `Event::SpawnFailed`
    SpawnFailed { process: u64, kind: RecordedSpawnError, message: String },
    /// `Event::Exited`
    Exited { process: u64, end: RecordedStatus, line: Option<BString>, unread: bool },
    /// `Event::Done`
    Done { operation: u64, answer: RecordedReply },
    /// `Event::Queued`
    Queued { operation: u64 },
    /// `Event::Emptied`
    Emptied { scope: u64 },
    /// `Event::Interrupted`
    Interrupted(i32),
    /// `Event::Resumed`
    Resumed { lost: Vec<u64>, committed: Vec<u64> },
    /// `Event::Suspended`: the signal, or none for a deadline
    Suspended(Option<i32>),
    /// `Event::Placed`
    Placed { process: u64, node: String },
    /// `Event::Returned`, stored as in messages between machines
    Returned { process: u64, returned: Returned },
    /// `Event::SpawnFailed` with the name of the system's error
    SpawnRefused { process: u64, kind: RecordedSpawnError, message: String, errno: String },
    /// `Event::Stalled`
    Stalled { scope: u64 },
    /// `Event::OverMemory`
    OverMemory { scope: u64, used: u64, largest: String, size: u64 },
}

/// `CommandStatus`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedStatus {
    Exited(i32),
    Signaled(i32),
    Lost,
    OutOfMemory,
}

/// `SpawnErrorKind`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordedSpawnError {
    NotFound,
    NotExecutable,
    Redirect,
    System,
    Builtin,
}

/// `Reply`, or a refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RecordedReply {
    Truth(bool),
    Text(BString),
    Words(Vec<BString>),
    Buffers(Vec<u64>),
    Admitted,
    NoBudget,
    Broken(Duration),
    Refused(String),
    /// Content of a buffer, as recorded by earlier entries.
    Recorded {
        buffer: u64,
    },
    /// Refusal with the name of the system's error.
    RefusedBySystem {
        message: String,
        errno: String,
    },
    /// Failure of a filter.
    Failed {
        slug: String,
        message: String,
    },
}

impl From<&Event> for Delivered {
    fn from(event: &Event) -> Self {
        match event {
            Event::Spawned { process, pid } => Self::Spawned { process: process.0, pid: *pid },
            Event::SpawnFailed { process, error } => {
                let SpawnError { kind, message, errno } = error.clone();
                let (process, kind) = (process.0, kind.into());
                match errno {
                    Some(errno) => Self::SpawnRefused { process, kind, message, errno },
                    None => Self::SpawnFailed { process, kind, message },
                }
            }
            Event::Exited { process, status, line, reader_gone } => Self::Exited {
                process: process.0,
                end: (*status).into(),
                line: line.clone(),
                unread: *reader_gone,
            },
            Event::Done { operation, result } => {
                Self::Done { operation: operation.0, answer: result.into() }
            }
            Event::Placed { process, node } => {
                Self::Placed { process: process.0, node: node.clone() }
            }
            Event::Returned { process, returned } => {
                Self::Returned { process: process.0, returned: returned.clone() }
            }
            Event::Queued { operation } => Self::Queued { operation: operation.0 },
            Event::Emptied { scope } => Self::Emptied { scope: scope.0 },
            Event::Stalled { scope } => Self::Stalled { scope: scope.0 },
            Event::OverMemory { scope, memory: MemoryUse { used, largest, size } } => {
                let largest = largest.clone();
                Self::OverMemory { scope: scope.0, used: *used, largest, size: *size }
            }
            Event::Interrupted(signal) => Self::Interrupted(*signal),
            Event::Resumed { lost, committed } => Self::Resumed {
                lost: lost.iter().map(|process| process.0).collect(),
                committed: committed.iter().map(|operation| operation.0).collect(),
            },
            Event::Suspended(Suspension::Signal(signal)) => Self::Suspended(Some(*signal)),
            Event::Suspended(Suspension::Deadline) => Self::Suspended(None),
        }
    }
}

impl Delivered {
    /// Returns the event, or `None` for the time alone.
    pub(crate) fn into_event(self) -> Option<Event> {
        Some(match self {
            Self::Time => return None,
            Self::Spawned { process, pid } => Event::Spawned { process: ProcessId(process), pid },
            Self::SpawnFailed { process, kind, message } => Event::SpawnFailed {
                process: ProcessId(process),
                error: SpawnError::new(kind.into(), message),
            },
            Self::SpawnRefused { process, kind, message, errno } => Event::SpawnFailed {
                process: ProcessId(process),
                error: SpawnError { kind: kind.into(), message, errno: Some(errno) },
            },
            Self::Exited { process, end, line, unread } => Event::Exited {
                process: ProcessId(process),
                status: end.into(),
                line,
                reader_gone: unread,
            },
            Self::Done { operation, answer } => {
                Event::Done { operation: OperationId(operation), result: answer.into() }
            }
            Self::Placed { process, node } => Event::Placed { process: ProcessId(process), node },
            Self::Returned { process, returned } => {
                Event::Returned { process: ProcessId(process), returned }
            }
            Self::Queued { operation } => Event::Queued { operation: OperationId(operation) },
            Self::Emptied { scope } => Event::Emptied { scope: ScopeId(scope) },
            Self::Stalled { scope } => Event::Stalled { scope: ScopeId(scope) },
            Self::OverMemory { scope, used, largest, size } => {
                let memory = MemoryUse { used, largest, size };
                Event::OverMemory { scope: ScopeId(scope), memory }
            }
            Self::Interrupted(signal) => Event::Interrupted(signal),
            Self::Resumed { lost, committed } => Event::Resumed {
                lost: lost.into_iter().map(ProcessId).collect(),
                committed: committed.into_iter().map(OperationId).collect(),
            },
            Self::Suspended(signal) => {
                Event::Suspended(signal.map_or(Suspension::Deadline, Suspension::Signal))
            }
        })
    }
}

impl From<CommandStatus> for RecordedStatus {
    fn from(status: CommandStatus) -> Self {
        match status {
            CommandStatus::Exited(code) => Self::Exited(code),
            CommandStatus::Signaled(signal) => Self::Signaled(signal),
            CommandStatus::OutOfMemory => Self::OutOfMemory,
            CommandStatus::Lost => Self::Lost,
        }
    }
}

impl From<RecordedStatus> for CommandStatus {
    fn from(end: RecordedStatus) -> Self {
        match end {
            RecordedStatus::Exited(code) => Self::Exited(code),
            RecordedStatus::Signaled(signal) => Self::Signaled(signal),
            RecordedStatus::Lost => Self::Lost,
            RecordedStatus::OutOfMemory => Self::OutOfMemory,
        }
    }
}

impl From<SpawnErrorKind> for RecordedSpawnError {
    fn from(kind: SpawnErrorKind) -> Self {
        match kind {
            SpawnErrorKind::NotFound => Self::NotFound,
            SpawnErrorKind::NotExecutable => Self::NotExecutable,
            SpawnErrorKind::Redirect => Self::Redirect,
            SpawnErrorKind::System => Self::System,
            SpawnErrorKind::Builtin => Self::Builtin,
        }
    }
}

impl From<RecordedSpawnError> for SpawnErrorKind {
    fn from(trouble: RecordedSpawnError) -> Self {
        match trouble {
            RecordedSpawnError::NotFound => Self::NotFound,
            RecordedSpawnError::NotExecutable => Self::NotExecutable,
            RecordedSpawnError::Redirect => Self::Redirect,
            RecordedSpawnError::System => Self::System,
            RecordedSpawnError::Builtin => Self::Builtin,
        }
    }
}

impl From<&Result<Reply, Refusal>> for RecordedReply {
    fn from(result: &Result<Reply, Refusal>) -> Self {
        match result {
            Ok(Reply::Truth(truth)) => Self::Truth(*truth),
            Ok(Reply::Text(text)) => Self::Text(text.clone()),
            Ok(Reply::Words(words)) => Self::Words(words.clone()),
            Ok(Reply::Buffers(buffers)) => Self::Buffers(buffers.iter().map(|it| it.0).collect()),
            Ok(Reply::Admission(Admission::Admitted)) => Self::Admitted,
            Ok(Reply::Admission(Admission::NoBudget)) => Self::NoBudget,
            Ok(Reply::Admission(Admission::Broken(time))) => Self::Broken(*time),
            Ok(Reply::Failed(slug, message)) => {
                Self::Failed { slug: slug.name().into(), message: message.clone() }
            }
            Err(Refusal { message, errno: None }) => Self::Refused(message.clone()),
            Err(Refusal { message, errno: Some(errno) }) => {
                Self::RefusedBySystem { message: message.clone(), errno: errno.clone() }
            }
        }
    }
}

impl From<RecordedReply> for Result<Reply, Refusal> {
    fn from(answer: RecordedReply) -> Self {
        Ok(match answer {
            RecordedReply::Truth(truth) => Reply::Truth(truth),
            RecordedReply::Text(text) => Reply::Text(text),
            RecordedReply::Words(words) => Reply::Words(words),
            RecordedReply::Buffers(buffers) => {
                Reply::Buffers(buffers.into_iter().map(BufferId).collect())
            }
            RecordedReply::Admitted => Reply::Admission(Admission::Admitted),
            RecordedReply::NoBudget => Reply::Admission(Admission::NoBudget),
            RecordedReply::Broken(time) => Reply::Admission(Admission::Broken(time)),
            RecordedReply::Failed { slug, message } => match Slug::named(&slug) {
                Some(slug) => Reply::Failed(slug, message),
                None => return Err(Refusal::new(message)),
            },
            RecordedReply::Refused(message) => return Err(Refusal::new(message)),
            RecordedReply::RefusedBySystem { message, errno } => {
                return Err(Refusal { message, errno: Some(errno) });
            }
            RecordedReply::Recorded { buffer } => {
                let message = format!("the content of buffer {buffer} isn't known");
                return Err(Refusal::new(message));
            }
        })
    }
}

/// Log record that only a driver makes, from a `LogEvent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Noted {
    Spawned { pid: i32, command: String },
    Exited { pid: i32, status: String },
    Signaled { pid: i32, signal: i32 },
    Emptying { scope: u64, kill: bool },
    Emptied { scope: u64, processes: u64, elapsed: Duration },
    Adopted { pid: i32, command: String },
    Survivor { pid: i32, command: String },
    Note(String),
    Hanging { call: String },
}

impl Noted {
    /// Returns `None` for records of the machine, because a replayed machine logs them again.
    pub fn new(event: &LogEvent) -> Option<Self> {
        Some(match event.clone() {
            LogEvent::Spawned { pid, command } => Self::Spawned { pid, command },
            LogEvent::Exited { pid, status } => Self::Exited { pid, status },
            LogEvent::Signaled { pid, signal } => Self::Signaled { pid, signal },
            LogEvent::Emptying { scope, kill } => Self::Emptying { scope, kill },
            LogEvent::Emptied { scope, processes, elapsed } => {
                Self::Emptied { scope, processes: processes as u64, elapsed }
            }
            LogEvent::Adopted { pid, command } => Self::Adopted { pid, command },
            LogEvent::Survivor { pid, command } => Self::Survivor { pid, command },
            LogEvent::Note(text) => Self::Note(text),
            LogEvent::Hanging { call } => Self::Hanging { call },
            _ => return None,
        })
    }
}

impl From<Noted> for LogEvent {
    fn from(noted: Noted) -> Self {
        match noted {
            Noted::Spawned { pid, command } => Self::Spawned { pid, command },
            Noted::Exited { pid, status } => Self::Exited { pid, status },
            Noted::Signaled { pid, signal } => Self::Signaled { pid, signal },
            Noted::Emptying { scope, kill } => Self::Emptying { scope, kill },
            Noted::Emptied { scope, processes, elapsed } => {
                Self::Emptied { scope, processes: processes as usize, elapsed }
            }
            Noted::Adopted { pid, command } => Self::Adopted { pid, command },
            Noted::Survivor { pid, command } => Self::Survivor { pid, command },
            Noted::Note(text) => Self::Note(text),
            Noted::Hanging { call } => Self::Hanging { call },
        }
    }
}
