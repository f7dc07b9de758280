//! What has to be asked of the system.

use std::io;
use std::time::{Duration, Instant};

use super::super::marks::Mark;
use super::super::procs::list::{Marked, Process};
use ftsh_machine::effect::ProcessId;

/// What the system says of processes.
pub trait System {
    /// The children of this process that run no command. Those that have ended are gone from then on.
    /// None if that can't be told at the moment.
    fn orphans(&mut self) -> Option<Orphans>;

    /// Whether this process has no children at all.
    fn has_no_children(&mut self) -> bool;

    /// What a process's environment says.
    fn mark(&mut self, pid: i32) -> Marked;

    /// A process's name, for people.
    fn name(&mut self, pid: i32) -> String;

    /// A process's group, if it is there.
    fn group(&mut self, pid: i32) -> Option<i32>;

    /// Whether a group has members.
    fn is_group_alive(&mut self, group: i32) -> bool;

    /// Returns a process's children. Fails if the list cannot be read at the moment.
    fn children(&mut self, pid: i32) -> io::Result<Vec<i32>>;

    /// The processes in which a command's program is being loaded, by a worker that has gone too far to
    /// be stopped.
    fn loading(&mut self, command: ProcessId) -> Vec<i32>;

    /// Returns what there is to say of a process; none if there is no such process. Fails if that
    /// cannot be read at the moment.
    fn process(&mut self, pid: i32) -> io::Result<Option<Process>>;

    /// The time, and what this thread has had of a processor up to now.
    fn clock(&mut self) -> (Instant, Duration);

    /// All processes that run, each with its mark if that is of this run. None if the list cannot be
    /// read at the moment.
    fn marked(&mut self) -> Option<Vec<(Process, Option<Mark>)>>;

    /// Whether a process is this one, or one that it had before it began to start commands.
    fn is_own(&mut self, pid: i32) -> bool;
}

/// Processes that came to this one because they lost their parents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Those that live.
    pub alive: Vec<i32>,
    /// Those that have ended.
    pub ended: Vec<i32>,
}
