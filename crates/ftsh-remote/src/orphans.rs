//! Branches that an earlier process of the run has sent, without a connection to this process.

use std::collections::BTreeMap;

use super::family::Families;
use ftsh_machine::Time;
use ftsh_machine::effect::{Dispatch, ScopeId};

/// Orphaned branches that may still run, and the dispatches that wait for their end.
#[derive(Debug, Default)]
pub struct OrphanedBranches {
    /// Scopes of the orphans, with the times at which the orphans are gone.
    until: BTreeMap<ScopeId, Time>,
    held: Vec<Dispatch>,
}

impl OrphanedBranches {
    /// Adds orphans, each with the time at which the orphan is gone.
    pub fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        for (scope, until) in orphans {
            let known = self.until.entry(scope).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// Moves the orphans of a closed scope to another scope.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        if let Some(until) = self.until.remove(&scope) {
            self.inherit(vec![(into, until)]);
        }
    }

    /// Returns the scopes of the orphans.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.until.keys().copied()
    }

    /// Keeps a dispatch if an orphan may run in its scope, and returns the dispatch otherwise.
    pub fn hold(&mut self, dispatch: Dispatch, families: &Families) -> Option<Dispatch> {
        let is_there = |orphan| {
            families.is_in(orphan, dispatch.scope) || families.is_in(dispatch.scope, orphan)
        };
        if !self.scopes().any(is_there) {
            return Some(dispatch);
        }
        self.held.push(dispatch);
        None
    }

    /// Drops the waiting dispatches of a scope.
    pub fn end(&mut self, scope: ScopeId, families: &Families) {
        self.held.retain(|held| !families.is_in(held.scope, scope));
    }

    /// Drops all waiting dispatches, since the machine that would send the branches is dead.
    pub fn forget_held(&mut self) {
        self.held.clear();
    }

    /// Returns the time at which the next orphan is gone.
    pub fn next_due(&self) -> Time {
        self.until.values().copied().min().unwrap_or(Time::NEVER)
    }

    /// Removes the orphans that are gone. If any is gone, returns all waiting dispatches, which may
    /// have to wait again.
    pub fn pass(&mut self, now: Time) -> Option<Vec<Dispatch>> {
        let before = self.until.len();
        self.until.retain(|_, until| *until > now);
        (self.until.len() < before).then(|| std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_is_waited_for_by_its_heir() {
        let [outer, branch] = [1, 2].map(ScopeId);
        let mut families = Families::default();
        families.open(outer, ScopeId::SCRIPT);
        families.open(branch, outer);
        let mut orphans = OrphanedBranches::default();
        orphans.inherit(vec![(branch, Time::NEVER)]);
        families.hand_over(branch, outer);
        orphans.hand_over(branch, outer);
        let away: Vec<_> = orphans.scopes().collect();
        assert!(!families.emptied(outer, &away));
    }
}
