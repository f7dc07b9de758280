//! Scopes of remote branches: scopes may be empty on this machine while a branch runs on a node.

use std::collections::BTreeSet;

use ftsh_machine::effect::ScopeId;
use ftsh_machine::nesting::Nesting;

/// Open scopes, and the empty scopes that wait for remote branches.
#[derive(Debug, Default)]
pub struct Families {
    open: Nesting,
    /// Scopes without a process on this machine.
    empty_here: BTreeSet<ScopeId>,
}

impl Families {
    /// Opens a scope inside another scope.
    pub fn open(&mut self, scope: ScopeId, parent: ScopeId) {
        self.open.insert(scope, parent);
    }

    /// Hands over the contents of a successful scope to another scope.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.open.hand_over(scope, into);
    }

    /// True if the first scope is the second scope or inside the second scope.
    pub fn is_in(&self, scope: ScopeId, outer: ScopeId) -> bool {
        self.open.is_inside(scope, outer)
    }

    /// Records that a scope is empty on this machine. Returns true if no branch of the scopes
    /// `away` is inside the scope.
    pub fn emptied(&mut self, scope: ScopeId, away: &[ScopeId]) -> bool {
        if away.iter().any(|it| self.is_in(*it, scope)) {
            self.empty_here.insert(scope);
            return false;
        }
        self.open.hand_over(scope, ScopeId::SCRIPT);
        true
    }

    /// Removes and returns the scopes that are empty now that only branches of the scopes `away`
    /// are remote.
    pub fn empty(&mut self, away: &[ScopeId]) -> Vec<ScopeId> {
        let waiting = std::mem::take(&mut self.empty_here);
        waiting.into_iter().filter(|scope| self.emptied(*scope, away)).collect()
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
        assert!(families.open.iter().next().is_none(), "{families:?}");
    }
}
