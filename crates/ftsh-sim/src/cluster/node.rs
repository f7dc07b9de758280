//! Machines of a modelled cluster, with their failures.

use std::time::Duration;

use super::clock::NodeClock;
use crate::SimulatedChannels;
use ftsh_machine::Time;
use ftsh_remote::Stream;

/// Machine that runs branches.
#[derive(Debug)]
pub struct SimulatedNode {
    pub(super) name: String,
    pub(super) places: usize,
    /// Delay of a message in either direction.
    pub(super) latency: Duration,
    pub(super) clock: NodeClock,
    /// Intervals in which the node is dead.
    dead: Vec<(Time, Time)>,
    /// Intervals in which the node is unreachable.
    cut: Vec<(Time, Time)>,
    /// Number of branches on the node, as the engine counts.
    pub(super) used: usize,
    /// Channels shared by the node's shells, and the next time at which the channels need a call.
    pub(super) channels: SimulatedChannels,
    pub(super) wake: Option<Time>,
}

/// Fault of a branch on a node, or of the engine that carries the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node refuses the branch.
    Refuses,
    /// The node never answers. The engine gives up after the given time, or never for
    /// [`Duration::MAX`].
    Swallows(Duration),
    /// Bytes to the node are lost from the given time after the submission.
    Deaf(Duration),
    /// The engine reports a success at the given time after the start. The branch continues without
    /// a message.
    Lies(Duration),
    /// The connection breaks at the given time after the start, and both sides detect the break.
    Breaks(Duration),
    /// The engine sends both streams of the node on the given stream.
    Joins(Stream),
    /// The engine drops the given stream of the node from the given time after the submission.
    Drops(Stream, Duration),
    /// The engine sends everything from the node again after the given time.
    Repeats(Duration),
    /// The engine starts the job a second time with the same input, by the given time later. What
    /// the second start prints is dropped.
    StartsTwice(Duration),
    /// The engine starts the job a second time, at the given time after the submission or later.
    /// The second start takes one byte from the input of the first start.
    Steals(Duration),
}

impl SimulatedNode {
    /// Creates a node without failures.
    pub fn new(name: &str, places: usize) -> Self {
        Self {
            name: name.into(),
            places,
            latency: Duration::from_millis(1),
            clock: NodeClock::RIGHT,
            dead: Vec::new(),
            cut: Vec::new(),
            used: 0,
            channels: SimulatedChannels::default(),
            wake: None,
        }
    }

    /// Kills the node at `from`, with all branches. The node is back at `until`.
    #[must_use]
    pub fn dead(mut self, from: Time, until: Time) -> Self {
        self.dead.push((from, until));
        self
    }

    /// Cuts off the node between two moments. Messages are delivered afterwards.
    #[must_use]
    pub fn cut_off(mut self, from: Time, until: Time) -> Self {
        self.cut.push((from, until));
        self
    }

    /// Sets the delay of messages.
    #[must_use]
    pub fn far(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: NodeClock) -> Self {
        Self { clock, ..self }
    }

    /// Returns the first moment, from `at` on, at which the node is reachable.
    pub(super) fn reached(&self, mut at: Time) -> Time {
        while let Some((_, until)) = self.cut.iter().find(|cut| is_in(cut, at)) {
            at = *until;
        }
        at
    }

    /// True if the engine has detected that the node is dead or unreachable.
    pub(super) fn is_known_to_be_down(&self, now: Time, notice: Duration) -> bool {
        let troubles = self.dead.iter().chain(&self.cut);
        troubles.into_iter().any(|trouble| is_in(trouble, now) && now >= trouble.0 + notice)
    }

    /// Returns the next time at which the engine detects the start or the end of a failure.
    pub(super) fn next_change(&self, now: Time, notice: Duration) -> Time {
        let troubles = self.dead.iter().chain(&self.cut);
        let changes = troubles.flat_map(|(from, until)| [*from + notice, *until]);
        changes.filter(|at| *at > now).min().unwrap_or(Time::NEVER)
    }

    /// Returns the time at which the node dies with a branch that was sent at `since`.
    pub(super) fn death_after(&self, since: Time) -> Time {
        let deaths = self.dead.iter().filter(|(_, until)| *until > since);
        deaths.map(|(from, _)| (*from).max(since)).min().unwrap_or(Time::NEVER)
    }

    /// Returns the time at which the engine detects the death: at the latest when the node is back.
    pub(super) fn death_noticed(&self, since: Time, notice: Duration) -> Time {
        noticed(&self.dead, since, notice)
    }

    /// Returns the time at which the engine detects that a branch sent at `since` does not arrive.
    pub(super) fn absence_noticed(&self, since: Time, notice: Duration) -> Time {
        noticed(&self.cut, since, notice)
    }
}

fn noticed(troubles: &[(Time, Time)], since: Time, notice: Duration) -> Time {
    let ahead = troubles.iter().filter(|(_, until)| *until > since);
    let noticed = ahead.map(|(from, until)| ((*from).max(since) + notice).min(*until));
    noticed.min().unwrap_or(Time::NEVER)
}

fn is_in((from, until): &(Time, Time), at: Time) -> bool {
    (*from..*until).contains(&at)
}
