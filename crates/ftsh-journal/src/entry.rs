//! Content of a journal.
//!
//! The format contains the machine's events: their variants and fields change only with
//! [`BEHAVIOR`](ftsh_machine::BEHAVIOR), by which a journal is refused.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::beginning::Beginning;
use super::started::Started;
use ftsh_machine::Event;
use ftsh_machine::effect::{BufferId, OperationId};
use ftsh_machine::outcome::Outcome;
use ftsh_machine::record::LogEvent;

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
        /// Event, or the time alone.
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

/// Delivery to the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Delivered {
    /// The time alone.
    Time,
    /// An event.
    Event(Event),
    /// `Event::Done` with the content of a buffer, which earlier entries record.
    Content { operation: OperationId, buffer: BufferId },
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
