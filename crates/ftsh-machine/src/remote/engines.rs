//! What branches share that are sent to the same engine: who is on the way, who waits, and which machines
//! are to be avoided.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::Rng;

use crate::effect::{ProcessId, TaskId};
use crate::remote::nodes::Nodes;
use crate::time::Time;
use ftsh_syntax::backoff::{Backoff, Kind, Policy};
use ftsh_syntax::engine::EngineId;

/// The delays after an engine, or one machine after the other, has refused: `full from 1 second to 1 minute`.
pub fn policy() -> Policy {
    let (from, to) = (Duration::from_secs(1), Duration::from_secs(60));
    Policy { from, to, ..Policy::new(Kind::Full) }
}

/// The engines that a run has sent branches to.
#[derive(Debug, Default)]
pub struct Engines(BTreeMap<EngineId, Shared>);

/// What is known of one.
#[derive(Debug, Default)]
pub struct Shared {
    /// Its machines.
    pub nodes: Nodes,
    /// Branches that were sent and have not begun.
    pending: BTreeSet<ProcessId>,
    /// Those that wait until they may be sent.
    waiting: BTreeSet<TaskId>,
    /// The delays, since it was there last.
    refused: Option<Backoff>,
    /// Nothing is sent before.
    closed_until: Time,
}

/// Whether a branch may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Now.
    Now,
    /// When one has begun or come back, or at this moment.
    Later(Option<Time>),
}

impl Engines {
    /// What is known of an engine.
    pub fn of(&mut self, engine: EngineId) -> &mut Shared {
        self.0.entry(engine).or_default()
    }

    /// A task waits no more, whatever for; the engine where that makes room.
    pub fn leave(&mut self, task: TaskId, process: Option<ProcessId>) -> Option<EngineId> {
        let mut roomy = None;
        for (engine, shared) in &mut self.0 {
            shared.waiting.remove(&task);
            if process.is_some_and(|process| shared.pending.remove(&process)) {
                roomy = Some(*engine);
            }
        }
        roomy
    }
}

impl Shared {
    /// Whether one more may be sent while at most so many are on the way. An engine that has refused is
    /// asked by one branch alone.
    pub fn turn(&mut self, task: TaskId, most: usize, now: Time) -> Turn {
        let room = if self.refused.is_some() { 1 } else { most };
        let closed = Some(self.closed_until).filter(|until| *until > now);
        if closed.is_none() && self.pending.len() < room {
            return Turn::Now;
        }
        self.waiting.insert(task);
        Turn::Later(closed)
    }

    /// A branch was sent.
    pub fn sent(&mut self, process: ProcessId) {
        self.pending.insert(process);
    }

    /// A branch that was sent begins on this machine.
    pub fn placed(&mut self, process: ProcessId, node: &str) {
        self.settled(process);
        self.is_there();
        self.nodes.began(node);
    }

    /// It has begun, or won't.
    pub fn settled(&mut self, process: ProcessId) {
        self.pending.remove(&process);
    }

    /// The engine does what it is asked.
    pub fn is_there(&mut self) {
        self.refused = None;
        self.closed_until = Time::START;
    }

    /// The engine doesn't do what it is asked: how long to wait before it is asked again. What several
    /// were told that were sent at once counts once.
    pub fn is_down(&mut self, now: Time, rng: &mut impl Rng) -> Duration {
        if self.closed_until > now {
            return self.closed_until - now;
        }
        let backoff = self.refused.get_or_insert_with(|| Backoff::new(policy()));
        let delay = backoff.next_delay(now.elapsed(), rng);
        self.closed_until = now + delay;
        delay
    }

    /// Those that waited: each asks for its turn again.
    pub fn wake(&mut self) -> BTreeSet<TaskId> {
        std::mem::take(&mut self.waiting)
    }
}
