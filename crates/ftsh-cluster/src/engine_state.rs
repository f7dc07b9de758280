//! State of one engine during a run.

use std::time::Duration;

use super::engines::Engine;
use super::hosts::Hosts;
use super::poll_schedule::PollSchedule;
use super::queue_poll::QueuePoll;
use ftsh_machine::Time;

/// State of one engine during a run. A list of one engine's queue proves nothing about the jobs of
/// another.
#[derive(Debug)]
pub(super) struct EngineState {
    pub engine: &'static dyn Engine,
    /// Use of the hosts, if the argument of the engine lists hosts.
    pub hosts: Hosts,
    pub schedule: PollSchedule,
    pub poll: Option<QueuePoll>,
}

impl EngineState {
    /// Creates the state of an engine that has not been used. The first poll of the queue follows
    /// the first submission by `first_poll`.
    pub fn new(engine: &'static dyn Engine, first_poll: Duration) -> Self {
        Self {
            engine,
            hosts: Hosts::default(),
            schedule: PollSchedule::new(first_poll),
            poll: None,
        }
    }

    /// Returns the time of the next start or end of a poll.
    pub fn next_poll(&self) -> Time {
        self.poll.as_ref().map_or(Time::NEVER, |poll| poll.until).min(self.schedule.due())
    }
}
