//! Scopes of remote branches: scopes may be empty on this machine while a branch runs on a node.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use ftsh_machine::effect::ScopeId;

/// Open scopes, and the empty scopes that wait for remote branches.
#[derive(Debug, Default)]
pub struct Families {
    open: BTreeMap<ScopeId, FamilyScope>,
    /// Scopes without a process on this machine.
    empty_here: BTreeSet<ScopeId>,
}

#[derive(Debug)]
struct FamilyScope {
    parent: ScopeId,
    children: usize,
    /// True if the scope is an alias of its parent, kept for its children.
    is_alias: bool,
}

impl Families {
    /// Opens a scope inside another scope.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        self.open.insert(scope, FamilyScope { parent, children: 0, is_alias: false });
        self.hold(parent);
    }

    /// Hands over the contents of a successful scope to another scope.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.forget(scope, into);
    }

    /// True if the first scope is the second scope or inside the second scope.
    pub fn is_in(&self, scope: ScopeId, outer: ScopeId) -> bool {
        let up = |scope: &ScopeId| self.open.get(scope).map(|it| it.parent);
        outer == ScopeId::SCRIPT || successors(Some(scope), up).any(|it| it == outer)
    }

    /// Records that a scope is empty on this machine. Returns true if no branch of the scopes
    /// `away` is inside the scope.
    pub fn emptied(&mut self, scope: ScopeId, away: &[ScopeId]) -> bool {
        if away.iter().any(|it| self.is_in(*it, scope)) {
            self.empty_here.insert(scope);
            return false;
        }
        self.forget(scope, ScopeId::SCRIPT);
        true
    }

    /// Removes and returns the scopes that are empty now that only branches of the scopes `away`
    /// are remote.
    pub fn empty(&mut self, away: &[ScopeId]) -> Vec<ScopeId> {
        let waiting = std::mem::take(&mut self.empty_here);
        waiting.into_iter().filter(|scope| self.emptied(*scope, away)).collect()
    }

    /// Closes a scope, and hands over the contents to the heir.
    fn forget(&mut self, scope: ScopeId, heir: ScopeId) {
        let Some(it) = self.open.get_mut(&scope) else { return };
        let parent = std::mem::replace(&mut it.parent, heir);
        it.is_alias = true;
        // Protects the scope from removal until the last line.
        it.children += 1;
        self.hold(heir);
        self.release(parent);
        self.release(scope);
    }

    fn hold(&mut self, scope: ScopeId) {
        if let Some(it) = self.open.get_mut(&scope) {
            it.children += 1;
        }
    }

    /// Removes a child of a scope, and the scope itself if only this child needed the alias.
    fn release(&mut self, mut scope: ScopeId) {
        while let Some(it) = self.open.get_mut(&scope) {
            it.children -= 1;
            if !it.is_alias || it.children > 0 {
                return;
            }
            let parent = it.parent;
            self.open.remove(&scope);
            scope = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_empty_when_it_is_so_everywhere() {
        let [outer, inner, branch] = [1, 2, 3].map(ScopeId);
        let mut families = Families::default();
        families.open(outer, ScopeId::SCRIPT);
        families.open(inner, outer);
        families.open(branch, inner);
        assert!(!families.emptied(outer, &[branch]));
        assert!(!families.emptied(ScopeId::SCRIPT, &[branch]));
        families.hand_over(inner, outer);
        assert!(families.is_in(branch, outer) && !families.is_in(outer, branch));
        assert_eq!(families.empty(&[branch]), []);
        assert_eq!(families.empty(&[]), [ScopeId::SCRIPT, outer]);
        assert_eq!(families.empty(&[]), []);
        assert!(families.emptied(branch, &[]));
        assert!(families.open.is_empty(), "{families:?}");
    }
}
