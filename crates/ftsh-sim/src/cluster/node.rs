//! The machines of a modelled cluster, and what goes wrong with them.

use std::time::Duration;

use super::clock::Clock;
use crate::Channels;
use ftsh_machine::Time;

/// A machine that branches can be sent to.
#[derive(Debug)]
pub struct Node {
    pub(super) name: String,
    pub(super) places: usize,
    /// How long a message takes, either way.
    pub(super) latency: Duration,
    pub(super) clock: Clock,
    /// When it is dead, from when to when.
    dead: Vec<(Time, Time)>,
    /// When nothing comes through to it or from it.
    cut: Vec<(Time, Time)>,
    /// How many branches are on it, as the engine knows.
    pub(super) used: usize,
    /// What its shells obey together, and when these have to look at the clock.
    pub(super) channels: Channels,
    pub(super) wake: Option<Time>,
}

/// What becomes of a branch that is sent to a node, if that isn't what should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node says that it can't run it.
    Refuses,
    /// Nobody there ever says a word; the engine gives up after so long, or never if that is [`Duration::MAX`].
    Swallows(Duration),
    /// The shell there says that it is there, and no more.
    Silent,
    /// So long after it has begun, the engine says that all is well and that it is over. The branch goes on, and
    /// isn't told of that.
    Lies(Duration),
    /// So long after it has begun, the connection ends, and both sides notice.
    Breaks(Duration),
}

impl Node {
    /// A machine that nothing is wrong with.
    pub fn new(name: &str, places: usize) -> Self {
        Self {
            name: name.into(),
            places,
            latency: Duration::from_millis(1),
            clock: Clock::RIGHT,
            dead: Vec::new(),
            cut: Vec::new(),
            used: 0,
            channels: Channels::default(),
            wake: None,
        }
    }

    /// It is dead between these moments, and all that was on it ends with it.
    #[must_use]
    pub fn dead(mut self, from: Time, until: Time) -> Self {
        self.dead.push((from, until));
        self
    }

    /// Nothing comes through between these moments; what was said comes afterwards.
    #[must_use]
    pub fn cut_off(mut self, from: Time, until: Time) -> Self {
        self.cut.push((from, until));
        self
    }

    /// Messages take so long, either way.
    #[must_use]
    pub fn far(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// It has this clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The first moment from this one on at which something comes through.
    pub(super) fn reached(&self, mut at: Time) -> Time {
        while let Some((_, until)) = self.cut.iter().find(|cut| is_in(cut, at)) {
            at = *until;
        }
        at
    }

    /// Whether the engine knows by now that nothing can be sent there.
    pub(super) fn is_known_to_be_down(&self, now: Time, notice: Duration) -> bool {
        let troubles = self.dead.iter().chain(&self.cut);
        troubles.into_iter().any(|trouble| is_in(trouble, now) && now >= trouble.0 + notice)
    }

    /// When the engine notices of what begins or ends a trouble, after this moment.
    pub(super) fn next_change(&self, now: Time, notice: Duration) -> Time {
        let troubles = self.dead.iter().chain(&self.cut);
        let changes = troubles.flat_map(|(from, until)| [*from + notice, *until]);
        changes.filter(|at| *at > now).min().unwrap_or(Time::NEVER)
    }

    /// When it dies with what was sent there at this moment.
    pub(super) fn death_after(&self, since: Time) -> Time {
        let deaths = self.dead.iter().filter(|(_, until)| *until > since);
        deaths.map(|(from, _)| (*from).max(since)).min().unwrap_or(Time::NEVER)
    }

    /// When the engine notices that: at the latest when the node is there again.
    pub(super) fn death_noticed(&self, since: Time, notice: Duration) -> Time {
        noticed(&self.dead, since, notice)
    }

    /// When it notices that what was sent there at this moment doesn't get through.
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
