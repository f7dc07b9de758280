//! Starts of a run, which may continue in many processes.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

/// Process that begins or continues a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Moment of the start, since 1970.
    pub at: Duration,
    /// Moment of the start by the monotonic clock, since the boot.
    pub since_boot: Duration,
    /// Id of the boot.
    pub boot: String,
    /// Age of the run at the start.
    pub elapsed: Duration,
    /// Process id of the shell.
    pub pid: u32,
    /// Process id of the interpreter.
    pub interpreter: u32,
    /// Tag in the environment of each command.
    pub mark: String,
    /// Working directory at the start.
    pub directory: BString,
    /// File mode creation mask.
    pub umask: u16,
    /// Ignored signals.
    pub ignored: Vec<i32>,
    /// User id of the shell.
    pub user: u32,
    /// Version of the shell, for messages.
    pub version: String,
}
