//! Branches on the machines of a modelled cluster, in virtual time.
//!
//! A branch that is sent is packed, and unpacked by a machine of its own, on a node with its own clock. Head and
//! node are those of [`ftsh_remote`]; what is modelled is what runs them, what is between them, and all
//! that goes wrong: nodes that die, are cut off, lie, refuse or swallow what they get, and come back; an
//! engine that is down for a while.

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

pub use self::attempt::Attempt;
pub use self::clock::Clock;
pub use self::driver::Clustered;
use self::engine::Outages;
use self::job::{Awaited, Job};
pub use self::node::{Fault, Node};
use crate::{Shell, World};
use ftsh_machine::effect::{Dispatch, Effect, ScopeId};
use ftsh_machine::{Event, Time};
use ftsh_remote::Lease;
use ftsh_remote::family::Families;
use ftsh_remote::orphans::Orphans;

/// How long an engine takes to notice that it can't reach a node.
const NOTICE: Duration = Duration::from_secs(30);

/// What befalls a branch that is sent to the node of this name.
type Faults = Box<dyn FnMut(&str) -> Option<Fault>>;

/// A cluster, and the branches on it.
pub struct Cluster {
    lease: Duration,
    nodes: Vec<Node>,
    outages: Outages,
    faults: Faults,
    jobs: BTreeMap<usize, Job>,
    count: usize,
    /// Branches that wait for a free place.
    waiting: VecDeque<Dispatch>,
    /// When there may be one though none became free.
    look_again: Time,
    orphans: Orphans,
    families: Families,
    events: VecDeque<Event>,
    attempts: Vec<Attempt>,
}

impl Cluster {
    /// A cluster of these nodes; branches go on for so long without hearing of their head.
    pub fn new(lease: Duration, nodes: Vec<Node>) -> Self {
        Self {
            lease,
            nodes,
            outages: Outages::default(),
            faults: Box::new(|_| None),
            jobs: BTreeMap::new(),
            count: 0,
            waiting: VecDeque::new(),
            look_again: Time::NEVER,
            orphans: Orphans::default(),
            families: Families::default(),
            events: VecDeque::new(),
            attempts: Vec::new(),
        }
    }

    /// The engine does nothing that it is asked between these moments.
    #[must_use]
    pub fn engine_down(mut self, from: Time, until: Time) -> Self {
        self.outages.add(from, until);
        self
    }

    /// What befalls each branch that is sent to a node.
    #[must_use]
    pub fn faults(self, faults: impl FnMut(&str) -> Option<Fault> + 'static) -> Self {
        Self { faults: Box::new(faults), ..self }
    }

    /// What really became of branches, in the order in which they began.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Whether a branch is somewhere, or waits for a place.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || !self.waiting.is_empty()
    }

    /// Takes note of what the machine asks for; what isn't for the cluster alone is for the shell.
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

    /// What the machine is told of what the shell says.
    pub fn sift(&mut self, event: Event) -> Option<Event> {
        let Event::Emptied { scope } = event else { return Some(event) };
        let away = self.scopes_away();
        self.families.emptied(scope, &away).then_some(event)
    }

    /// What the machine is told next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When something happens.
    pub fn next_due(&self) -> Time {
        let jobs = self.jobs.values().map(|job| job.next_due(&self.nodes[job.node]));
        let wakes = self.nodes.iter().filter_map(|node| node.wake);
        let again = if self.waiting.is_empty() { Time::NEVER } else { self.look_again };
        let other = again.min(self.orphans.next_due());
        jobs.chain(wakes).min().unwrap_or(Time::NEVER).min(other)
    }

    /// How long a branch may go on after the head has died.
    pub fn outlived_by(&self, branch: &Dispatch) -> Duration {
        Lease::gone_after(self.lease, branch.branch.settings.kill_timeout)
    }

    /// Branches of earlier heads may go on in these scopes until then.
    pub fn inherit(&mut self, orphans: Vec<(ScopeId, Time)>) {
        self.orphans.inherit(orphans);
    }

    /// The scopes of the branches that may be somewhere.
    fn scopes_away(&self) -> Vec<ScopeId> {
        let away = self.jobs.values().filter(|job| job.awaited != Awaited::Told);
        away.map(|job| job.scope).chain(self.orphans.scopes()).collect()
    }
}
