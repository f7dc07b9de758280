//! State shared by all branches of an engine: branches being submitted, waiting branches, and
//! machines to avoid.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::Rng;

use super::nodes::{Nodes, Shunned};
use crate::effect::{ProcessId, TaskId};
use crate::record::LONG_DELAY;
use crate::time::Time;
use ftsh_syntax::backoff::{Backoff, Policy, PolicyKind};
use ftsh_syntax::engine::EngineId;

/// Returns the policy of delays after refusals by an engine or by several machines: `full from 1
/// second to 1 minute`.
pub(crate) fn policy() -> Policy {
    let (from, to) = (Duration::from_secs(1), Duration::from_secs(60));
    Policy { from, to, ..Policy::new(PolicyKind::Full) }
}

/// Engines used by a run.
#[derive(Debug, Default)]
pub(crate) struct Engines(BTreeMap<EngineId, EngineLoad>);

/// State of an engine.
#[derive(Debug, Default)]
pub(crate) struct EngineLoad {
    /// Machines of the engine.
    pub nodes: Nodes,
    /// Dispatched branches that have not begun.
    pending: BTreeSet<ProcessId>,
    /// Tasks waiting for permission to dispatch.
    waiting: BTreeSet<TaskId>,
    /// Delays since the last success of the engine.
    refused: Option<Backoff>,
    /// Moment before which nothing is dispatched.
    closed_until: Time,
    /// First refusal since a machine ran a branch, and the moment of the next notice.
    idle: Option<(Time, Time)>,
}

/// Permission to dispatch a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DispatchTurn {
    /// Granted now.
    Now,
    /// Granted after another branch has begun or returned, or at this moment.
    Later(Option<Time>),
}

impl Engines {
    /// Returns the state of an engine.
    pub(crate) fn of(&mut self, engine: EngineId) -> &mut EngineLoad {
        self.0.entry(engine).or_default()
    }

    /// Ends the wait of a task. Returns the engine if another branch can now be dispatched.
    pub(crate) fn leave(&mut self, task: TaskId, process: Option<ProcessId>) -> Option<EngineId> {
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

impl EngineLoad {
    /// Decides about another branch, with at most `most` branches pending. An engine that has
    /// refused a branch is probed by a single branch.
    pub(crate) fn turn(&mut self, task: TaskId, most: usize, now: Time) -> DispatchTurn {
        let room = if self.refused.is_some() { 1 } else { most };
        let closed = Some(self.closed_until).filter(|until| *until > now);
        if closed.is_none() && self.pending.len() < room {
            return DispatchTurn::Now;
        }
        self.waiting.insert(task);
        DispatchTurn::Later(closed)
    }

    /// Records the dispatch of a branch.
    pub(crate) fn record_dispatch(&mut self, process: ProcessId) {
        self.pending.insert(process);
    }

    /// Records the beginning of a branch on a machine.
    pub(crate) fn record_beginning(&mut self, process: ProcessId, node: &str) {
        self.remove_pending(process);
        self.record_success();
        self.nodes.began(node);
    }

    /// Records that a branch has begun, or will not begin.
    pub(crate) fn remove_pending(&mut self, process: ProcessId) {
        self.pending.remove(&process);
    }

    /// Records a success of the engine.
    pub(crate) fn record_success(&mut self) {
        self.refused = None;
        self.idle = None;
        self.closed_until = Time::START;
    }

    /// Records a failure of the engine. Returns the delay before the next dispatch. Failures of
    /// simultaneous dispatches count once.
    pub(crate) fn record_failure(&mut self, now: Time, rng: &mut impl Rng) -> Duration {
        if self.closed_until > now {
            return self.closed_until - now;
        }
        let backoff = self.refused.get_or_insert_with(|| Backoff::new(policy()));
        let delay = backoff.next_delay(now.elapsed(), rng);
        self.closed_until = now + delay;
        delay
    }

    /// Records that a branch was not run. Returns the time without any machine that runs branches,
    /// first after a minute, and then each time that it has doubled.
    pub(crate) fn record_refusal(&mut self, now: Time) -> Option<Duration> {
        if self.nodes.has_good(&Shunned::default(), now) {
            return None;
        }
        let (since, notice) = self.idle.get_or_insert((now, now + LONG_DELAY));
        let idle = (now >= *notice).then(|| now - *since)?;
        *notice = now + idle;
        Some(idle)
    }

    /// Takes the waiting tasks, each of which checks its turn again.
    pub(crate) fn wake(&mut self) -> BTreeSet<TaskId> {
        std::mem::take(&mut self.waiting)
    }
}
