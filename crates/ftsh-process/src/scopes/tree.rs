//! What belongs to whom: scopes in one another, their commands, and the groups these left behind.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::Action;
use super::emptying::Emptying;
use super::system::System;
use ftsh_machine::effect::{ProcessId, ScopeId};

/// More names of scopes that ended well than this are forgotten.
const MOST_HANDED: usize = 100_000;

/// So many are kept without a look whether they are needed.
const FEW_HANDED: usize = 100;

/// Groups without members are forgotten after so many.
const BETWEEN_GROUPS: usize = 64;

/// All scopes and their commands.
pub struct Tree {
    scopes: HashMap<ScopeId, Scope>,
    commands: HashMap<ProcessId, Member>,
    /// The commands by the processes that run them.
    leaders: HashMap<i32, ProcessId>,
    /// Where processes of scopes that are over belong now.
    handed: HashMap<ScopeId, ScopeId>,
    /// Scopes being emptied.
    pub emptying: BTreeMap<ScopeId, Emptying>,
    /// Scopes being emptied that have to be looked at.
    dirty: BTreeSet<ScopeId>,
    /// What is to be done.
    actions: VecDeque<Action>,
}

/// A scope.
#[derive(Default)]
pub struct Scope {
    parent: Option<ScopeId>,
    /// The scopes in it.
    pub below: BTreeSet<ScopeId>,
    /// Its commands.
    pub commands: HashSet<ProcessId>,
    /// Groups whose leader has ended; others may live on.
    groups: HashSet<i32>,
}

/// A command of a scope.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its scope.
    pub scope: ScopeId,
    /// Its process, which leads a group; none as long as it isn't started.
    pub pid: Option<i32>,
    /// Whether anybody wants to hear of its end.
    pub wanted: bool,
}

impl Tree {
    /// Only the script's scope.
    pub fn new() -> Self {
        Self {
            scopes: HashMap::from([(ScopeId::SCRIPT, Scope::default())]),
            commands: HashMap::new(),
            leaders: HashMap::new(),
            handed: HashMap::new(),
            emptying: BTreeMap::new(),
            dirty: BTreeSet::new(),
            actions: VecDeque::new(),
        }
    }

    /// Has something done.
    pub fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// What is to be done next.
    pub fn take_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether a scope is there.
    pub fn has(&self, scope: ScopeId) -> bool {
        self.scopes.contains_key(&scope)
    }

