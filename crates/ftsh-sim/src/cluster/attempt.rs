//! True course of the branches, regardless of the reports.

use bstr::BString;

use super::job::SimulatedJob;
use super::node::Fault;
use ftsh_machine::Time;
use ftsh_machine::effect::{ProcessId, ScopeId, TaskId};
use ftsh_machine::packed::EndedBranch;

/// A branch that has begun on a node.
#[derive(Clone, Debug)]
pub struct NodeAttempt {
    /// Id of the branch in the machine of the head.
    pub process: ProcessId,
    /// Task of the branch in the machine of the head.
    pub task: TaskId,
    /// Scope of the branch.
    pub scope: ScopeId,
    /// Node of the branch.
    pub node: String,
    /// Fault of the engine or the node.
    pub fault: Option<Fault>,
    /// Start of the branch.
    pub began: Time,
    /// Time from which no process of the branch is left.
    pub over: Option<Time>,
    /// Result that the node has reported; the report may be lost.
    pub ended: Option<EndedBranch>,
    /// Output of the branch on descriptors 1 and 2, without messages of the node.
    pub printed: [BString; 2],
    /// Part of the output that the head has received.
    pub received: [BString; 2],
    /// True if the branch gives files.
    pub gives_files: bool,
    /// True once the head has moved the files to their places.
    pub placed: bool,
}

impl NodeAttempt {
    /// Creates the attempt of a branch that begins now.
    pub(super) fn new(job: &SimulatedJob, node: &str, now: Time) -> Self {
        Self {
            process: job.process,
            task: job.task,
            scope: job.scope,
            node: node.into(),
            fault: job.fault,
            began: now,
            over: None,
            ended: None,
            printed: Default::default(),
            received: Default::default(),
            gives_files: !job.head.branch().packed.files.gives.is_empty(),
            placed: false,
        }
    }
}
