//! Output that is held: what branches print is kept apart, and let out whole, one after the other.

use std::collections::BTreeMap;

use crate::effect::{BufferId, ProcessId, ScopeId, TaskId};
use crate::values::value::Handle;

/// So many branches have output that is held, at most: those that run, and those whose turn hasn't come.
pub const MOST_HELD: usize = 256;

/// What a branch prints, until it is let out or dropped.
#[derive(Debug)]
pub struct Held {
    /// What goes to descriptor 1.
    pub output: Handle<BufferId>,
    /// What goes to descriptor 2.
    pub errors: Handle<BufferId>,
}

/// Held output of a branch, as it is written on.
#[derive(Debug)]
pub struct Group {
    /// The branch.
    pub task: TaskId,
    /// The output.
    pub held: Held,
    /// The branch, as `name=word`.
    label: String,
    /// Words about the branch for a line before the output, if something is wrong with that.
    remark: Option<&'static str>,
}

impl Group {
    /// Part that is written first.
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
    /// Line that says that the branch was cut off, to descriptor 2.
    Remark,
    /// Output to descriptor 1.
    Output,
    /// Output to descriptor 2.
    Errors,
}

impl Part {
    /// Part that is written after this one.
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Remark => Some(Self::Output),
            Self::Output => Some(Self::Errors),
            Self::Errors => None,
        }
    }
}

/// Part of a group that is being written.
#[derive(Debug)]
pub struct LettingOut {
    /// What does it.
    pub process: ProcessId,
    /// Of what.
    pub group: Group,
    /// Which part.
    pub part: Part,
}

/// What the branches of a `forall` print, each by itself.
#[derive(Debug)]
pub struct Outputs {
    /// Whether it comes out in the order of the words, not in that of ending.
    in_order: bool,
    /// Of the branches that run, each with its place among all.
    open: BTreeMap<TaskId, (u64, Group)>,
    begun: u64,
    /// Of those that ended, by their turns.
    ended: BTreeMap<u64, Group>,
    turn: u64,
    /// How many have ended.
    count: u64,
    /// What is being let out.
    pub letting_out: Option<LettingOut>,
    /// Whether it can't be written any more.
    refused: bool,
    /// The scope that writes it, once the branches were cut off by what is around them.
    cut: Option<ScopeId>,
}

impl Outputs {
    /// None yet.
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

    /// A branch begins; `label` is its `name=word`.
    pub fn begin(&mut self, task: TaskId, held: Held, label: String) {
        self.open.insert(task, (self.begun, Group { task, held, label, remark: None }));
        self.begun += 1;
    }

    /// A branch ended.
    pub fn end(&mut self, task: TaskId) {
        let Some((place, group)) = self.open.remove(&task) else { return };
        if !self.refused {
            self.ended.insert(if self.in_order { place } else { self.count }, group);
        }
        self.count += 1;
    }

    /// What a branch has printed is not wanted.
    pub fn forget(&mut self, task: TaskId) {
        self.open.remove(&task);
    }

    /// Whether there is room for what one more branch prints.
    pub fn has_room(&self) -> bool {
        self.open.len() + self.ended.len() < MOST_HELD
    }

    /// What comes next, if nothing is being let out.
    pub fn next(&mut self) -> Option<Group> {
        if self.letting_out.is_some() {
            return None;
        }
        let group = self.ended.remove(&self.turn)?;
        self.turn += 1;
        Some(group)
    }

    /// True if output of any branch is not written yet.
    pub fn is_left(&self) -> bool {
        !(self.refused || self.open.is_empty() && self.is_done())
    }

    /// Stops what is being written, and returns it: its group is to be written again, whole.
    pub fn halt(&mut self) -> Option<ProcessId> {
        let LettingOut { process, group, .. } = self.letting_out.take()?;
        let remark = Some("printed this, and some of it may stand above:");
        self.turn -= 1;
        self.ended.insert(self.turn, Group { remark, ..group });
        Some(process)
    }

    /// All branches are cut off: all that is left is to be written in another scope, in order. Returns
    /// false if that scope writes already.
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

    /// The scope that writes, other than that of the branches.
    pub fn scope(&self) -> Option<ScopeId> {
        self.cut
    }

    /// Whether all that ended is let out.
    pub fn is_done(&self) -> bool {
        self.letting_out.is_none() && self.ended.is_empty()
    }

    /// What is being let out.
    pub fn process(&self) -> Option<ProcessId> {
        self.letting_out.as_ref().map(|letting| letting.process)
    }

    /// Branches whose output is not written yet.
    pub fn tasks(&self) -> Vec<TaskId> {
        let open = self.open.keys().copied();
        let groups = self.letting_out.iter().map(|it| &it.group).chain(self.ended.values());
        open.chain(groups.map(|group| group.task)).collect()
    }

    /// It can't be written any more.
    pub fn refuse(&mut self) {
        self.refused = true;
        (self.letting_out, self.ended) = (None, BTreeMap::new());
    }
}
