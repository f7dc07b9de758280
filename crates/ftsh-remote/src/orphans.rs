//! Branches that an earlier process of the run has sent, and of which nobody hears any more.

use std::collections::BTreeMap;

use super::family::Families;
use ftsh_machine::Time;
use ftsh_machine::effect::{Dispatch, ScopeId};

/// Those that may go on, and what waits for their end.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Their scopes, and when they are gone.
    until: BTreeMap<ScopeId, Time>,
    held: Vec<Dispatch>,
}

impl Orphans {
    /// These may go on until then.
    pub fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        for (scope, until) in orphans {
            let known = self.until.entry(scope).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// A scope is over; those in it are another one's.
    pub fn hand_over(&mut self, scope: ScopeId, into: ScopeId) {
        if let Some(until) = self.until.remove(&scope) {
            self.inherit(vec![(into, until)]);
        }
    }

    /// The scopes of those that may go on.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.until.keys().copied()
    }

    /// Keeps a branch that is to begin where one may go on; returns it if there is none.
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

    /// What is to begin in a scope isn't.
    pub fn end(&mut self, scope: ScopeId, families: &Families) {
        self.held.retain(|held| !families.is_in(held.scope, scope));
    }

    /// Nothing is to begin any more: who would send it is dead.
    pub fn forget_held(&mut self) {
        self.held.clear();
    }

    /// When one is gone.
    pub fn next_due(&self) -> Time {
        self.until.values().copied().min().unwrap_or(Time::NEVER)
    }

    /// Forgets those that are gone by now; none if there are none, else what has waited: it may have to wait
    /// for others.
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
        let mut orphans = Orphans::default();
        orphans.inherit(vec![(branch, Time::NEVER)]);
        families.hand_over(branch, outer);
        orphans.hand_over(branch, outer);
        let away: Vec<_> = orphans.scopes().collect();
        assert!(!families.emptied(outer, &away));
    }
}
