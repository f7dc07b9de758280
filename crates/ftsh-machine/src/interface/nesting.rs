//! Nesting of scopes, for the machine and for its drivers.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use super::effect::ScopeId;

/// Scopes inside other scopes. The cost of an operation depends only on the depth and on the
/// content of its scope.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    /// Parent of each scope.
    parents: BTreeMap<ScopeId, ScopeId>,
    /// Pairs of parent and child.
    children: BTreeSet<(ScopeId, ScopeId)>,
}

impl Nesting {
    /// Adds a scope inside a parent, or moves a scope there with its content.
    pub fn insert(&mut self, scope: ScopeId, parent: ScopeId) {
        self.remove(scope);
        self.parents.insert(scope, parent);
        self.children.insert((parent, scope));
    }

    /// Removes a scope. Its inner scopes stay inside it until they are removed or moved.
    pub fn remove(&mut self, scope: ScopeId) {
        if let Some(parent) = self.parents.remove(&scope) {
            self.children.remove(&(parent, scope));
        }
    }

    /// Removes a scope, and moves its inner scopes into another scope.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        self.remove(scope);
        for child in self.children(scope).collect::<Vec<_>>() {
            self.insert(child, into);
        }
    }

    /// Returns the scope around a scope.
    pub fn parent(&self, scope: ScopeId) -> Option<ScopeId> {
        self.parents.get(&scope).copied()
    }

    /// Iterates over the scopes directly inside a scope, in the order of their ids.
    pub fn children(&self, scope: ScopeId) -> impl DoubleEndedIterator<Item = ScopeId> {
        let all = (scope, ScopeId(0))..=(scope, ScopeId(u64::MAX));
        self.children.range(all).map(|(_, child)| *child)
    }

    /// Iterates over a scope and the scopes around it, from the inside out.
    pub fn around(&self, scope: ScopeId) -> impl Iterator<Item = ScopeId> {
        successors(Some(scope), |scope| self.parent(*scope))
    }

    /// Returns a scope and all scopes inside. Each scope comes before its content.
    pub fn within(&self, scope: ScopeId) -> Vec<ScopeId> {
        let (mut found, mut left) = (Vec::new(), vec![scope]);
        while let Some(scope) = left.pop() {
            found.push(scope);
            left.extend(self.children(scope).rev());
        }
        found
    }

    /// Returns true if a scope is another scope or inside it. All scopes are inside the
    /// script's.
    pub fn is_inside(&self, scope: ScopeId, outer: ScopeId) -> bool {
        outer == ScopeId::SCRIPT || self.around(scope).any(|scope| scope == outer)
    }

    /// Iterates over the scopes, each with its parent.
    pub fn iter(&self) -> impl Iterator<Item = (ScopeId, ScopeId)> {
        self.parents.iter().map(|(scope, parent)| (*scope, *parent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scopes_move_with_their_content() {
        let [outer, inner, innermost, other] = [1, 2, 3, 4].map(ScopeId);
        let mut nesting = Nesting::default();
        for (scope, parent) in
            [(outer, ScopeId::SCRIPT), (innermost, inner), (inner, outer), (other, outer)]
        {
            nesting.insert(scope, parent);
        }
        assert_eq!(nesting.within(outer), [outer, inner, innermost, other]);
        assert!(nesting.is_inside(innermost, outer) && !nesting.is_inside(outer, innermost));
        assert!(nesting.is_inside(ScopeId(9), ScopeId::SCRIPT));
        nesting.insert(inner, other);
        assert_eq!(
            nesting.around(innermost).map(|scope| scope.0).collect::<Vec<_>>(),
            [3, 2, 4, 1, 0]
        );
        nesting.hand_over(inner, outer);
        assert_eq!(nesting.children(outer).collect::<Vec<_>>(), [innermost, other]);
        assert_eq!(nesting.parent(inner), None);
    }
}
