//! State concerning other machines.

use std::sync::Arc;

use crate::MAIN;
use crate::effect::{ProcessId, TaskId, Watch};
use crate::remote::engines::{EngineLoad, Engines};
use crate::remote::packed::{PackedBranch, Unpackable};
use crate::unwind::ending::TaskEnding;
use ftsh_syntax::Source;
use ftsh_syntax::ast::Name;
use ftsh_syntax::engine::EngineId;

/// Packed branches, each with its local task.
pub type Packed = Vec<(TaskId, Result<PackedBranch, Unpackable>)>;

/// Context of a machine that runs a branch of another machine's run.
#[derive(Debug)]
pub(crate) struct RemoteRoot {
    /// Texts received with the branch.
    pub texts: Vec<Arc<Source>>,
    /// Channels occupied by enclosing attempts.
    pub inside: Vec<String>,
    /// True if an enclosing attempt is a retry.
    pub is_retried: bool,
    /// Conditions of the enclosing attempts on the processes of the branch.
    pub conditions: Watch,
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
        self.root.as_ref().is_some_and(|root| root.inside.iter().any(|inside| inside == channel))
    }

    /// Returns true if an attempt around the branch is a retry.
    pub(crate) fn is_retried(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.is_retried)
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
            inside: vec!["disk".into()],
            is_retried: true,
            conditions: Watch::default(),
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
