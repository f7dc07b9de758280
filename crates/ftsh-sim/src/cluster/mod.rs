//! Branches on the machines of a modelled cluster, in virtual time.
//!
//! A dispatched branch is packed, and a separate machine unpacks the branch on a node with its own
//! clock. Head and node are those of [`ftsh_remote`]. The module models their drivers, the
//! connection, and the faults. Nodes die, lose their connection, refuse or drop branches, and
//! recover. The engine may be down for a while, or lie: report false results, join, drop or repeat
//! streams, and start a job twice.

mod attempt;
mod clock;
mod conversation;
mod driver;
mod engine;
mod job;
mod link;
mod local;
mod node;
mod there;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use self::attempt::NodeAttempt;
pub use self::clock::NodeClock;
pub use self::driver::Clustered;
use self::engine::Outages;
use self::job::{ExpectedEvent, SimulatedJob};
pub use self::node::{Fault, SimulatedNode};
use crate::{Shell, World};
use ftsh_machine::effect::{Dispatch, Effect, ScopeId};
use ftsh_machine::{Event, Time};
use ftsh_remote::Lease;
use ftsh_remote::family::Families;
use ftsh_remote::orphans::OrphanedBranches;

/// Time after which an engine detects an unreachable node.
const NOTICE: Duration = Duration::from_secs(30);

/// Function that chooses the fault of a branch by the name of the node.
type Faults = Box<dyn FnMut(&str) -> Option<Fault>>;

/// Cluster, with its branches.
pub struct SimulatedCluster {
    lease: Duration,
    nodes: Vec<SimulatedNode>,
    outages: Outages,
    faults: Faults,
    jobs: BTreeMap<usize, SimulatedJob>,
    count: usize,
    /// Branches that wait for a free place.
    waiting: VecDeque<Dispatch>,
    /// Time at which a waiting branch may get a place although no place became free.
    retry_at: Time,
    orphans: OrphanedBranches,
    families: Families,
    events: VecDeque<Event>,
    attempts: Vec<NodeAttempt>,
    /// True if every second branch takes and gives modelled files.
    adds_files: bool,
}

impl SimulatedCluster {
    /// Creates a cluster. Branches continue for `lease` without contact to their head.
    pub fn new(lease: Duration, nodes: Vec<SimulatedNode>) -> Self {
        Self {
            lease,
            nodes,
            outages: Outages::default(),
            faults: Box::new(|_| None),
            jobs: BTreeMap::new(),
            count: 0,
            waiting: VecDeque::new(),
            retry_at: Time::NEVER,
            orphans: OrphanedBranches::default(),
            families: Families::default(),
            events: VecDeque::new(),
            attempts: Vec::new(),
            adds_files: false,
        }
    }

    /// Makes the engine reject all requests between two moments.
    #[must_use]
    pub fn engine_down(mut self, from: Time, until: Time) -> Self {
        self.outages.add(from, until);
        self
    }

    /// Makes every second branch take and give a file, as modelled by fixed contents.
    #[must_use]
    pub fn with_files(self) -> Self {
        Self { adds_files: true, ..self }
    }

    /// Sets the function that chooses the fault of each branch.
    #[must_use]
    pub fn faults(self, faults: impl FnMut(&str) -> Option<Fault> + 'static) -> Self {
        Self { faults: Box::new(faults), ..self }
    }

    /// Returns the true course of the branches, in the order of their starts.
    pub fn attempts(&self) -> &[NodeAttempt] {
        &self.attempts
    }

    /// True if a branch runs or waits for a place.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || !self.waiting.is_empty()
    }

    /// Handles an effect of the machine. Returns the effect if the shell must handle the effect as
    /// well.
    pub fn perform(
        &mut self,
        effect: Effect,
        shell: &mut Shell,
        world: &mut impl World,
    ) -> Option<Effect> {
        match effect {
            Effect::Dispatch(dispatch) => {
                self.dispatch(*dispatch, shell, world);
                return None;
            }
            Effect::OpenScope { scope, parent, .. } => self.families.open(scope, parent),
            Effect::HandOver { scope, into } => {
                self.families.hand_over(scope, into);
                self.orphans.hand_over(scope, into);
            }
            Effect::Terminate(scope) | Effect::Kill { scope, .. } => self.end(scope, shell, world),
            _ => {}
        }
        Some(effect)
    }

    /// Returns an event of the shell, if the machine needs the event.
    pub fn filter_event(&mut self, event: Event) -> Option<Event> {
        let Event::Emptied { scope } = event else { return Some(event) };
        let away = self.scopes_away();
        self.families.emptied(scope, &away).then_some(event)
    }

    /// Removes the next event for the machine.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time of the next work.
    pub fn next_due(&self) -> Time {
        let jobs = self.jobs.values().map(|job| job.next_due(&self.nodes[job.node]));
        let wakes = self.nodes.iter().filter_map(|node| node.wake);
        let again = if self.waiting.is_empty() { Time::NEVER } else { self.retry_at };
        let other = again.min(self.orphans.next_due());
        jobs.chain(wakes).min().unwrap_or(Time::NEVER).min(other)
    }

    /// Returns the time that a branch may continue after the death of the head.
    pub fn outlived_by(&self, branch: &Dispatch) -> Duration {
        Lease::gone_after(self.lease, branch.branch.config.kill_timeout)
    }

    /// Adds the scopes of branches of earlier heads, each with the time at which the branches are
    /// gone.
    pub fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.orphans.inherit(orphans);
    }

    /// Returns the scopes of the branches that may run on a node.
    fn scopes_away(&self) -> Vec<ScopeId> {
        let away = self.jobs.values().filter(|job| job.awaited != ExpectedEvent::Delivered);
        away.map(|job| job.scope).chain(self.orphans.scopes()).collect()
    }
}
