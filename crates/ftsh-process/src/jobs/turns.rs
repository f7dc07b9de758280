//! Waits for channels, and the workers that perform them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use super::command::{JobRecipient, JobResult};
use super::reactor::Reactor;
use crate::channels::{ChannelUpdate, ShellChannels, Wait, WaitReason, Waited};
use crate::fds::Need;
use crate::workers::JobHandle;
use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId, ScopeId};
use ftsh_machine::event::{Event, Refusal, Reply};
use ftsh_syntax::ast::Name;

/// Channels of a shell, and waits for them.
pub(crate) struct Turns {
    channels: ShellChannels,
    /// Reason of the wait for each channel, and the worker that waits.
    waits: HashMap<Name, (WaitReason, JobHandle)>,
    /// Times to check if earlier waiters, which may be frozen, take their turn.
    rechecks: HashMap<Name, Instant>,
    /// Passes of attempts, by scope.
    scopes: HashMap<ScopeId, PassId>,
}

/// Message to the user.
pub(crate) type UserNote = Option<String>;

impl Turns {
    /// Creates the channels in a directory; without one, in the user's own.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        let (waits, rechecks, scopes) = Default::default();
        Self { channels: ShellChannels::new(directory), waits, rechecks, scopes }
    }

    /// Returns the number of descriptors needed to enter a channel.
    pub(crate) fn need(&self, name: &Name) -> Need {
        Need::of(usize::from(!self.channels.is_open(name)), 1)
    }

    /// Handles the request of an attempt to enter a channel.
    pub(crate) fn enter(&mut self, reactor: &mut Reactor, entry: Entry) -> UserNote {
        let (operation, name) = (entry.operation, entry.channel.clone());
        match self.channels.enter(entry) {
            Ok(false) => self.advance(reactor, &name, None),
            Ok(true) => {
                let result = Ok(Reply::Admission(Admission::Admitted));
                reactor.emit(Event::Done { operation, result });
                None
            }
            Err(error) => {
                let result = Err(Refusal::new(error));
                reactor.emit(Event::Done { operation, result });
                None
            }
        }
    }

    /// Records the pass of a scope.
    pub(crate) fn set_pass(&mut self, scope: ScopeId, pass: PassId) {
        self.scopes.insert(scope, pass);
    }

    /// Returns the environment variable of a command in these scopes, if any of them holds a pass.
    pub(crate) fn channel_env(&self, scopes: impl FnOnce() -> Vec<ScopeId>) -> Option<String> {
        if self.scopes.is_empty() {
            return None;
        }
        let passes = scopes().into_iter().filter_map(|scope| self.scopes.get(&scope).copied());
        Some(self.channels.env_value(passes)).filter(|channel_env| !channel_env.is_empty())
    }

    /// Handles the end of an attempt.
    pub(crate) fn leave(
        &mut self,
        reactor: &mut Reactor,
        pass: PassId,
        passed: Passed,
    ) -> UserNote {
        self.scopes.retain(|_, other| *other != pass);
        let name = self.channels.leave(pass, passed)?;
        self.advance(reactor, &name, None)
    }

    /// Cancels the wait of an operation; none if it does not belong to a channel.
    pub(crate) fn cancel(
        &mut self,
        reactor: &mut Reactor,
        operation: OperationId,
    ) -> Option<UserNote> {
        let name = self.channels.cancel(operation)?;
        Some(self.advance(reactor, &name, None))
    }

    /// Leaves all queues before the shell is stopped, so that other shells do not wait for it.
    /// Returns the channels to enter again.
    pub(crate) fn leave_queues(&mut self, reactor: &mut Reactor) -> Vec<Name> {
        for (_, (_, handle)) in self.waits.drain() {
            reactor.discard(&handle);
        }
        self.rechecks.clear();
        self.channels.leave_queues()
    }

    /// Enters the queues again after the shell was continued.
    pub(crate) fn rejoin_queues(&mut self, reactor: &mut Reactor, names: &[Name]) -> UserNote {
        let notes = names.iter().map(|name| self.advance(reactor, name, None));
        notes.fold(None, Option::or)
    }

    /// Handles the end of a worker's wait.
    pub(crate) fn waited(
        &mut self,
        reactor: &mut Reactor,
        name: &Name,
        waited: Waited,
    ) -> UserNote {
        self.waits.remove(name);
        self.advance(reactor, name, Some(waited))
    }

    /// Returns the moment of the next `recheck`.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.rechecks.values().min().copied()
    }

    /// Advances the channels in which a check is due.
    pub(crate) fn recheck(&mut self, reactor: &mut Reactor, now: Instant) -> UserNote {
        let due = self.rechecks.extract_if(|_, due| *due <= now);
        let due: Vec<Name> = due.map(|(name, _)| name).collect();
        let notes = due.iter().map(|name| self.advance(reactor, name, None));
        notes.fold(None, Option::or)
    }

    fn advance(&mut self, reactor: &mut Reactor, name: &Name, waited: Option<Waited>) -> UserNote {
        let mut turn = self.channels.advance(name, waited);
        let note = turn.note.take();
        let next = turn.wait.take();
        if let Some(spent) = turn.spent.take() {
            let drop = move |_: &_| {
                drop(spent);
                JobResult::Cancelled
            };
            reactor.submit_unattended(drop);
        }
        tell(reactor, turn);
        self.rechecks.remove(name);
        if let Some(Wait { reason: WaitReason::Others(_), most, .. }) = &next {
            self.rechecks.insert(name.clone(), Instant::now() + *most);
        }
        let is_same = |(reason, _): &(WaitReason, JobHandle)| {
            next.as_ref().is_some_and(|wait| wait.reason == *reason)
        };
        // The worker that waits for this reason goes on: another one would begin the same wait.
        if self.waits.get(name).is_some_and(is_same) {
            return note;
        }
        if let Some((_, handle)) = self.waits.remove(name) {
            reactor.discard(&handle);
        }
        let Some(wait) = next else { return note };
        let reason = wait.reason;
        let job = move |control: &_| match wait.perform(control) {
            Some(waited) => JobResult::Channel(waited),
            None => JobResult::Cancelled,
        };
        match reactor.submit(JobRecipient::Channel(name.clone()), job) {
            Ok(handle) => drop(self.waits.insert(name.clone(), (reason, handle))),
            Err(error) => tell(reactor, self.channels.fail(name, error)),
        }
        note
    }
}

fn tell(reactor: &mut Reactor, turn: ChannelUpdate) {
    for operation in turn.queued {
        reactor.emit(Event::Queued { operation });
    }
    for (operation, result) in turn.answers {
        let result = result.map(Reply::Admission).map_err(Refusal::new);
        reactor.emit(Event::Done { operation, result });
    }
}