    /// A new scope inside another one, or one that has another one around it from now on.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        if let Some(before) = self.scope(scope).parent.replace(parent)
            && let Some(before) = self.scopes.get_mut(&before)
        {
            before.below.remove(&scope);
        }
        self.scope(parent).below.insert(scope);
    }

    /// A new scope that is in no other one.
    pub fn open_apart(&mut self, scope: ScopeId) {
        self.scopes.entry(scope).or_default();
    }

    /// A scope; one that was never opened is the script's.
    fn scope(&mut self, scope: ScopeId) -> &mut Scope {
        if scope != ScopeId::SCRIPT && !self.scopes.contains_key(&scope) {
            self.scope(ScopeId::SCRIPT).below.insert(scope);
        }
        self.scopes.entry(scope).or_insert_with(|| Scope {
            parent: (scope != ScopeId::SCRIPT).then_some(ScopeId::SCRIPT),
            ..Scope::default()
        })
    }

    /// A command begins.
    pub fn begin(&mut self, scope: ScopeId, process: ProcessId) {
        self.scope(scope).commands.insert(process);
        self.commands.insert(process, Member { scope, pid: None, wanted: true });
    }

    /// A command's process is known.
    pub fn start(&mut self, process: ProcessId, pid: i32) -> Option<Member> {
        let member = self.commands.get_mut(&process)?;
        member.pid = Some(pid);
        self.leaders.insert(pid, process);
        Some(*member)
    }

    /// A command is over. What else is in its group may live on.
    pub fn end(&mut self, process: ProcessId) -> Option<Member> {
        let member = self.commands.remove(&process)?;
        if let Some(pid) = member.pid {
            self.leaders.remove(&pid);
        }
        if let Some(scope) = self.scopes.get_mut(&member.scope) {
            scope.commands.remove(&process);
            scope.groups.extend(member.pid);
        }
        self.suspect(member.scope);
        Some(member)
    }

    /// Whether a scope has so many groups that the dead ones should be forgotten.
    pub fn has_many_groups(&self, scope: ScopeId) -> bool {
        let groups = self.scopes.get(&scope).map_or(0, |scope| scope.groups.len());
        groups > 0 && groups.is_multiple_of(BETWEEN_GROUPS)
    }

    /// Forgets the groups of a scope that have no members.
    pub fn forget_dead_groups(&mut self, scope: ScopeId, system: &mut dyn System) {
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.groups.retain(|&group| system.is_group_alive(group));
        }
    }

    /// The scopes being emptied among this one and those around it.
    pub fn emptying_above(&self, scope: ScopeId) -> Vec<ScopeId> {
        if self.emptying.is_empty() {
            return Vec::new();
        }
        let up = |id: &ScopeId| self.scopes.get(id)?.parent;
        std::iter::successors(Some(scope), up).filter(|id| self.emptying.contains_key(id)).collect()
    }

    /// Something may have changed in a scope: if it is being emptied, it has to be looked at.
    pub fn suspect(&mut self, scope: ScopeId) {
        let above = self.emptying_above(scope);
        self.dirty.extend(above);
    }

    /// The same for all scopes.
    pub fn suspect_all(&mut self) {
        self.dirty.extend(self.emptying.keys());
    }

    /// The scopes that have to be looked at; then they count as looked at.
    pub fn take_suspects(&mut self) -> BTreeSet<ScopeId> {
        let mut suspects = std::mem::take(&mut self.dirty);
        suspects.retain(|scope| self.emptying.contains_key(scope));
        suspects
    }

    /// Takes a scope out of the tree; processes that say they are of it are another one's now.
    pub fn remove(&mut self, scope: ScopeId, heir: ScopeId) -> Option<Scope> {
        let mut old = self.scopes.remove(&scope)?;
        self.emptying.remove(&scope);
        self.dirty.remove(&scope);
        if scope == ScopeId::SCRIPT {
            let kept = Scope { below: std::mem::take(&mut old.below), ..Scope::default() };
            self.scopes.insert(scope, kept);
            return Some(old);
        }
        if let Some(parent) = old.parent.and_then(|parent| self.scopes.get_mut(&parent)) {
            parent.below.remove(&scope);
        }
        // What nobody remembers is the script's.
        if heir != ScopeId::SCRIPT {
            if self.handed.len() >= MOST_HANDED {
                self.handed.clear();
            }
            self.handed.insert(scope, heir);
        }
        Some(old)
    }

    /// What was one scope's is another one's.
    pub fn inherit(&mut self, heir: ScopeId, old: Scope) {
        for below in old.below {
            self.open(below, heir);
        }
        for process in &old.commands {
            if let Some(member) = self.commands.get_mut(process) {
                member.scope = heir;
            }
        }
        let heir = self.scope(heir);
        heir.commands.extend(old.commands);
        heir.groups.extend(old.groups);
    }

    /// Nobody wants to hear of a command's end any more.
    pub fn disown(&mut self, process: ProcessId) {
        if let Some(member) = self.commands.get_mut(&process) {
            member.wanted = false;
        }
    }

    /// Whether names of scopes are remembered that may not be needed.
    pub fn remembers_many(&self) -> bool {
        self.handed.len() > FEW_HANDED
    }

    /// There is no process that could be of a scope that is over.
    pub fn forget_names(&mut self) {
        self.handed = HashMap::new();
    }

    /// The scope around this one.
    pub fn parent(&self, scope: ScopeId) -> ScopeId {
        self.scopes.get(&scope).and_then(|scope| scope.parent).unwrap_or(ScopeId::SCRIPT)
    }

    /// A scope and those around it, from the inside out.
    pub fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        let up = |id: &ScopeId| (*id != ScopeId::SCRIPT).then(|| self.parent(*id));
        std::iter::successors(Some(scope), up).collect()
    }

    /// A scope and all below it.
    pub fn subtree(&self, scope: ScopeId) -> Vec<ScopeId> {
        let mut all = vec![scope];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            all.extend(self.scopes.get(id).into_iter().flat_map(|scope| &scope.below));
            next += 1;
        }
        all
    }

    /// The commands of these scopes.
    pub fn commands_in(&self, scopes: &[ScopeId]) -> impl Iterator<Item = (ProcessId, Member)> {
        let scopes = scopes.iter().filter_map(|id| self.scopes.get(id));
        let commands = scopes.flat_map(|scope| &scope.commands);
        commands.filter_map(|process| Some((*process, *self.commands.get(process)?)))
    }

    /// The processes of those that are started.
    pub fn running_in(&self, scopes: &[ScopeId]) -> Vec<i32> {
        self.commands_in(scopes).filter_map(|(_, member)| member.pid).collect()
    }

    /// The groups that commands of these scopes left behind.
    pub fn groups_of(&self, scopes: &[ScopeId]) -> impl Iterator<Item = i32> {
        let scopes = scopes.iter().filter_map(|id| self.scopes.get(id));
        scopes.flat_map(|scope| &scope.groups).copied()
    }

    /// The scope that a scope named by a process is today. One that nobody remembers ended well, long
    /// ago.
    pub fn today(&self, mut scope: ScopeId) -> ScopeId {
        while !self.scopes.contains_key(&scope) {
            scope = self.handed.get(&scope).copied().unwrap_or(ScopeId::SCRIPT);
        }
        scope
    }

    /// Where a process without a mark belongs: to the scope of its group, else to the innermost one
    /// that everything running is in.
    pub fn guess(&self, group: Option<i32>) -> ScopeId {
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
                && scope.below.len() == 1
                && let Some(&below) = scope.below.first()
            {
                id = below;
            }
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_scopes_that_are_over() {
        let mut tree = Tree::new();
        for id in 0..10 {
            let (outer, inner) = (ScopeId(2 * id + 1), ScopeId(2 * id + 2));
            tree.open(outer, ScopeId::SCRIPT);
            tree.open(inner, outer);
            assert_eq!(tree.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT, outer, inner]);
            tree.remove(inner, outer);
            assert_eq!(tree.today(inner), outer);
            tree.remove(outer, ScopeId::SCRIPT);
            assert_eq!(tree.today(inner), ScopeId::SCRIPT);
        }
        assert_eq!(tree.subtree(ScopeId::SCRIPT), [ScopeId::SCRIPT]);
    }

    #[test]
    fn scopes_that_nobody_remembers_are_the_scripts() {
        let mut tree = Tree::new();
        for id in 1..=200_001 {
            tree.open(ScopeId(id), ScopeId::SCRIPT);
            tree.remove(ScopeId(id), ScopeId::SCRIPT);
        }
        assert_eq!(tree.today(ScopeId(1)), ScopeId::SCRIPT);
    }
}
