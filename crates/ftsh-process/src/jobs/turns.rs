//! Waits for channels, and the workers that perform them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use super::super::channels::{Channels, Entered, Reason, Turn, Wait, Waited};
use super::super::fds::Need;
use super::super::os::workers::Handle;
use super::{Answer, Outside, Waiting};
use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId, ScopeId};
use ftsh_machine::event::{Event, Refusal, Reply};
use ftsh_syntax::ast::Name;

/// Channels of a shell, and waits for them.
pub struct Turns {
    channels: Channels,
    /// Reason of the wait for each channel, and the worker that waits.
    waits: HashMap<Name, (Reason, Handle)>,
    /// Times to check if earlier waiters, which may be frozen, take their turn.
    rechecks: HashMap<Name, Instant>,
    /// Passes of attempts, by scope.
    scopes: HashMap<ScopeId, PassId>,
}

/// Message to the user.
pub type Note = Option<String>;

impl Turns {
    /// Creates the channels in a directory; without one, in the user's own.
    pub fn new(directory: Option<PathBuf>) -> Self {
        let (waits, rechecks, scopes) = Default::default();
        Self { channels: Channels::new(directory), waits, rechecks, scopes }
    }

    /// Returns the number of descriptors needed to enter a channel.
    pub fn need(&self, name: &Name) -> Need {
        Need::of(usize::from(!self.channels.is_open(name)), 1)
    }

    /// Handles the request of an attempt to enter a channel.
    pub fn enter(&mut self, outside: &mut Outside, entry: Entry) -> Note {
        let (operation, name) = (entry.operation, entry.channel.clone());
        match self.channels.enter(entry) {
            Ok(Entered::Comes) => self.advance(outside, &name, None),
            Ok(Entered::Already) => {
                let result = Ok(Reply::Admission(Admission::Admitted));
                outside.ready.push_back(Event::Done { operation, result });
                None
            }
            Err(error) => {
                let result = Err(Refusal::new(error));
                outside.ready.push_back(Event::Done { operation, result });
                None
            }
        }
    }

    /// Records the pass of a scope.
    pub fn belongs(&mut self, scope: ScopeId, pass: PassId) {
        self.scopes.insert(scope, pass);
    }

    /// Returns the environment variable of a command in these scopes, if any of them holds a pass.
    pub fn told(&self, scopes: impl FnOnce() -> Vec<ScopeId>) -> Option<String> {
        if self.scopes.is_empty() {
            return None;
        }
        let passes = scopes().into_iter().filter_map(|scope| self.scopes.get(&scope).copied());
        Some(self.channels.told(passes)).filter(|told| !told.is_empty())
    }

    /// Handles the end of an attempt.
    pub fn leave(&mut self, outside: &mut Outside, pass: PassId, passed: Passed) -> Note {
        self.scopes.retain(|_, other| *other != pass);
        let name = self.channels.leave(pass, passed)?;
        self.advance(outside, &name, None)
    }

    /// Cancels the wait of an operation; none if it does not belong to a channel.
    pub fn abandon(&mut self, outside: &mut Outside, operation: OperationId) -> Option<Note> {
        let name = self.channels.abandon(operation)?;
        Some(self.advance(outside, &name, None))
    }

    /// Leaves all queues before the shell is stopped, so that other shells do not wait for it.
    /// Returns the channels to enter again.
    pub fn step_aside(&mut self, outside: &mut Outside) -> Vec<Name> {
        for (_, (_, handle)) in self.waits.drain() {
            forget(outside, &handle);
        }
        self.rechecks.clear();
        self.channels.step_aside()
    }

    /// Enters the queues again after the shell was continued.
    pub fn come_again(&mut self, outside: &mut Outside, names: &[Name]) -> Note {
        let notes = names.iter().map(|name| self.advance(outside, name, None));
        notes.fold(None, Option::or)
    }

    /// Handles the end of a worker's wait.
    pub fn waited(&mut self, outside: &mut Outside, name: &Name, waited: Waited) -> Note {
        self.waits.remove(name);
        self.advance(outside, name, Some(waited))
    }

    /// Returns the moment of the next `recheck`.
    pub fn due(&self) -> Option<Instant> {
        self.rechecks.values().min().copied()
    }

    /// Advances the channels in which a check is due.
    pub fn recheck(&mut self, outside: &mut Outside, now: Instant) -> Note {
        let due = self.rechecks.extract_if(|_, due| *due <= now);
        let due: Vec<Name> = due.map(|(name, _)| name).collect();
        let notes = due.iter().map(|name| self.advance(outside, name, None));
        notes.fold(None, Option::or)
    }

    fn advance(&mut self, outside: &mut Outside, name: &Name, waited: Option<Waited>) -> Note {
        let mut turn = self.channels.advance(name, waited);
        let note = turn.note.take();
        let next = turn.wait.take();
        if let Some(spent) = turn.spent.take() {
            let drop = move |_: &_| {
                drop(spent);
                Answer::Cancelled
            };
            let _ = outside.work.pool.submit(drop);
        }
        tell(outside, turn);
        self.rechecks.remove(name);
        if let Some(Wait { reason: Reason::Others(_), most, .. }) = &next {
            self.rechecks.insert(name.clone(), Instant::now() + *most);
        }
        let is_same = |(reason, _): &(Reason, Handle)| {
            next.as_ref().is_some_and(|wait| wait.reason == *reason)
        };
        if self.waits.get(name).is_some_and(is_same) {
            return note;
        }
        if let Some((_, handle)) = self.waits.remove(name) {
            forget(outside, &handle);
        }
        let Some(wait) = next else { return note };
        let reason = wait.reason;
        let job = move |control: &_| match wait.perform(control) {
            Some(waited) => Answer::Channel(waited),
            None => Answer::Cancelled,
        };
        match outside.work.pool.submit(job) {
            Ok(handle) => {
                outside.work.waiting.insert(handle.ticket, Waiting::Channel(name.clone()));
                self.waits.insert(name.clone(), (reason, handle));
            }
            Err(error) => tell(outside, self.channels.fail(name, error)),
        }
        note
    }
}

/// Cancels a worker's wait.
fn forget(outside: &mut Outside, handle: &Handle) {
    outside.work.waiting.remove(&handle.ticket);
    outside.work.pool.cancel(handle);
}

fn tell(outside: &mut Outside, turn: Turn) {
    for operation in turn.queued {
        outside.ready.push_back(Event::Queued { operation });
    }
    for (operation, result) in turn.answers {
        let result = result.map(Reply::Admission).map_err(Refusal::new);
        outside.ready.push_back(Event::Done { operation, result });
    }
}
