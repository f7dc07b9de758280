//! Boundary of the scopes: actions that they request of the driver, and queries about processes.

use std::io;
use std::time::{Duration, Instant};

use crate::procs::{ProcessEntry, TagLookup};
use crate::tag::ScopeTag;
use ftsh_machine::effect::{ProcessId, ScopeId, Signal};
use ftsh_machine::record::LogEvent;

/// Source of information about processes.
pub(crate) trait ScopeQueries {
    /// Returns the children of this process that run no command, and reaps those that have ended.
    /// None if they cannot be listed now.
    fn orphans(&mut self) -> Option<OrphanList>;

    /// True if this process has no children at all.
    fn has_no_children(&mut self) -> bool;

    /// Reads the tag of a process.
    fn tag(&mut self, pid: i32) -> TagLookup;

    /// Returns the name of a process, for messages.
    fn name(&mut self, pid: i32) -> String;

    /// Returns the group of a process, if it exists.
    fn group(&mut self, pid: i32) -> Option<i32>;

    /// True if a group has members.
    fn is_group_alive(&mut self, group: i32) -> bool;

    /// Returns the children of a process. Fails if the list cannot be read now.
    fn children(&mut self, pid: i32) -> io::Result<Vec<i32>>;

    /// Returns the processes in which a worker is loading a command's program and can no longer be
    /// interrupted.
    fn loading(&mut self, command: ProcessId) -> Vec<i32>;

    /// Returns the entry of a process; none if there is no such process. Fails if the entry cannot
    /// be read now.
    fn process(&mut self, pid: i32) -> io::Result<Option<ProcessEntry>>;

    /// Returns the time, and the CPU time used by this thread.
    fn clock(&mut self) -> (Instant, Duration);

    /// Returns all running processes with their tags of this run. None if the list cannot be read
    /// now.
    fn tagged(&mut self) -> Option<Vec<(ProcessEntry, Option<ScopeTag>)>>;

    /// True for this process and for children it had before its first command.
    fn is_own(&mut self, pid: i32) -> bool;
}

/// Children of this process that lost their original parents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OrphanList {
    /// Living orphans.
    pub alive: Vec<i32>,
    /// Orphans that have ended.
    pub ended: Vec<i32>,
}

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
