//! Branches that run on other machines, and the context of a branch that runs here.

use std::sync::Arc;

use bstr::BString;

use super::{
    engines,
    engines::{EngineLoad, Engines},
    nodes::Shunned,
};
use crate::MAIN;
use crate::effect::{ProcessId, TaskId};
use crate::endings::TaskEnding;
use crate::outcome::Failure;
use crate::packed::{BranchFiles, PackedBranch, PackedContext, Unpackable};
use crate::program::Address;
use crate::scheduler::TimerKey;
use crate::time::Time;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;
use ftsh_syntax::backoff::Backoff;
use ftsh_syntax::clauses::On;
use ftsh_syntax::engine::EngineId;

/// Default maximum number of remote branches at once. Each branch occupies several local processes.
pub(crate) const MAX_REMOTE_BRANCHES: u64 = 200;

/// Engine of the branches of a `forall`, and limits.
#[derive(Debug)]
pub(crate) struct RemoteTarget {
    /// Engine with its argument.
    pub on: On<BString>,
    /// Address of the dispatching instruction.
    pub at: Address,
    /// Maximum number of dispatched branches that have not begun.
    pub most_pending: usize,
    /// Maximum number of new attempts of a lost branch.
    pub retry_lost: u64,
}

/// Frame of a remote branch, which may be sent several times.
#[derive(Debug)]
pub(crate) struct RemoteFrame {
    /// Engine of the branch, and limits.
    pub elsewhere: Arc<RemoteTarget>,
    /// Number of losses.
    pub lost: u64,
    /// Number of machines that refused the branch.
    pub refusals: u32,
    /// Delays before the next dispatch after more than one refusal.
    pub pauses: Backoff,
    /// Machine of the branch, with the beginning of the branch there.
    pub node: Option<(String, Time)>,
    /// Machines where the branch failed to begin or was lost.
    pub shunned: Shunned,
    /// Machines avoided by the last dispatch.
    pub avoided: Vec<String>,
    /// Reason why the branch is not running.
    pub failure: Option<Arc<Failure>>,
    /// Texts that failures of the branch refer to.
    pub texts: Vec<Arc<Source>>,
    /// Files that travel with the branch.
    pub files: BranchFiles,
}

/// State of a task whose branch is remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteState {
    /// Waiting for permission to dispatch.
    Waiting(Option<TimerKey>),
    /// Dispatched.
    Sent(ProcessId),
    /// Ended by a deadline on the node, which is about to pass in this run too.
    OutOfTime,
}

impl RemoteFrame {
    /// Returns the machine of the branch.
    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_ref().map(|(node, _)| node.as_str())
    }

    /// Creates the frame of a branch that has not been dispatched.
    pub(crate) fn new(elsewhere: Arc<RemoteTarget>, files: BranchFiles) -> Self {
        Self {
            elsewhere,
            lost: 0,
            refusals: 0,
            pauses: Backoff::new(engines::policy()),
            node: None,
            shunned: Shunned::default(),
            avoided: Vec::new(),
            failure: None,
            texts: Vec::new(),
            files,
        }
    }
}

/// Packed branches, each with its local task.
pub type Packed = Vec<(TaskId, Result<PackedBranch, Unpackable>)>;

/// Context of a machine that runs a branch of another machine's run.
#[derive(Debug)]
pub(crate) struct RemoteRoot {
    /// Texts received with the branch.
    pub texts: Vec<Arc<Source>>,
    /// Context from the structures around the branch.
    pub around: PackedContext,
    /// Ending of the branch, once ended.
    pub ending: Option<TaskEnding>,
    /// Number of attempts made by the branch's tries, once ended.
    pub attempts: u64,
}

/// Engines of remote branches, packed branches, and the context of a machine that runs a branch of
/// another machine's run.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    engines: Engines,
    /// Branches packed since the last call of `take_packed`; `None` if packing is off.
    packing: Option<Packed>,
    /// Names of variables from the environment.
    inherited_names: Vec<Name>,
    root: Option<RemoteRoot>,
}

impl Remote {
    /// Creates the state of a run with the names of variables from its environment.
    pub(crate) fn new(inherited_names: Vec<Name>) -> Self {
        Self { inherited_names, ..Self::default() }
    }

    /// Returns the state of an engine.
    pub(crate) fn engine(&mut self, engine: EngineId) -> &mut EngineLoad {
        self.engines.of(engine)
    }

    /// Ends the wait of a task for an engine. Returns the engine if another branch can now be
    /// dispatched.
    pub(crate) fn leave(&mut self, task: TaskId, process: Option<ProcessId>) -> Option<EngineId> {
        self.engines.leave(task, process)
    }

    /// Iterates over the names of variables from the environment.
    pub(crate) fn inherited_names(&self) -> impl Iterator<Item = &Name> {
        self.inherited_names.iter()
    }

    /// Turns packing on.
    pub(crate) fn pack_branches(&mut self) {
        self.packing = Some(Vec::new());
    }

    /// Returns true if branches are packed as they begin.
    pub(crate) fn packs_branches(&self) -> bool {
        self.packing.is_some()
    }

    /// Keeps a packed branch.
    pub(crate) fn keep_packed(&mut self, branch: TaskId, packed: Result<PackedBranch, Unpackable>) {
        if let Some(packing) = &mut self.packing {
            packing.push((branch, packed));
        }
    }

    /// Takes the branches packed since the last call.
    pub(crate) fn take_packed(&mut self) -> Packed {
        self.packing.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets the context of a machine that runs a branch of another machine's run.
    pub(crate) fn set_root(&mut self, root: RemoteRoot) {
        self.root = Some(root);
    }

    /// Returns the context of the branch for which the machine was created.
    pub(crate) fn root(&self) -> Option<&RemoteRoot> {
        self.root.as_ref()
    }

    /// Returns the context of the branch for which the machine was created, mutable.
    pub(crate) fn root_mut(&mut self) -> Option<&mut RemoteRoot> {
        self.root.as_mut()
    }

    /// Returns true if a task is the parent of the branch for which the machine was created.
    pub(crate) fn is_root(&self, parent: TaskId) -> bool {
        parent == MAIN && self.root.is_some()
    }

    /// Returns true if an attempt around the branch occupies a channel.
    pub(crate) fn is_inside(&self, channel: &str) -> bool {
        self.root
            .as_ref()
            .is_some_and(|root| root.around.inside.iter().any(|inside| inside == channel))
    }

    /// Returns true if an attempt around the branch is a retry.
    pub(crate) fn is_retried(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.around.is_retried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_made_for_a_branch_has_its_context() {
        let mut remote = Remote::default();
        assert!(!remote.is_root(MAIN) && !remote.is_inside("disk") && !remote.is_retried());
        remote.set_root(RemoteRoot {
            texts: Vec::new(),
            around: PackedContext {
                inside: vec!["disk".into()],
                is_retried: true,
                ..PackedContext::default()
            },
            ending: None,
            attempts: 0,
        });
        assert!(remote.is_root(MAIN) && remote.is_inside("disk") && remote.is_retried());
        assert!(!remote.is_root(TaskId(1)) && !remote.is_inside("net"));
    }

    #[test]
    fn branches_are_packed_only_on_request() {
        let mut remote = Remote::default();
        remote.keep_packed(TaskId(1), Err(Unpackable::Atomic));
        assert!(remote.take_packed().is_empty());
        remote.pack_branches();
        remote.keep_packed(TaskId(2), Err(Unpackable::Atomic));
        assert_eq!(remote.take_packed().len(), 1);
        assert!(remote.take_packed().is_empty() && remote.packs_branches());
    }
}
