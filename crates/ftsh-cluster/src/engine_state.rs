//! State of one engine during a run.

use std::collections::BTreeMap;
use std::time::Duration;

use bstr::BString;

use super::ClusterDriver;
use super::engines::Engine;
use super::hosts::Hosts;
use super::poll_schedule::PollSchedule;
use super::queue_poll::QueuePoll;
use ftsh_machine::Time;
use ftsh_syntax::engine::EngineId;

/// State of one engine during a run. A list of one engine's queue proves nothing about the jobs of
/// another.
#[derive(Debug)]
pub(super) struct EngineState {
    pub engine: &'static dyn Engine,
    /// Use of the hosts, if the argument of the engine lists hosts.
    pub hosts: Hosts,
    pub schedule: PollSchedule,
    pub poll: Option<QueuePoll>,
    /// Words of the clause that a carrier has listed jobs of last.
    pub listed_words: Option<BString>,
    /// Result of a carrier's first list with some words. If that fails, the carrier has no list.
    pub has_list: BTreeMap<BString, bool>,
}

impl EngineState {
    /// Creates the state of an engine that has not been used. The first poll of the queue follows
    /// the first submission by `first_poll`.
    pub(crate) fn new(engine: &'static dyn Engine, first_poll: Duration) -> Self {
        Self {
            engine,
            hosts: Hosts::default(),
            schedule: PollSchedule::new(first_poll),
            poll: None,
            listed_words: None,
            has_list: BTreeMap::new(),
        }
    }

    /// Returns the time of the next start or end of a poll.
    pub(crate) fn next_poll(&self) -> Time {
        self.poll.as_ref().map_or(Time::NEVER, |poll| poll.until).min(self.schedule.due())
    }
}

impl ClusterDriver {
    /// Returns the state of an engine.
    pub(super) fn engine(&mut self, id: EngineId) -> &mut EngineState {
        let (implementation, first_poll) = (self.implementation, self.first_poll);
        self.engines.entry(id).or_insert_with(|| EngineState::new(implementation(id), first_poll))
    }

    /// Returns the time of the next start or end of a poll.
    pub(super) fn next_poll(&self) -> Time {
        self.engines.values().map(EngineState::next_poll).min().unwrap_or(Time::NEVER)
    }

    /// Returns the engine whose poll has this number.
    pub(super) fn engine_with_poll(&self, number: u64) -> Option<EngineId> {
        let has_poll =
            |state: &EngineState| state.poll.as_ref().is_some_and(|poll| poll.number() == number);
        self.engines.iter().find(|(_, state)| has_poll(state)).map(|(id, _)| *id)
    }
}
