//! The channels of a modelled world.

use std::collections::BTreeMap;
use std::sync::Arc;

use ftsh_machine::channels::{Admission, Crowd, Inside, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId};
use ftsh_machine::event::Reply;
use ftsh_machine::{Event, Time};
use ftsh_syntax::ast::Name;

/// What a shell asks of the channels.
#[derive(Clone, Debug)]
pub enum Ask {
    /// An attempt is to go through one.
    Enter(Box<Entry>),
    /// An attempt that went through is over.
    Leave(PassId, Passed),
    /// What this attempt asked isn't waited for any more, if it is one that asked.
    Abandon(OperationId),
}

/// An attempt of a shell.
type Id = (usize, PassId);

/// The channels that all shells of a world share; the shells are numbered.
#[derive(Clone, Debug, Default)]
pub struct Channels {
    crowds: BTreeMap<Name, Crowd<Id>>,
    /// Those that wait or have gone through: what they asked.
    asked: BTreeMap<Id, (Name, OperationId)>,
    by_operation: BTreeMap<(usize, OperationId), Id>,
    planned: Option<Time>,
}

impl Channels {
    /// Does what a shell asks; which shells are to be told what.
    pub fn ask(&mut self, shell: usize, ask: Ask, now: Time) -> Vec<(usize, Event)> {
        let (id, came) = match &ask {
            Ask::Enter(entry) => {
                let (id, operation) = ((shell, entry.pass), entry.operation);
                self.asked.insert(id, (Arc::clone(&entry.channel), operation));
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
        let mut told = self.advance(&name, now);
        if let Some(operation) = came {
            let is_answered = |event: &Event| matches!(event, Event::Done { operation: done, .. } if *done == operation);
            if !told.iter().any(|(to, event)| *to == shell && is_answered(event)) {
                told.push((shell, Event::Queued { operation }));
            }
        }
        told
    }

    /// A shell died: who waited waits no more, and who was inside has left without a word.
    pub fn died(&mut self, shell: usize, now: Time) -> Vec<(usize, Event)> {
        let ids: Vec<Id> = self.asked.keys().copied().filter(|id| id.0 == shell).collect();
        let mut told = Vec::new();
        for id in ids {
            let Some(name) = self.forget(id) else { continue };
            self.crowds.entry(Arc::clone(&name)).or_default().forget(id);
            told.extend(self.advance(&name, now));
        }
        told.retain(|(to, _)| *to != shell);
        told
    }

    /// Who need wait no longer now, as time has passed.
    pub fn pass_time(&mut self, now: Time) -> Vec<(usize, Event)> {
        self.planned.take_if(|planned| *planned <= now);
        let names: Vec<Name> = self.crowds.keys().cloned().collect();
        names.iter().flat_map(|name| self.advance(name, now)).collect()
    }

    /// When time has to be passed on to them, if that is news.
    pub fn wake(&mut self) -> Option<Time> {
        let due = self.crowds.values().filter_map(Crowd::next_wake).min().map(Time::after)?;
        let is_news = self.planned.is_none_or(|planned| due < planned);
        is_news.then(|| *self.planned.insert(due))
    }

    /// Who is in a channel, and how many wait for it.
    pub fn inside(&self, name: &str) -> (Inside, usize) {
        self.crowds.get(name).map_or_else(Default::default, |it| (it.inside(), it.waiting()))
    }

    /// Whether nobody is in any, or waits.
    pub fn is_quiet(&self) -> bool {
        self.asked.is_empty()
    }

    fn advance(&mut self, name: &Name, now: Time) -> Vec<(usize, Event)> {
        let Some(crowd) = self.crowds.get_mut(name) else { return Vec::new() };
        let mut told = Vec::new();
        for (id, admission) in crowd.advance(now.elapsed()) {
            let Some((_, operation)) = self.asked.get(&id) else { continue };
            let operation = *operation;
            if admission != Admission::Admitted {
                self.forget(id);
            }
            let result = Ok(Reply::Admission(admission));
            told.push((id.0, Event::Done { operation, result }));
        }
        told
    }

    fn forget(&mut self, id: Id) -> Option<Name> {
        let (name, operation) = self.asked.remove(&id)?;
        self.by_operation.remove(&(id.0, operation));
        Some(name)
    }
}
