//! Channels: limits on attempts, shared by all shells of a user on this machine.
//!
//! Each channel has a file. Its text is the shared state. Locks on bytes beyond the text represent
//! passes, waiters, and the right to change the text; the kernel releases the locks of a killed
//! shell. This module never blocks: a necessary wait is returned as a [`Wait`] for a worker.

mod channel;
mod clock;
mod file;
mod file_watch;
mod idle_turn;
mod list;
mod locks;
mod member;
mod outer_passes;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use self::channel::OpenChannel;
use self::clock::ChannelClock;
use self::file::{ChannelDirectory, ChannelFileError};
use self::file_watch::FileWatch;
use self::outer_passes::OuterPasses;
use crate::clock::BOOT_ID;
use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId};
use ftsh_syntax::ast::Name;

pub use self::list::{BreakerSnapshot, ChannelSnapshot, ListedChannel, list_channels};
pub(crate) use self::wait::{Wait, WaitReason, Waited};

/// Reason why an attempt cannot enter a channel, as one line for people.
#[derive(Debug, Error)]
#[error("cannot use the channel `{name}`: {reason}")]
pub(crate) struct ChannelError {
    name: Name,
    reason: ChannelFileError,
}

/// Results of advancing a channel.
#[derive(Default)]
pub(crate) struct ChannelUpdate {
    /// Decisions about attempts.
    pub answers: Vec<(OperationId, Result<Admission, ChannelError>)>,
    /// Attempts that have to wait, each reported once.
    pub queued: Vec<OperationId>,
    /// Condition for the next decision; none if no attempt waits.
    pub wait: Option<Wait>,
    /// Message to the user.
    pub note: Option<String>,
    /// Watch no longer needed. A worker drops it, since the kernel takes milliseconds.
    pub spent: Option<Arc<FileWatch>>,
}

pub(crate) struct ShellChannels {
    directory: ChannelDirectory,
    outer_passes: OuterPasses,
    clock: Option<ChannelClock>,
    all: HashMap<Name, OpenChannel>,
    /// Channels of waiting operations.
    waiting: HashMap<OperationId, Name>,
    /// Passes, with the channel and the operation.
    inside: HashMap<PassId, (Name, OperationId)>,
    /// Passes by operation.
    admitted: HashMap<OperationId, PassId>,
}

impl ShellChannels {
    /// Environment variable with the passes that the shells around a command hold.
    pub(crate) const VARIABLE: &str = outer_passes::VARIABLE;

    /// Creates the channels in a directory; without one, in the user's own.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory: ChannelDirectory::new(directory),
            outer_passes: OuterPasses::from_env(),
            clock: None,
            all: HashMap::new(),
            waiting: HashMap::new(),
            inside: HashMap::new(),
            admitted: HashMap::new(),
        }
    }

    /// True if the file of a channel is open.
    pub(crate) fn is_open(&self, name: &Name) -> bool {
        self.all.contains_key(name)
    }

    /// Adds a waiter for a later `advance`. Returns true if a shell around this one holds a pass: then
    /// nothing waits.
    pub(crate) fn enter(&mut self, entry: Entry) -> Result<bool, ChannelError> {
        let name = entry.channel.clone();
        if !self.all.contains_key(&name) {
            let channel = OpenChannel::open(&self.directory, &name)
                .map_err(|reason| ChannelError { name: name.clone(), reason })?;
            self.all.insert(name.clone(), channel);
        }
        if let Some(channel) = self.all.get_mut(&name) {
            if channel.is_inside(&self.outer_passes) {
                return Ok(true);
            }
            self.waiting.insert(entry.operation, name);
            channel.enter(entry);
        }
        Ok(false)
    }

    /// Returns the environment variable for commands of attempts with these passes.
    pub(crate) fn env_value(&self, passes: impl Iterator<Item = PassId>) -> String {
        let place = |pass: PassId| {
            let (name, _) = self.inside.get(&pass)?;
            Some((&**name, self.all.get(name)?.number(pass)?))
        };
        self.outer_passes.env_value(&passes.filter_map(place).collect::<Vec<_>>())
    }

    /// Ends the wait or the attempt of an operation. Returns the channel to advance, if any.
    pub(crate) fn cancel(&mut self, operation: OperationId) -> Option<Name> {
        if let Some(name) = self.waiting.remove(&operation) {
            self.all.get_mut(&name)?.give_up(operation);
            return Some(name);
        }
        let pass = self.admitted.get(&operation)?;
        self.leave(*pass, Passed::Neither)
    }

    /// Ends an attempt. Returns the channel to advance, if any.
    pub(crate) fn leave(&mut self, pass: PassId, passed: Passed) -> Option<Name> {
        let (name, operation) = self.inside.remove(&pass)?;
        self.admitted.remove(&operation);
        self.all.get_mut(&name)?.leave(pass, passed);
        Some(name)
    }

    /// Leaves all queues before the shell is stopped. Returns the channels to advance after the
    /// shell was continued.
    pub(crate) fn leave_queues(&mut self) -> Vec<Name> {
        let names: HashSet<Name> = self.waiting.values().cloned().collect();
        for name in &names {
            if let Some(channel) = self.all.get_mut(name) {
                channel.leave_queues();
            }
        }
        names.into_iter().collect()
    }

    /// Fails all waiters of a channel for lack of a worker thread.
    pub(crate) fn fail(&mut self, name: &Name, error: std::io::Error) -> ChannelUpdate {
        let mut turn = ChannelUpdate::default();
        let Some(channel) = self.all.get_mut(name) else { return turn };
        let failed = channel.fail(ChannelFileError::Worker(error));
        self.answer(name, failed, &mut turn);
        turn
    }

    /// Advances a channel as far as possible without waiting. `waited` is the result of the last
    /// wait.
    pub(crate) fn advance(&mut self, name: &Name, waited: Option<Waited>) -> ChannelUpdate {
        let Some(channel) = self.all.get_mut(name) else { return ChannelUpdate::default() };
        let clock = match self.clock.take().map_or_else(ChannelClock::new, Ok) {
            Ok(clock) => self.clock.insert(clock),
            Err(error) => {
                let failed = channel.fail(ChannelFileError::System { path: BOOT_ID.into(), error });
                let mut turn = ChannelUpdate::default();
                self.answer(name, failed, &mut turn);
                return turn;
            }
        };
        let advanced = channel.advance(&self.directory, clock, waited);
        let mut turn = ChannelUpdate {
            queued: advanced.queued,
            wait: advanced.wait,
            note: advanced.note,
            spent: advanced.spent,
            ..ChannelUpdate::default()
        };
        self.answer(name, advanced.answers, &mut turn);
        turn
    }

    fn answer(
        &mut self,
        name: &Name,
        answers: Vec<(Entry, Result<Admission, ChannelFileError>)>,
        turn: &mut ChannelUpdate,
    ) {
        for (entry, result) in answers {
            self.waiting.remove(&entry.operation);
            if matches!(result, Ok(Admission::Admitted)) {
                self.inside.insert(entry.pass, (name.clone(), entry.operation));
                self.admitted.insert(entry.operation, entry.pass);
            }
            let result = result.map_err(|reason| ChannelError { name: name.clone(), reason });
            turn.answers.push((entry.operation, result));
        }
    }
}

/// Records the end of attempts for the other shells.
impl Drop for ShellChannels {
    fn drop(&mut self) {
        let Some(clock) = &self.clock else { return };
        for channel in self.all.values_mut() {
            channel.finish(&self.directory, clock);
        }
    }
}
