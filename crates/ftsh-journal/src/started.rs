//! Starts of a run: it may go on in many processes, one after the other.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

/// A process that a run begins or goes on in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The moment, since 1970.
    pub at: Duration,
    /// The same by the clock that only goes forward while the machine is up.
    pub since_boot: Duration,
    /// While which boot that is.
    pub boot: String,
    /// What the run's own clock said then.
    pub elapsed: Duration,
    /// The process id of the shell, as its user knows it.
    pub pid: u32,
    /// That of the interpreter.
    pub interpreter: u32,
    /// What its commands carry in their environments.
    pub mark: String,
    /// Where it was started.
    pub directory: BString,
    /// The rights that new files don't get.
    pub umask: u16,
    /// The signals that it ignores.
    pub ignored: Vec<i32>,
    /// Whose it is.
    pub user: u32,
    /// The version of the shell, for people.
    pub version: String,
}
