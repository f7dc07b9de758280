//! Instructions for one run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::CommandId;
use crate::fault::CommandFault;

/// Instructions for one run of a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSpec {
    /// Seed of random choices of the shell and of models.
    pub seed: u64,
    /// Fault of the run.
    pub injection: Option<Injection>,
    /// Models of commands, as text. The first that applies counts.
    pub models: Vec<String>,
    /// Directory with the numbers of runs of the models.
    pub calls: PathBuf,
    /// Directory that precedes `PATH` of commands. Its programs take the place of others.
    pub programs: PathBuf,
    /// Directories whose changes are attributed to commands.
    pub directories: Vec<PathBuf>,
    /// File that receives the trace.
    pub trace: PathBuf,
    /// True if the run is recorded, so that a later start resumes the run.
    pub is_recorded: bool,
    /// Number of commands after which a run counts as endless.
    pub max_commands: u64,
    /// Real time after which a run counts as endless.
    pub max_time: Duration,
    /// Real time without an event after which commands count as waiting for one that hangs.
    pub max_silence: Duration,
}

/// Fault of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Injection {
    /// Command with the fault.
    pub command: CommandId,
    /// Kind of the fault.
    pub fault: CommandFault,
    /// Time until the kill, for [`CommandFault::KilledHalfway`].
    pub halfway: Duration,
}
