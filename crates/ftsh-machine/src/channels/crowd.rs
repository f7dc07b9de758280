//! A channel of those who live in one memory: the state, who is inside and who waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Admission, Claim, Inside, Moment, Passed, Rules, State, Verdict};

/// A channel and all who want to go through it, each by a name of its own.
#[derive(Clone, Debug)]
pub struct Crowd<Id> {
    state: State,
    /// In order of coming.
    waiting: VecDeque<Waiter<Id>>,
    inside: BTreeMap<Id, Pass>,
    due: Option<Moment>,
}

#[derive(Clone, Debug)]
struct Waiter<Id> {
    id: Id,
    rules: Arc<Rules>,
    claim: Claim,
}

#[derive(Clone, Debug)]
struct Pass {
    rules: Arc<Rules>,
    probe: bool,
}

impl<Id> Default for Crowd<Id> {
    /// Nobody is there, and nothing has happened.
    fn default() -> Self {
        let (state, waiting, inside) = Default::default();
        Self { state, waiting, inside, due: None }
    }
}

impl<Id: Copy + Ord> Crowd<Id> {
    /// Somebody comes; `advance` says what becomes of it.
    pub fn enter(&mut self, id: Id, rules: Arc<Rules>, claim: Claim) {
        self.waiting.push_back(Waiter { id, rules, claim });
    }

    /// An attempt that was admitted is over.
    pub fn leave(&mut self, id: Id, passed: Passed, now: Moment) {
        if let Some(pass) = self.inside.remove(&id) {
            self.state.leave(&pass.rules, passed, pass.probe, now);
        }
    }

    /// Somebody waits no more, or is dead.
    pub fn forget(&mut self, id: Id) {
        self.waiting.retain(|waiter| waiter.id != id);
        self.inside.remove(&id);
    }

    /// Those who need wait no longer; to be called after every change, and when `next_wake` has come.
    pub fn advance(&mut self, now: Moment) -> Vec<(Id, Admission)> {
        self.due = None;
        let mut answered = Vec::new();
        let mut is_held_up = false;
        for waiter in std::mem::take(&mut self.waiting) {
            if is_held_up && waiter.rules.may_wait() {
                self.waiting.push_back(waiter);
                continue;
            }
            let Waiter { id, rules, claim } = &waiter;
            match self.state.admit(rules, *claim, self.inside(), now) {
                Verdict::Admitted { probe } => {
                    self.inside.insert(*id, Pass { rules: rules.clone(), probe });
                    answered.push((*id, Admission::Admitted));
                    continue;
                }
                Verdict::Refused(refusal) => {
                    answered.push((*id, refusal));
                    continue;
                }
                Verdict::Full => {}
                Verdict::NotBefore(moment) => self.due = Some(moment),
            }
            is_held_up = true;
            self.waiting.push_back(waiter);
        }
        answered
    }

    /// When to `advance` again, though nothing happens.
    pub fn next_wake(&self) -> Option<Moment> {
        self.due
    }

    /// Who is inside.
    pub fn inside(&self) -> Inside {
        Inside {
            attempts: self.inside.len() as u64,
            probing: self.inside.values().any(|pass| pass.probe),
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What the channel remembers.
    pub fn state(&self) -> &State {
        &self.state
    }
}
