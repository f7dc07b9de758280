//! Configuration of a run.

use std::time::Duration;

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::{
    record::{Level, spans::TraceContext},
    time::Deadline,
};
use crate::secrets::Secrets;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::clauses::On;

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Config {
    /// The shell's process id, `$$`.
    pub pid: u32,
    /// The umask that the shell was started with.
    pub umask: u16,
    /// True if the shell's standard input is a pipe or a socket, which can be read only once.
    pub passing_input: bool,
    /// Default policy of a `try` without a policy.
    pub backoff: Policy,
    /// Time between the first signal to canceled processes and SIGKILL.
    pub kill_timeout: Duration,
    /// True if SIGKILL is repeated until nothing is left.
    pub kill_strong: bool,
    /// True if processes that a successful script leaves running are ended.
    pub no_leftovers: bool,
    /// True if an unset variable is empty, as in 2003, instead of a failure.
    pub unset_is_empty: bool,
    /// Default location of branches, for a `forall` without `on`; `None` for this machine.
    pub on: Option<On<BString>>,
    /// Deadline of the whole run.
    pub deadline: Deadline,
    /// Place of the run in a distributed trace, which programs learn; `None` without a trace.
    pub trace: Option<TraceContext>,
    /// Level of the log. Each machine of a run has its own.
    #[serde(skip)]
    pub log_level: Level,
    /// Values to hide in messages and logs.
    pub secrets: Secrets,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            pid: 0,
            umask: 0o022,
            passing_input: false,
            backoff: Policy::default(),
            kill_timeout: Duration::from_secs(30),
            kill_strong: true,
            no_leftovers: false,
            unset_is_empty: false,
            on: None,
            deadline: Deadline::NONE,
            trace: None,
            log_level: Level::NOTHING,
            secrets: Secrets::default(),
        }
    }
}
