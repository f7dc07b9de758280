//! Actions that scopes request of the driver, and steps and ends that it reports to them.

use ftsh_machine::effect::{ProcessId, ScopeId, Signal};
use ftsh_machine::record::LogEvent;

/// Action for the driver. Actions must be performed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScopeAction {
    /// Send a signal and SIGCONT to a process or, if negative, to a group.
    Signal(i32, Signal),
    /// Send SIGKILL to the group of a command whose scope was closed before the start.
    KillGroup(i32),
    /// Kill processes with all their descendants, and call `ScopeTree::killed` with the result.
    KillTrees(ScopeId, Vec<i32>),
    /// Prevent the start of a command. If the start has not begun, the command is over.
    Cancel(ProcessId),
    /// Report that a scope is empty, or was given up.
    Emptied(ScopeId),
    /// Write an event to the log.
    Log(LogEvent),
}

/// Step towards the end of everything in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndStep {
    /// First signal of the scopes: SIGTERM, or the signal that was set.
    First,
    /// SIGTERM where the first signal was another one.
    Escalate,
    /// SIGKILL.
    Kill {
        /// True if killing is never given up.
        strong: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedCommand {
    /// Scope of the command.
    pub scope: ScopeId,
    /// True if the machine waits for the end of the command.
    pub is_awaited: bool,
}
