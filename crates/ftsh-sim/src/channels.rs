//! Channels of a modelled world.

use std::collections::BTreeMap;
use std::sync::Arc;

use ftsh_machine::channels::state::Inside;
use ftsh_machine::channels::{Admission, LocalChannel, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId};
use ftsh_machine::event::Reply;
use ftsh_machine::{Event, Time};
use ftsh_syntax::ast::Name;

/// Request of a shell to the channels.
#[derive(Clone, Debug)]
pub enum Ask {
    /// An attempt waits to enter a channel.
    Enter(Box<Entry>),
    /// An admitted attempt is over.
    Leave(PassId, Passed),
    /// An operation is abandoned, and its attempt no longer waits. Ignored if the operation is no
    /// entry.
    Abandon(OperationId),
}

/// Shell and attempt.
type Id = (usize, PassId);

/// Channels shared by all shells of a world, which have numbers.
#[derive(Clone, Debug, Default)]
pub struct SimulatedChannels {
    crowds: BTreeMap<Name, LocalChannel<Id>>,
    /// Channel and operation of each waiting or admitted attempt.
    entries: BTreeMap<Id, (Name, OperationId)>,
    by_operation: BTreeMap<(usize, OperationId), Id>,
    planned: Option<Time>,
}

impl SimulatedChannels {
    /// Handles the request of a shell. Returns the events for the shells.
    pub fn ask(&mut self, shell: usize, ask: Ask, now: Time) -> Vec<(usize, Event)> {
        let (id, entering) = match &ask {
            Ask::Enter(entry) => {
                let (id, operation) = ((shell, entry.pass), entry.operation);
                self.entries.insert(id, (Arc::clone(&entry.channel), operation));
                self.by_operation.insert((shell, operation), id);
                (id, Some(operation))
            }
            Ask::Leave(pass, _) => ((shell, *pass), None),
            Ask::Abandon(operation) => match self.by_operation.get(&(shell, *operation)) {
                Some(id) => (*id, None),
                None => return Vec::new(),
            },
        };
        let name = match &ask {
            Ask::Enter(entry) => Arc::clone(&entry.channel),
            Ask::Leave(..) | Ask::Abandon(_) => match self.forget(id) {
                Some(name) => name,
                None => return Vec::new(),
            },
        };
        let crowd = self.crowds.entry(Arc::clone(&name)).or_default();
        match ask {
            Ask::Enter(entry) => crowd.enter(id, entry.rules, entry.claim),
            Ask::Leave(_, passed) => crowd.leave(id, passed, now.elapsed()),
            Ask::Abandon(_) => crowd.forget(id),
        }
        let mut events = self.advance(&name, now);
        if let Some(operation) = entering {
            let is_answered = |event: &Event| matches!(event, Event::Done { operation: done, .. } if *done == operation);
            if !events.iter().any(|(to, event)| *to == shell && is_answered(event)) {
                events.push((shell, Event::Queued { operation }));
            }
        }
        events
    }

    /// Removes the attempts of a dead shell without a result. Returns the events for the other
    /// shells.
    pub fn died(&mut self, shell: usize, now: Time) -> Vec<(usize, Event)> {
        let ids: Vec<Id> = self.entries.keys().copied().filter(|id| id.0 == shell).collect();
        let mut events = Vec::new();
        for id in ids {
            let Some(name) = self.forget(id) else { continue };
            self.crowds.entry(Arc::clone(&name)).or_default().forget(id);
            events.extend(self.advance(&name, now));
        }
        events.retain(|(to, _)| *to != shell);
        events
    }

    /// Admits the attempts whose turn has come. Returns the events for the shells.
    pub fn pass_time(&mut self, now: Time) -> Vec<(usize, Event)> {
        self.planned.take_if(|planned| *planned <= now);
        let names: Vec<Name> = self.crowds.keys().cloned().collect();
        names.iter().flat_map(|name| self.advance(name, now)).collect()
    }

    /// Returns the time of the next call of [`SimulatedChannels::pass_time`], if earlier than the planned
    /// time.
    pub fn wake(&mut self) -> Option<Time> {
        let due =
            self.crowds.values().filter_map(LocalChannel::next_wake).min().map(Time::after)?;
        let is_earlier = self.planned.is_none_or(|planned| due < planned);
        is_earlier.then(|| *self.planned.insert(due))
    }

    /// Returns the attempts in a channel, and the number of waiting attempts.
    pub fn inside(&self, name: &str) -> (Inside, usize) {
        self.crowds.get(name).map_or_else(Default::default, |it| (it.inside(), it.waiting()))
    }

    /// True if no attempt waits and no attempt is in a channel.
    pub fn is_quiet(&self) -> bool {
        self.entries.is_empty()
    }

    fn advance(&mut self, name: &Name, now: Time) -> Vec<(usize, Event)> {
        let Some(crowd) = self.crowds.get_mut(name) else { return Vec::new() };
        let mut events = Vec::new();
        for (id, admission) in crowd.advance(now.elapsed()) {
            let Some((_, operation)) = self.entries.get(&id) else { continue };
            let operation = *operation;
            if admission != Admission::Admitted {
                self.forget(id);
            }
            let result = Ok(Reply::Admission(admission));
            events.push((id.0, Event::Done { operation, result }));
        }
        events
    }

    fn forget(&mut self, id: Id) -> Option<Name> {
        let (name, operation) = self.entries.remove(&id)?;
        self.by_operation.remove(&(id.0, operation));
        Some(name)
    }
}
