//! Queue of an engine.

use std::fmt::Debug;

use bstr::{BStr, BString};

/// Queue that submitted branches wait in.
pub(crate) trait BatchQueue: Debug {
    /// True if [`list`](Self::list) shows a branch that was submitted with these options.
    fn shows(&self, options: &BStr) -> bool;

    /// Returns the command that lists the waiting and running jobs, each on its own line.
    fn list(&self) -> Vec<BString>;

    /// True for a variable that would hide jobs from the list.
    fn is_filter(&self, _variable: &[u8]) -> bool {
        false
    }

    /// Parses a line of the list.
    fn parse<'a>(&self, line: &'a str) -> Option<QueueEntry<'a>>;

    /// Returns the job that waits for its turn, by the messages of the command that submitted the
    /// job.
    fn pending_job<'a>(&self, messages: &'a str) -> Option<&'a str>;
}

/// Job in the list of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry<'a> {
    /// The engine's name of the job.
    pub job: &'a str,
    /// The shell's name of the job.
    pub name: &'a str,
    /// Machine that the job runs on; none while the job waits.
    pub node: Option<&'a str>,
}
