//! Scopes with their commands and the process groups left by commands.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::emptying::Emptying;
use super::system::{ScopeAction, ScopeQueries};

use ftsh_machine::effect::{ProcessId, ScopeId, Signal};
use ftsh_machine::nesting::Nesting;

/// Maximum number of remembered scopes that ended in success.
const MAX_SUCCESSORS: usize = 100_000;

/// Number of remembered scopes from which on unneeded ones are dropped.
const FEW_SUCCESSORS: usize = 100;

/// Number of groups after which groups without members are dropped.
const BETWEEN_GROUPS: usize = 64;

/// All scopes and their commands.
pub(super) struct Tree {
    scopes: HashMap<ScopeId, ScopeMembers>,
    /// Scopes inside others. A scope outside all others has no parent.
    nesting: Nesting,
    commands: HashMap<ProcessId, Member>,
    /// Commands by process id.
    leaders: HashMap<i32, ProcessId>,
    /// Scopes that took over the processes of closed scopes.
    successors: HashMap<ScopeId, ScopeId>,
    /// Scopes being emptied.
    pub emptying: BTreeMap<ScopeId, Emptying>,
    /// Scopes being emptied that need a check.
    dirty: BTreeSet<ScopeId>,
    /// Pending actions.
    actions: VecDeque<ScopeAction>,
}

#[derive(Default)]
pub(super) struct ScopeMembers {
    /// First signal for the processes of the scope, unless SIGTERM.
    signal: Option<Signal>,
    /// Commands.
    pub commands: HashSet<ProcessId>,
    /// Groups whose leader has ended; other members may live on.
    groups: HashSet<i32>,
}

/// Command of a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Scope of the command.
    pub scope: ScopeId,
    /// Process id, which is also the group's id; none before the start.
    pub pid: Option<i32>,
    /// True if the machine waits for the end of the command.
    pub is_awaited: bool,
}

impl Tree {
    /// Creates a tree with only the script's scope.
    pub(super) fn new() -> Self {
        Self {
            scopes: HashMap::from([(ScopeId::SCRIPT, ScopeMembers::default())]),
            nesting: Nesting::default(),
            commands: HashMap::new(),
            leaders: HashMap::new(),
            successors: HashMap::new(),
            emptying: BTreeMap::new(),
            dirty: BTreeSet::new(),
            actions: VecDeque::new(),
        }
    }

    /// Queues an action.
    pub(super) fn act(&mut self, action: ScopeAction) {
        self.actions.push_back(action);
    }

    /// Returns the next action.
    pub(super) fn take_action(&mut self) -> Option<ScopeAction> {
        self.actions.pop_front()
    }

    /// True if a scope is open.
    pub(super) fn has(&self, scope: ScopeId) -> bool {
        self.scopes.contains_key(&scope)
    }

