//! Environment of a shell on a node. Commands are those of the world, files are shared with the
//! head, and the clock belongs to the node.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::clock::NodeClock;
use crate::{Ask, Call, Due, Model, Shell, SimulatedChannels, World};
use ftsh_machine::effect::ProcessId;
use ftsh_machine::{Event, Time};

/// Node, as seen by a shell.
pub(super) struct Here<'a, W> {
    pub world: &'a mut W,
    /// Shell that owns the shared files.
    pub files: &'a mut Shell,
    pub channels: &'a mut SimulatedChannels,
    /// Events of channels for the shells of the node.
    pub events: &'a mut Vec<(usize, Event)>,
    pub node: &'a str,
    pub clock: NodeClock,
    /// Number of the shell.
    pub number: usize,
}

/// World of the commands on a node.
pub(super) struct Local<'a, 'b, W> {
    pub here: &'a mut Here<'b, W>,
    pub now: Time,
    pub future: &'a mut BTreeMap<(Time, u64), Due>,
}

impl<W: World> Here<'_, W> {
    /// Returns the time that the node's clock shows.
    pub(super) fn shown(&self) -> Duration {
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
        let events = self.here.channels.ask(self.here.number, ask, Time::after(self.here.shown()));
        self.here.events.extend(events);
    }

    fn note(&mut self, what: fmt::Arguments) {
        self.here.world.note(format_args!("{}: {what}", self.here.node));
    }
}
