//! Queue of an engine.

use std::fmt::Debug;

use bstr::{BStr, BString};
use ftsh_syntax::engine::EngineId;

/// Queue that submitted branches wait in.
pub(crate) trait BatchQueue: Debug {
    /// True if [`list`](Self::list) shows a branch that was submitted with these options.
    fn shows(&self, options: &BStr) -> bool;

    /// Returns the command that lists the waiting and running jobs, each on its own line, and
    /// variables for this command.
    fn list(&self, wanted: &JobList) -> (Vec<BString>, Vec<(BString, BString)>);

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

/// Jobs to look for in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobList<'a> {
    /// Engine of the queue.
    pub engine: EngineId,
    /// The shell's names of the jobs.
    pub jobs: &'a [String],
    /// Words of the clause that submitted the jobs.
    pub words: &'a BStr,
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
    /// True if the job has not been lost by the queue.
    pub is_pending: bool,
}
