//! A channel within a single process: its state, the attempts inside, and the waiting ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{
    Admission, Claim, Moment, Passed, Rules,
    state::{ChannelState, ChannelVerdict, Inside},
};

/// Channel with its attempts, identified by ids.
#[derive(Clone, Debug)]
pub struct LocalChannel<Id> {
    state: ChannelState,
    /// Waiting attempts in order of arrival.
    waiting: VecDeque<WaitingAttempt<Id>>,
    inside: BTreeMap<Id, Admitted>,
    due: Option<Moment>,
}

#[derive(Clone, Debug)]
struct WaitingAttempt<Id> {
    id: Id,
    rules: Arc<Rules>,
    claim: Claim,
}

#[derive(Clone, Debug)]
struct Admitted {
    rules: Arc<Rules>,
    probe: bool,
}

impl<Id> Default for LocalChannel<Id> {
    /// Creates an empty channel without history.
    fn default() -> Self {
        let (state, waiting, inside) = Default::default();
        Self { state, waiting, inside, due: None }
    }
}

impl<Id: Copy + Ord> LocalChannel<Id> {
    /// Adds an attempt to the queue. `advance` decides about the attempt.
    pub fn enter(&mut self, id: Id, rules: Arc<Rules>, claim: Claim) {
        self.waiting.push_back(WaitingAttempt { id, rules, claim });
    }

    /// Removes an admitted attempt that has ended.
    pub fn leave(&mut self, id: Id, passed: Passed, now: Moment) {
        if let Some(pass) = self.inside.remove(&id) {
            self.state.leave(&pass.rules, passed, pass.probe, now);
        }
    }

    /// Removes an attempt that no longer waits, or whose process is gone.
    pub fn forget(&mut self, id: Id) {
        self.waiting.retain(|waiter| waiter.id != id);
        self.inside.remove(&id);
    }

    /// Returns the decisions about waiting attempts. Call the method after every change, and at
    /// `next_wake`.
    pub fn advance(&mut self, now: Moment) -> Vec<(Id, Admission)> {
        self.due = None;
        let mut answered = Vec::new();
        let mut is_held_up = false;
        for waiter in std::mem::take(&mut self.waiting) {
            if is_held_up && waiter.rules.may_wait() {
                self.waiting.push_back(waiter);
                continue;
            }
            let WaitingAttempt { id, rules, claim } = &waiter;
            match self.state.admit(rules, *claim, self.inside(), now) {
                ChannelVerdict::Admitted { probe } => {
                    self.inside.insert(*id, Admitted { rules: rules.clone(), probe });
                    answered.push((*id, Admission::Admitted));
                    continue;
                }
                ChannelVerdict::Refused(refusal) => {
                    answered.push((*id, refusal));
                    continue;
                }
                ChannelVerdict::Full => {}
                ChannelVerdict::NotBefore(moment) => self.due = Some(moment),
            }
            is_held_up = true;
            self.waiting.push_back(waiter);
        }
        answered
    }

    /// Returns the next time to call `advance` without a change.
    pub fn next_wake(&self) -> Option<Moment> {
        self.due
    }

    /// Returns the occupancy of the channel.
    pub fn inside(&self) -> Inside {
        Inside {
            attempts: self.inside.len() as u64,
            probing: self.inside.values().any(|pass| pass.probe),
        }
    }

    /// Returns the number of waiting attempts.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the state of the channel.
    pub fn state(&self) -> &ChannelState {
        &self.state
    }
}
