//! What a shell on a node finds there: commands are those of the world, files are shared with the head, and
//! the time is its own.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::clock::Clock;
use crate::{Ask, Call, Channels, Due, Model, Shell, World};
use ftsh_machine::effect::ProcessId;
use ftsh_machine::{Event, Time};

/// A node, as a shell there finds it.
pub struct Here<'a, W> {
    pub world: &'a mut W,
    /// The shell whose files it shares.
    pub files: &'a mut Shell,
    pub channels: &'a mut Channels,
    /// What channels tell the shells of the node.
    pub told: &'a mut Vec<(usize, Event)>,
    pub node: &'a str,
    pub clock: Clock,
    /// The number of the shell.
    pub number: usize,
}

/// The same, as commands find it.
pub struct Local<'a, 'b, W> {
    pub here: &'a mut Here<'b, W>,
    pub now: Time,
    pub future: &'a mut BTreeMap<(Time, u64), Due>,
}

impl<W: World> Here<'_, W> {
    /// What the node's clock shows.
    pub fn shown(&self) -> Duration {
        self.clock.shows(self.world.now())
    }
}

impl<W: World> World for Local<'_, '_, W> {
    fn now(&self) -> Time {
        self.now
    }

    fn start(&mut self, process: ProcessId, call: &Call) -> Option<Model> {
        self.here.world.start(process, call)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        let last = self.future.keys().map(|(_, number)| *number).max();
        self.future.insert((at, last.map_or(0, |last| last + 1)), due);
    }

    fn ask(&mut self, ask: Ask) {
        let told = self.here.channels.ask(self.here.number, ask, Time::after(self.here.shown()));
        self.here.told.extend(told);
    }

    fn note(&mut self, what: fmt::Arguments) {
        self.here.world.note(format_args!("{}: {what}", self.here.node));
    }
}
