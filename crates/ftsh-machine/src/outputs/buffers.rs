//! Buffers of output, and the relay of lines.

use std::collections::BTreeMap;

use crate::effect::{BufferId, OperationId, ProcessId, ScopeId, TaskId};
use crate::resources::ResourceHandle;

/// Maximum number of branches with buffered output, running or waiting to be written.
pub(crate) const MAX_BUFFERED_BRANCHES: usize = 256;

/// Output of a branch, until written or dropped.
#[derive(Debug)]
pub(crate) struct BufferedOutput {
    /// Output to descriptor 1.
    pub output: ResourceHandle<BufferId>,
    /// Output to descriptor 2.
    pub errors: ResourceHandle<BufferId>,
}

/// Output of a branch while it is written.
#[derive(Debug)]
pub(crate) struct OutputGroup {
    /// Id of the branch.
    pub task: TaskId,
    /// Buffers of the output.
    pub buffered: BufferedOutput,
    /// Name of the branch, as `name=word`.
    label: String,
    /// Remark about incomplete output, for a line before the output.
    remark: Option<&'static str>,
}

impl OutputGroup {
    /// Returns the part to write first.
    pub(crate) fn first(&self) -> GroupPart {
        if self.remark.is_some() { GroupPart::Remark } else { GroupPart::Output }
    }

    /// Line before the output.
    pub(crate) fn remark(&self) -> String {
        format!("ftsh: {} {}\n", self.label, self.remark.unwrap_or_default())
    }
}

/// Parts of a group, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupPart {
    /// Remark about the branch, to descriptor 2.
    Remark,
    /// Output to descriptor 1.
    Output,
    /// Output to descriptor 2.
    Errors,
}

impl GroupPart {
    /// Returns the next part.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Remark => Some(Self::Output),
            Self::Output => Some(Self::Errors),
            Self::Errors => None,
        }
    }
}

/// Part of a group being written.
#[derive(Debug)]
pub(crate) struct Flushing {
    /// Process that writes.
    pub process: ProcessId,
    /// Group being written.
    pub group: OutputGroup,
    /// Part being written.
    pub part: GroupPart,
}

/// Buffered output of all branches of a loop.
#[derive(Debug)]
pub(crate) struct OutputBuffers {
    /// True for the order of the words, false for the order of ending.
    in_order: bool,
    /// Running branches, each with its index.
    open: BTreeMap<TaskId, (u64, OutputGroup)>,
    begun: u64,
    /// Ended branches by turn.
    ended: BTreeMap<u64, OutputGroup>,
    turn: u64,
    /// Number of ended branches.
    count: u64,
    /// Part being written.
    pub flushing: Option<Flushing>,
    /// True if output can no longer be written.
    refused: bool,
    /// Scope of the writing processes, once an enclosing structure has cut the branches short.
    cut: Option<ScopeId>,
}

impl OutputBuffers {
    /// Creates an empty collection.
    pub(crate) fn new(in_order: bool) -> Self {
        Self {
            in_order,
            open: BTreeMap::new(),
            begun: 0,
            ended: BTreeMap::new(),
            turn: 0,
            count: 0,
            flushing: None,
            refused: false,
            cut: None,
        }
    }

    /// Adds a branch that begins; `label` is its `name=word`.
    pub(crate) fn begin(&mut self, task: TaskId, buffered: BufferedOutput, label: String) {
        self.open.insert(task, (self.begun, OutputGroup { task, buffered, label, remark: None }));
        self.begun += 1;
    }

    /// Marks a branch as ended.
    pub(crate) fn end(&mut self, task: TaskId) {
        let Some((place, group)) = self.open.remove(&task) else { return };
        if !self.refused {
            self.ended.insert(if self.in_order { place } else { self.count }, group);
        }
        self.count += 1;
    }

    /// Iterates over the standard error of the running branches, or of one of them.
    pub(crate) fn errors(
        &self,
        of: Option<TaskId>,
    ) -> impl Iterator<Item = &ResourceHandle<BufferId>> {
        let open = self.open.iter().filter(move |(task, _)| of.is_none_or(|of| of == **task));
        open.map(|(_, (_, group))| &group.buffered.errors)
    }

