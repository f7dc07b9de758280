//! What really became of branches, whoever was told what.

use bstr::BString;

use super::job::Job;
use ftsh_machine::Time;
use ftsh_machine::effect::{ProcessId, ScopeId, TaskId};
use ftsh_machine::packed::EndedBranch;

/// A branch that has begun on a node.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What the machine at the head calls it.
    pub process: ProcessId,
    /// The task that it is there.
    pub task: TaskId,
    /// The family it belongs to.
    pub scope: ScopeId,
    /// The machine.
    pub node: String,
    /// When it began.
    pub began: Time,
    /// Since when nothing is left of it.
    pub over: Option<Time>,
    /// How it ended, if it has told that; the head may not have heard.
    pub ended: Option<EndedBranch>,
    /// What it has written to its descriptors 1 and 2, its own words but no record among it.
    pub printed: [BString; 2],
    /// What of that the head has written.
    pub heard: [BString; 2],
}

impl Attempt {
    /// One that begins now on the node of this name.
    pub(super) fn new(job: &Job, node: &str, now: Time) -> Self {
        Self {
            process: job.process,
            task: job.task,
            scope: job.scope,
            node: node.into(),
            began: now,
            over: None,
            ended: None,
            printed: Default::default(),
            heard: Default::default(),
        }
    }
}
