//! What a run is told from outside.

use std::time::Duration;

use bstr::BString;

use crate::record::Level;
use crate::secrets::Secrets;
use crate::time::Time;
use ftsh_syntax::backoff::Policy;
use ftsh_syntax::clauses::On;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The shell's process id, `$$`.
    pub pid: u32,
    /// The umask that the shell was started with.
    pub umask: u16,
    /// Whether the shell's standard input is a pipe or a socket: what comes through is there once.
    pub passing_input: bool,
    /// The delays of every `try` that names no policy.
    pub backoff: Policy,
    /// From the request to end to SIGKILL.
    pub kill_timeout: Duration,
    /// Whether SIGKILL is repeated until everything is gone.
    pub kill_strong: bool,
    /// Whether a variable that is set nowhere is empty, as in 2003, instead of a failure.
    pub unset_is_empty: bool,
    /// Where branches of a `forall` run that doesn't say so itself, if not here.
    pub on: Option<On<BString>>,
    /// A limit the whole run lives under.
    pub deadline: Option<Time>,
    /// What to log.
    pub log_level: Level,
    /// What isn't to be said.
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
            unset_is_empty: false,
            on: None,
            deadline: None,
            log_level: Level::NOTHING,
            secrets: Secrets::default(),
        }
    }
}
