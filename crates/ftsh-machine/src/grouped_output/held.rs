//! Buffered output: the output of each branch is kept apart, and written as a group.

use std::collections::BTreeMap;

use crate::effect::{BufferId, ProcessId, ScopeId, TaskId};
use crate::values::value::Handle;

/// Maximum number of branches with buffered output, running or waiting to be written.
pub const MOST_HELD: usize = 256;

/// Output of a branch, until written or dropped.
#[derive(Debug)]
pub struct Held {
    /// Output to descriptor 1.
    pub output: Handle<BufferId>,
    /// Output to descriptor 2.
    pub errors: Handle<BufferId>,
}

/// Output of a branch while it is written.
#[derive(Debug)]
pub struct Group {
    /// Id of the branch.
    pub task: TaskId,
    /// Buffers of the output.
    pub held: Held,
    /// Name of the branch, as `name=word`.
    label: String,
    /// Remark about incomplete output, for a line before the output.
    remark: Option<&'static str>,
}

impl Group {
    /// Returns the part to write first.
    pub fn first(&self) -> Part {
        if self.remark.is_some() { Part::Remark } else { Part::Output }
    }

    /// Line before the output.
    pub fn remark(&self) -> String {
        format!("ftsh: {} {}\n", self.label, self.remark.unwrap_or_default())
    }
}

/// Parts of a group, in the order of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Remark about the branch, to descriptor 2.
    Remark,
    /// Output to descriptor 1.
    Output,
    /// Output to descriptor 2.
    Errors,
}

impl Part {
    /// Returns the next part.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Remark => Some(Self::Output),
            Self::Output => Some(Self::Errors),
            Self::Errors => None,
        }
    }
}

/// Part of a group being written.
#[derive(Debug)]
pub struct LettingOut {
    /// Process that writes.
    pub process: ProcessId,
    /// Group being written.
    pub group: Group,
    /// Part being written.
    pub part: Part,
}

/// Buffered output of all branches of a loop.
#[derive(Debug)]
pub struct Outputs {
    /// True for the order of the words, false for the order of ending.
    in_order: bool,
    /// Running branches, each with its index.
    open: BTreeMap<TaskId, (u64, Group)>,
    begun: u64,
    /// Ended branches by turn.
    ended: BTreeMap<u64, Group>,
    turn: u64,
    /// Number of ended branches.
    count: u64,
    /// Part being written.
    pub letting_out: Option<LettingOut>,
    /// True if output can no longer be written.
    refused: bool,
    /// Scope of the writing processes, once an enclosing structure has cut the branches short.
    cut: Option<ScopeId>,
}

impl Outputs {
    /// Creates an empty collection.
    pub fn new(in_order: bool) -> Self {
        Self {
            in_order,
            open: BTreeMap::new(),
            begun: 0,
            ended: BTreeMap::new(),
            turn: 0,
            count: 0,
            letting_out: None,
            refused: false,
            cut: None,
        }
    }

    /// Adds a branch that begins; `label` is its `name=word`.
    pub fn begin(&mut self, task: TaskId, held: Held, label: String) {
        self.open.insert(task, (self.begun, Group { task, held, label, remark: None }));
        self.begun += 1;
    }

    /// Marks a branch as ended.
    pub fn end(&mut self, task: TaskId) {
        let Some((place, group)) = self.open.remove(&task) else { return };
        if !self.refused {
            self.ended.insert(if self.in_order { place } else { self.count }, group);
        }
        self.count += 1;
    }

    /// Drops the output of a branch.
    pub fn forget(&mut self, task: TaskId) {
        self.open.remove(&task);
    }

    /// Returns true if another branch can begin.
    pub fn has_room(&self) -> bool {
        self.open.len() + self.ended.len() < MOST_HELD
    }

    /// Returns the next group to write, unless a group is being written.
    pub fn next(&mut self) -> Option<Group> {
        if self.letting_out.is_some() {
            return None;
        }
        let group = self.ended.remove(&self.turn)?;
        self.turn += 1;
        Some(group)
    }

    /// Returns true if output of any branch is not yet written.
    pub fn is_left(&self) -> bool {
        !(self.refused || self.open.is_empty() && self.is_done())
    }

    /// Stops writing, and queues the group to be written again as a whole. Returns the process that
    /// was writing.
    pub fn halt(&mut self) -> Option<ProcessId> {
        let LettingOut { process, group, .. } = self.letting_out.take()?;
        let remark = Some("printed this, and some of it may stand above:");
        self.turn -= 1;
        self.ended.insert(self.turn, Group { remark, ..group });
        Some(process)
    }

    /// Cuts all branches short. The remaining output is written in another scope, in order. Returns
    /// false if that scope is already writing.
    pub fn cut(&mut self, scope: ScopeId) -> bool {
        if self.cut.replace(scope) == Some(scope) {
            return false;
        }
        for (place, group) in std::mem::take(&mut self.open).into_values() {
            let turn = if self.in_order { place } else { self.count + place };
            let remark = Some("was cut off, after it had printed this:");
            self.ended.insert(turn, Group { remark, ..group });
        }
        let groups = std::mem::take(&mut self.ended).into_values();
        (self.ended, self.turn) = ((0..).zip(groups).collect(), 0);
        true
    }

    /// Returns the scope that writes after a cut.
    pub fn scope(&self) -> Option<ScopeId> {
        self.cut
    }

    /// Returns true if the output of all ended branches is written.
    pub fn is_done(&self) -> bool {
        self.letting_out.is_none() && self.ended.is_empty()
    }

    /// Returns the process that is writing.
    pub fn process(&self) -> Option<ProcessId> {
        self.letting_out.as_ref().map(|letting| letting.process)
    }

    /// Returns the branches whose output is not yet written.
    pub fn tasks(&self) -> Vec<TaskId> {
        let open = self.open.keys().copied();
        let groups = self.letting_out.iter().map(|it| &it.group).chain(self.ended.values());
        open.chain(groups.map(|group| group.task)).collect()
    }

    /// Drops all output, because writing is impossible.
    pub fn refuse(&mut self) {
        self.refused = true;
        (self.letting_out, self.ended) = (None, BTreeMap::new());
    }
}
