//! Settings of a driver, and its connections to the rest of the shell.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::control::ControlLink;
use crate::durations::DurationsConfig;
use crate::supervisor::Supervision;
use crate::tag::KillTimeout;
use crate::tty::TerminalRestore;
use ftsh_machine::record::{Level, LogRecord};

/// Writer of log records.
pub type Log = Box<dyn FnMut(&LogRecord)>;

/// Settings of a process driver that options and environment decide.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessConfig {
    /// Variables in the environment of every command, such as `FTSH_KILL_TIMEOUT`. They take
    /// precedence over exported ones.
    pub child_env: Vec<(&'static str, BString)>,
    /// Kill timeout of the shells that this one starts.
    pub kill_timeout: KillTimeout,
    /// Directory of the channels, if it is not the usual one.
    pub channels: Option<PathBuf>,
    /// Durations of earlier attempts.
    pub durations: DurationsConfig,
}

impl Default for ProcessConfig {
    fn default() -> Self {
        Self {
            child_env: Vec::new(),
            kill_timeout: KillTimeout::of(Duration::ZERO),
            channels: None,
            durations: DurationsConfig::default(),
        }
    }
}

/// Connections between a process driver and the rest of the shell.
pub struct Attachments {
    /// Name of the script, for the log.
    pub file: Arc<str>,
    /// Level up to which records are written.
    pub log_level: Level,
    /// Receiver of the records.
    pub log: Log,
    /// True if a terminal may show the state of the run.
    pub status_line: bool,
    /// True if the script has lines that its user knows.
    pub has_lines: bool,
    /// Receiver of the visibility of the status line, called shortly after a `try` has begun to
    /// wait. The argument is true if the line shows the delay.
    pub line_shows: Box<dyn FnMut(bool)>,
    /// Result of `supervise`, if there is a supervisor.
    pub supervision: Option<Supervision>,
    /// Modes that the terminal gets if the supervisor is killed.
    pub restore: Option<TerminalRestore>,
    /// Age of the run when its last shell ended. The clock of the driver continues there.
    pub elapsed: Duration,
    /// Remote control of this shell, if another machine started it.
    pub control: Option<ControlLink>,
}

impl Default for Attachments {
    /// Nothing is attached.
    fn default() -> Self {
        Self {
            file: "".into(),
            log_level: Level::NOTHING,
            log: Box::new(|_| ()),
            status_line: false,
            has_lines: true,
            line_shows: Box::new(|_| ()),
            supervision: None,
            restore: None,
            elapsed: Duration::ZERO,
            control: None,
        }
    }
}
