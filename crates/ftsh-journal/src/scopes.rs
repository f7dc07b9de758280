//! Running commands by scope.

use std::collections::BTreeSet;

use ftsh_machine::effect::{ProcessId, ScopeId};
use ftsh_machine::nesting::Nesting;

/// Open scopes with their commands. The cost of an operation depends only on the content of its
/// scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenScopes {
    nesting: Nesting,
    commands: BTreeSet<(ScopeId, ProcessId)>,
    /// Scopes whose processes are being killed.
    ending: BTreeSet<ScopeId>,
}

impl OpenScopes {
    /// Returns the nesting of the scopes.
    pub(crate) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// Opens a scope inside a parent.
    pub(crate) fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        self.nesting.insert(scope, parent);
    }

    /// Adds a command to a scope.
    pub(crate) fn enter(&mut self, scope: ScopeId, process: ProcessId) {
        self.commands.insert((scope, process));
    }

    /// Removes an ended command.
    pub(crate) fn leave(&mut self, scope: ScopeId, process: ProcessId) {
        self.commands.remove(&(scope, process));
    }

    /// Marks a scope whose processes are being killed.
    pub(crate) fn end(&mut self, scope: ScopeId) {
        self.ending.insert(scope);
    }

    /// Moves the content of a scope into another scope, and returns the moved commands.
    pub(crate) fn hand_over(&mut self, scope: ScopeId, into: ScopeId) -> Vec<ProcessId> {
        self.nesting.hand_over(scope, into);
        let commands: Vec<ProcessId> = self.commands_of(scope).collect();
        for process in &commands {
            self.leave(scope, *process);
            self.enter(into, *process);
        }
        commands
    }

    /// Returns the commands of a scope and of the scopes inside.
    pub(crate) fn members(&self, scope: ScopeId) -> Vec<ProcessId> {
        let mut members: Vec<_> = if scope == ScopeId::SCRIPT {
            self.commands.iter().map(|(_, process)| *process).collect()
        } else {
            let scopes = self.nesting.within(scope).into_iter();
            scopes.flat_map(|scope| self.commands_of(scope)).collect()
        };
        members.sort_unstable();
        members
    }

    /// Removes a scope and the scopes inside, except those still being emptied.
    pub(crate) fn emptied(&mut self, scope: ScopeId) {
        self.ending.remove(&scope);
        if scope == ScopeId::SCRIPT {
            return;
        }
        let parent = self.nesting.parent(scope).unwrap_or(ScopeId::SCRIPT);
        for inner in self.nesting.within(scope) {
            if self.ending.contains(&inner) {
                self.nesting.insert(inner, parent);
            } else {
                self.nesting.remove(inner);
            }
        }
    }

    fn commands_of(&self, scope: ScopeId) -> impl Iterator<Item = ProcessId> {
        let all = (scope, ProcessId(0))..=(scope, ProcessId(u64::MAX));
        self.commands.range(all).map(|(_, process)| *process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTER: ScopeId = ScopeId(1);
    const INNER: ScopeId = ScopeId(2);
    const INNERMOST: ScopeId = ScopeId(3);

    /// Returns three nested scopes with one command each.
    fn scopes() -> OpenScopes {
        let mut scopes = OpenScopes::default();
        for (scope, around) in [(OUTER, ScopeId::SCRIPT), (INNER, OUTER), (INNERMOST, INNER)] {
            scopes.open(scope, around);
            scopes.enter(scope, ProcessId(10 * scope.0));
        }
        scopes
    }

    fn members(scopes: &OpenScopes, scope: ScopeId) -> Vec<u64> {
        scopes.members(scope).into_iter().map(|process| process.0).collect()
    }

    fn around(scopes: &OpenScopes) -> Vec<(u64, u64)> {
        scopes.nesting().iter().map(|(scope, around)| (scope.0, around.0)).collect()
    }

    #[test]
    fn what_is_in_a_scope_is_in_those_around_it() {
        let mut scopes = scopes();
        assert_eq!(members(&scopes, ScopeId::SCRIPT), [10, 20, 30]);
        assert_eq!(members(&scopes, OUTER), [10, 20, 30]);
        assert_eq!(members(&scopes, INNERMOST), [30]);
        scopes.leave(INNER, ProcessId(20));
        assert_eq!(members(&scopes, OUTER), [10, 30]);
    }

    #[test]
    fn what_is_handed_over_is_there_and_nowhere_else() {
        let mut scopes = scopes();
        assert_eq!(scopes.hand_over(INNER, OUTER), [ProcessId(20)]);
        assert_eq!(around(&scopes), [(1, 0), (3, 1)]);
        assert_eq!(members(&scopes, INNER), [0; 0]);
        assert_eq!(members(&scopes, OUTER), [10, 20, 30]);
        scopes.emptied(OUTER);
        assert_eq!(around(&scopes), []);
    }

    #[test]
    fn what_is_still_being_emptied_outlives_what_is_around_it() {
        let mut scopes = scopes();
        scopes.end(INNERMOST);
        scopes.emptied(OUTER);
        assert_eq!(around(&scopes), [(3, 0)]);
        scopes.emptied(INNERMOST);
        assert_eq!(around(&scopes), []);
        scopes.emptied(ScopeId::SCRIPT);
    }
}