    /// Opens a scope inside another, or moves an open scope there.
    pub(super) fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        self.scope(parent);
        self.scope(scope);
        self.nesting.insert(scope, parent);
    }

    /// Opens a scope outside all others.
    pub(super) fn open_apart(&mut self, scope: ScopeId) {
        self.scopes.entry(scope).or_default();
    }

    /// Sets the first signal for the processes of an open scope.
    pub(super) fn set_signal(&mut self, scope: ScopeId, signal: Signal) {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.signal = Some(signal);
        }
    }

    /// Returns the first signal for the processes of a scope.
    pub(super) fn signal(&self, scope: ScopeId) -> Signal {
        self.scopes.get(&scope).and_then(|scope| scope.signal).unwrap_or_default()
    }

    /// Makes SIGTERM the signal of a scope. Returns true if the signal was another one before.
    pub(super) fn escalate(&mut self, scope: ScopeId) -> bool {
        let signal = self.scopes.get_mut(&scope).and_then(|scope| scope.signal.take());
        signal.is_some_and(|signal| signal != Signal::default())
    }

    /// Returns a scope; an unknown one is created inside the script's.
    fn scope(&mut self, scope: ScopeId) -> &mut ScopeMembers {
        if scope != ScopeId::SCRIPT && !self.scopes.contains_key(&scope) {
            self.nesting.insert(scope, ScopeId::SCRIPT);
        }
        self.scopes.entry(scope).or_default()
    }

    /// Registers a command that is about to start.
    pub(super) fn begin(&mut self, scope: ScopeId, process: ProcessId) {
        self.scope(scope).commands.insert(process);
        self.commands.insert(process, Member { scope, pid: None, is_awaited: true });
    }

    /// Records the process of a command.
    pub(super) fn start(&mut self, process: ProcessId, pid: i32) -> Option<Member> {
        let member = self.commands.get_mut(&process)?;
        member.pid = Some(pid);
        self.leaders.insert(pid, process);
        Some(*member)
    }

    /// Removes a command. Other members of its group may live on.
    pub(super) fn end(
        &mut self,
        process: ProcessId,
        system: &mut dyn ScopeQueries,
    ) -> Option<Member> {
        let member = self.commands.remove(&process)?;
        if let Some(pid) = member.pid {
            self.leaders.remove(&pid);
        }
        if let Some(scope) = self.scopes.get_mut(&member.scope) {
            scope.commands.remove(&process);
            // The number of a group without members may become that of a foreign group.
            scope.groups.extend(member.pid.filter(|&pid| system.is_group_alive(pid)));
        }
        self.suspect(member.scope);
        Some(member)
    }

    /// True if a scope has enough groups for a cleanup.
    pub(super) fn has_many_groups(&self, scope: ScopeId) -> bool {
        let groups = self.scopes.get(&scope).map_or(0, |scope| scope.groups.len());
        groups > 0 && groups.is_multiple_of(BETWEEN_GROUPS)
    }

    /// Drops the groups of a scope that have no members.
    pub(super) fn forget_dead_groups(&mut self, scope: ScopeId, system: &mut dyn ScopeQueries) {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.groups.retain(|&group| system.is_group_alive(group));
        }
    }

    /// Returns the scopes being emptied among this scope and the scopes around it.
    pub(super) fn emptying_above(&self, scope: ScopeId) -> Vec<ScopeId> {
        if self.emptying.is_empty() {
            return Vec::new();
        }
        self.nesting.around(scope).filter(|id| self.emptying.contains_key(id)).collect()
    }

    /// Marks a changed scope, and the scopes around it, for a check if they are being emptied.
    pub(super) fn suspect(&mut self, scope: ScopeId) {
        let above = self.emptying_above(scope);
        self.dirty.extend(above);
    }

    /// Marks all scopes being emptied for a check.
    pub(super) fn suspect_all(&mut self) {
        self.dirty.extend(self.emptying.keys());
    }

    /// Returns and resets the scopes marked for a check.
    pub(super) fn take_suspects(&mut self) -> BTreeSet<ScopeId> {
        let mut suspects = std::mem::take(&mut self.dirty);
        suspects.retain(|scope| self.emptying.contains_key(scope));
        suspects
    }

    /// Removes a scope. Its inner scopes and the processes with its tag belong to `heir` from now on.
    pub(super) fn remove(&mut self, scope: ScopeId, heir: ScopeId) -> Option<ScopeMembers> {
        let old = self.scopes.remove(&scope)?;
        self.emptying.remove(&scope);
        self.dirty.remove(&scope);
        if scope == ScopeId::SCRIPT {
            self.scopes.insert(scope, ScopeMembers::default());
            return Some(old);
        }
        self.nesting.hand_over(scope, heir);
        // Scopes missing from the table belong to the script.
        if heir != ScopeId::SCRIPT {
            if self.successors.len() >= MAX_SUCCESSORS {
                self.successors.clear();
            }
            self.successors.insert(scope, heir);
        }
        Some(old)
    }

    /// Moves the commands of a closed scope to another scope.
    pub(super) fn adopt_scope(&mut self, heir: ScopeId, old: ScopeMembers) {
        for process in &old.commands {
            if let Some(member) = self.commands.get_mut(process) {
                member.scope = heir;
            }
        }
        let heir = self.scope(heir);
        heir.commands.extend(old.commands);
        heir.groups.extend(old.groups);
    }

    /// Marks a command whose end the machine no longer waits for.
    pub(super) fn stop_awaiting(&mut self, process: ProcessId) {
        if let Some(member) = self.commands.get_mut(&process) {
            member.is_awaited = false;
        }
    }

    /// True if enough closed scopes are remembered for a cleanup.
    pub(super) fn remembers_many(&self) -> bool {
        self.successors.len() > FEW_SUCCESSORS
    }

    /// Drops all remembered scopes. Valid if no process with their tags exists.
    pub(super) fn forget_names(&mut self) {
        self.successors = HashMap::new();
    }

    /// Returns the scope around a scope.
    pub(super) fn parent(&self, scope: ScopeId) -> ScopeId {
        self.nesting.parent(scope).unwrap_or(ScopeId::SCRIPT)
    }

    /// Returns a scope and the scopes around it, innermost first.
    pub(super) fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        let up = |id: &ScopeId| (*id != ScopeId::SCRIPT).then(|| self.parent(*id));
        std::iter::successors(Some(scope), up).collect()
    }

    /// Returns a scope and all scopes inside.
    pub(super) fn subtree(&self, scope: ScopeId) -> Vec<ScopeId> {
        self.nesting.within(scope)
    }

    /// Returns the commands of these scopes.
    pub(super) fn commands_in(
        &self,
        scopes: &[ScopeId],
    ) -> impl Iterator<Item = (ProcessId, Member)> {
        let scopes = scopes.iter().filter_map(|id| self.scopes.get(id));
        let commands = scopes.flat_map(|scope| &scope.commands);
        commands.filter_map(|process| Some((*process, *self.commands.get(process)?)))
    }

    /// Returns the processes of started commands of these scopes.
    pub(super) fn running_in(&self, scopes: &[ScopeId]) -> Vec<i32> {
        self.commands_in(scopes).filter_map(|(_, member)| member.pid).collect()
    }

    /// Returns the groups left by commands of these scopes.
    pub(super) fn groups_of(&self, scopes: &[ScopeId]) -> impl Iterator<Item = i32> {
        let scopes = scopes.iter().filter_map(|id| self.scopes.get(id));
        scopes.flat_map(|scope| &scope.groups).copied()
    }

    /// Returns the open scope that now owns a scope named by a tag. A forgotten scope ended in
    /// success long ago and belongs to the script.
    pub(super) fn current_owner(&self, mut scope: ScopeId) -> ScopeId {
        while !self.scopes.contains_key(&scope) {
            scope = self.successors.get(&scope).copied().unwrap_or(ScopeId::SCRIPT);
        }
        scope
    }

    /// Returns the scope of a process without a tag: the scope of its group, else the innermost
    /// scope that contains all running commands.
    pub(super) fn guess(&self, group: Option<i32>) -> ScopeId {
        let by_group = group.and_then(|group| {
            let leader = self.leaders.get(&group).and_then(|it| self.commands.get(it));
            let with_group = || {
                let found = self.scopes.iter().find(|(_, scope)| scope.groups.contains(&group));
                found.map(|(&id, _)| id)
            };
            leader.map(|member| member.scope).or_else(with_group)
        });
        by_group.unwrap_or_else(|| {
            let mut id = ScopeId::SCRIPT;
            while let Some(scope) = self.scopes.get(&id)
                && scope.commands.is_empty()
                && let mut children = self.nesting.children(id)
                && let (Some(only), None) = (children.next(), children.next())
            {
                id = only;
            }
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_scopes_leave_nothing() {
        let mut tree = Tree::new();
        for id in 0..10 {
            let (outer, inner) = (ScopeId(2 * id + 1), ScopeId(2 * id + 2));
            tree.open(outer, ScopeId::SCRIPT);
            tree.open(inner, outer);
            assert_eq!(tree.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT, outer, inner]);
            tree.remove(inner, outer);
            assert_eq!(tree.current_owner(inner), outer);
            tree.remove(outer, ScopeId::SCRIPT);
            assert_eq!(tree.current_owner(inner), ScopeId::SCRIPT);
        }
        assert_eq!(tree.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT]);
    }

    #[test]
    fn forgotten_scopes_belong_to_the_script() {
        let mut tree = Tree::new();
        for id in 1..=200_001 {
            tree.open(ScopeId(id), ScopeId::SCRIPT);
            tree.remove(ScopeId(id), ScopeId::SCRIPT);
        }
        assert_eq!(tree.current_owner(ScopeId(1)), ScopeId::SCRIPT);
    }
}
