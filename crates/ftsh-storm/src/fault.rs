//! Faults of commands.

use serde::{Deserialize, Serialize};

/// Exit status of a command with a fault: `EX_TEMPFAIL` of sysexits.h, a temporary failure.
pub(crate) const FAULT_STATUS: i32 = 75;

/// Fault of one command in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandFault {
    /// The command fails before it does anything.
    Failure,
    /// The command does its work, and then fails.
    LostAnswer,
    /// The command is killed after half of its usual duration.
    KilledHalfway,
    /// The command hangs until its limit.
    Hang,
    /// The shell is killed when the command has ended, and resumes from its journal.
    ShellKilled,
}

impl CommandFault {
    /// All faults.
    pub const ALL: [Self; 5] =
        [Self::Failure, Self::LostAnswer, Self::KilledHalfway, Self::Hang, Self::ShellKilled];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::LostAnswer => "lost answer",
            Self::KilledHalfway => "killed halfway",
            Self::Hang => "hang",
            Self::ShellKilled => "shell killed",
        }
    }

    /// Returns the words for people, after `after`.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Failure => "a failure",
            Self::LostAnswer => "a lost answer",
            Self::KilledHalfway => "a kill halfway",
            Self::Hang => "a hang",
            Self::ShellKilled => "a kill of the shell",
        }
    }
}