    /// Drops the output of a branch.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.open.remove(&task);
    }

    /// Returns true if another branch can begin.
    pub(crate) fn has_room(&self) -> bool {
        self.open.len() + self.ended.len() < MAX_BUFFERED_BRANCHES
    }

    /// Returns the next group to write, unless a group is being written.
    pub(crate) fn next(&mut self) -> Option<OutputGroup> {
        if self.flushing.is_some() {
            return None;
        }
        let group = self.ended.remove(&self.turn)?;
        self.turn += 1;
        Some(group)
    }

    /// Returns true if output of any branch is not yet written.
    pub(crate) fn is_unwritten(&self) -> bool {
        !(self.refused || self.open.is_empty() && self.is_done())
    }

    /// Stops writing, and queues the group to be written again as a whole. Returns the process that
    /// was writing.
    pub(crate) fn halt(&mut self) -> Option<ProcessId> {
        let Flushing { process, group, .. } = self.flushing.take()?;
        let remark = Some("printed this; part of it may be above:");
        self.turn -= 1;
        self.ended.insert(self.turn, OutputGroup { remark, ..group });
        Some(process)
    }

    /// Cuts all branches short. The remaining output is written in another scope, in order. Returns
    /// false if that scope is already writing.
    pub(crate) fn cut(&mut self, scope: ScopeId) -> bool {
        if self.cut.replace(scope) == Some(scope) {
            return false;
        }
        for (place, group) in std::mem::take(&mut self.open).into_values() {
            let turn = if self.in_order { place } else { self.count + place };
            let remark = Some("was canceled after printing this:");
            self.ended.insert(turn, OutputGroup { remark, ..group });
        }
        let groups = std::mem::take(&mut self.ended).into_values();
        (self.ended, self.turn) = ((0..).zip(groups).collect(), 0);
        true
    }

    /// Returns the scope that writes after a cut.
    pub(crate) fn scope(&self) -> Option<ScopeId> {
        self.cut
    }

    /// Returns true if the output of all ended branches is written.
    pub(crate) fn is_done(&self) -> bool {
        self.flushing.is_none() && self.ended.is_empty()
    }

    /// Returns the process that is writing.
    pub(crate) fn process(&self) -> Option<ProcessId> {
        self.flushing.as_ref().map(|letting| letting.process)
    }

    /// Returns the branches whose output is not yet written.
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        let open = self.open.keys().copied();
        let groups = self.flushing.iter().map(|it| &it.group).chain(self.ended.values());
        open.chain(groups.map(|group| group.task)).collect()
    }

    /// Drops all output, because writing is impossible.
    pub(crate) fn refuse(&mut self) {
        self.refused = true;
        (self.flushing, self.ended) = (None, BTreeMap::new());
    }
}

/// Relay of the output of a `forall`.
#[derive(Debug)]
pub(crate) struct OutputRelay {
    /// Id of the relay's operation, which ends with the relay.
    pub operation: OperationId,
    progress: RelayPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayPhase {
    /// Branches run, or may still begin.
    Open,
    /// All branches have ended, and the rest of their output is being written.
    Finishing,
    /// All output is written, writing failed, or the relay was abandoned.
    Done,
}

impl OutputRelay {
    /// Creates an open relay.
    pub(crate) fn new(operation: OperationId) -> Self {
        Self { operation, progress: RelayPhase::Open }
    }

    /// Finishes the relay, because no more branches begin. Returns false if already finished.
    pub(crate) fn finish(&mut self) -> bool {
        let is_news = self.progress == RelayPhase::Open;
        if is_news {
            self.progress = RelayPhase::Finishing;
        }
        is_news
    }

    /// Ends the relay. Returns false if already ended.
    pub(crate) fn end(&mut self) -> bool {
        std::mem::replace(&mut self.progress, RelayPhase::Done) != RelayPhase::Done
    }

    /// Returns true if the relay is not awaited any more.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == RelayPhase::Done
    }
}
