//! Channels: what all shells of a user on this machine obey together.
//!
//! Each has a file, whose text is the state that all share, and locks beyond the text that the kernel
//! drops with their holder: one for each attempt that is inside, one for each that waits, one for
//! whoever changes the text. Here nothing waits: what is to be waited for is a [`Wait`] for a worker.

mod around;
mod channel;
mod clock;
mod directory;
mod error;
mod file;
mod idle_turn;
mod list;
mod locks;
mod member;
#[cfg(test)]
mod tests;
mod wait;
mod watch;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use self::around::Around;
use self::channel::Channel;
use self::clock::Clock;
use self::directory::Directory;
use self::error::Unusable;
use self::watch::Watch;
use super::os::clock::BOOT_ID;
use ftsh_machine::channels::{Admission, Passed};
use ftsh_machine::effect::{Entry, OperationId, PassId};
use ftsh_syntax::ast::Name;

pub use self::around::VARIABLE;
pub use self::list::{Listed, Seen, Shown, list_channels};
pub use self::wait::{Reason, Wait, Waited};

/// Why an attempt can't go through a channel; it reads as one line for people.
#[derive(Debug, Error)]
#[error("the channel `{name}` can't be used: {reason}")]
pub struct ChannelError {
    name: Name,
    reason: Unusable,
}

/// How somebody enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It will hear what becomes of it.
    Comes,
    /// It is inside an attempt of another shell that is inside.
    Already,
}

/// What there is to say and to do for a channel.
#[derive(Default)]
pub struct Turn {
    /// Who is answered.
    pub answers: Vec<(OperationId, Result<Admission, ChannelError>)>,
    /// Who can't be answered at once, to be said once.
    pub queued: Vec<OperationId>,
    /// What to wait for before anybody else can be answered; nothing if nobody waits.
    pub wait: Option<Wait>,
    /// Something that people should know.
    pub note: Option<String>,
    /// What isn't needed any more, for a worker to drop: the kernel takes milliseconds.
    pub spent: Option<Arc<Watch>>,
}

/// The channels of one shell.
pub struct Channels {
    directory: Directory,
    around: Around,
    clock: Option<Clock>,
    all: HashMap<Name, Channel>,
    /// Who waits, and where.
    waiting: HashMap<OperationId, Name>,
    /// Who is inside, where, and what asked for it.
    inside: HashMap<PassId, (Name, OperationId)>,
    /// What was admitted.
    admitted: HashMap<OperationId, PassId>,
}

impl Channels {
    /// Channels in this directory, or else the user's own.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory: Directory::new(directory),
            around: Around::told(),
            clock: None,
            all: HashMap::new(),
            waiting: HashMap::new(),
            inside: HashMap::new(),
            admitted: HashMap::new(),
        }
    }

    /// Whether a channel has its file open.
    pub fn is_open(&self, name: &Name) -> bool {
        self.all.contains_key(name)
    }

    /// An attempt comes. `advance` says what becomes of it; unless a shell around this one is inside
    /// already, so that there is nothing to wait for, and nothing to count.
    pub fn enter(&mut self, entry: Entry) -> Result<Entered, ChannelError> {
        let name = entry.channel.clone();
        if !self.all.contains_key(&name) {
            let channel = Channel::open(&self.directory, &name)
                .map_err(|reason| ChannelError { name: name.clone(), reason })?;
            self.all.insert(name.clone(), channel);
        }
        if let Some(channel) = self.all.get_mut(&name) {
            if channel.is_inside(&self.around) {
                return Ok(Entered::Already);
            }
            self.waiting.insert(entry.operation, name);
            channel.enter(entry);
        }
        Ok(Entered::Comes)
    }

    /// What to tell commands of attempts that have these passes.
    pub fn told(&self, passes: impl Iterator<Item = PassId>) -> String {
        let place = |pass: PassId| {
            let (name, _) = self.inside.get(&pass)?;
            Some((&**name, self.all.get(name)?.number(pass)?))
        };
        self.around.tell(&passes.filter_map(place).collect::<Vec<_>>())
    }

    /// Nobody waits any more for what an operation asked for, whatever came of it; the channel to
    /// `advance`, if that was an attempt.
    pub fn abandon(&mut self, operation: OperationId) -> Option<Name> {
        if let Some(name) = self.waiting.remove(&operation) {
            self.all.get_mut(&name)?.give_up(operation);
            return Some(name);
        }
        let pass = self.admitted.get(&operation)?;
        self.leave(*pass, Passed::Neither)
    }

    /// An attempt is over; the channel to `advance`, if it went through one.
    pub fn leave(&mut self, pass: PassId, passed: Passed) -> Option<Name> {
        let (name, operation) = self.inside.remove(&pass)?;
        self.admitted.remove(&operation);
        self.all.get_mut(&name)?.leave(pass, passed);
        Some(name)
    }

    /// The shell is going to be stopped: those who wait leave the queues. The channels to `advance` when
    /// it goes on.
    pub fn step_aside(&mut self) -> Vec<Name> {
        let names: HashSet<Name> = self.waiting.values().cloned().collect();
        for name in &names {
            if let Some(channel) = self.all.get_mut(name) {
                channel.step_aside();
            }
        }
        names.into_iter().collect()
    }

    /// Nobody can wait for a channel, as there is no thread to be had: all who would have to are told.
    pub fn fail(&mut self, name: &Name, error: std::io::Error) -> Turn {
        let mut turn = Turn::default();
        let Some(channel) = self.all.get_mut(name) else { return turn };
        let failed = channel.fail(Unusable::Worker(error));
        self.answer(name, failed, &mut turn);
        turn
    }

    /// Goes on as far as that can be done at once. `waited` is what came of waiting.
    pub fn advance(&mut self, name: &Name, waited: Option<Waited>) -> Turn {
        let Some(channel) = self.all.get_mut(name) else { return Turn::default() };
        let clock = match self.clock.take().map_or_else(Clock::new, Ok) {
            Ok(clock) => self.clock.insert(clock),
            Err(error) => {
                let failed = channel.fail(Unusable::System { path: BOOT_ID.into(), error });
                let mut turn = Turn::default();
                self.answer(name, failed, &mut turn);
                return turn;
            }
        };
        let advanced = channel.advance(&self.directory, clock, waited);
        let mut turn = Turn {
            queued: advanced.queued,
            wait: advanced.wait,
            note: advanced.note,
            spent: advanced.spent,
            ..Turn::default()
        };
        self.answer(name, advanced.answers, &mut turn);
        turn
    }

    fn answer(
        &mut self,
        name: &Name,
        answers: Vec<(Entry, Result<Admission, Unusable>)>,
        turn: &mut Turn,
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

/// What is known by now of how attempts ended is told to the others.
impl Drop for Channels {
    fn drop(&mut self) {
        let Some(clock) = &self.clock else { return };
        for channel in self.all.values_mut() {
            channel.finish(&self.directory, clock);
        }
    }
}
