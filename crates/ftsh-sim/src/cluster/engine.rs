//! Modelled engine, which places branches on nodes.

use std::time::Duration;

use super::node::SimulatedNode;
use bstr::BString;
use ftsh_machine::Time;
use ftsh_machine::event::Blame;
use ftsh_syntax::clauses::On;

/// Decision of an engine about a branch.
pub(super) enum Choice {
    /// The branch goes to the node with the given index.
    Node(usize),
    /// The branch waits for a place.
    Wait,
    /// The branch is rejected.
    Not(&'static str, Blame),
}

/// Times at which the engine rejects all requests.
#[derive(Default)]
pub(super) struct Outages(Vec<(Time, Time)>);

impl Outages {
    pub(super) fn add(&mut self, from: Time, until: Time) {
        self.0.push((from, until));
    }

    fn is_now(&self, now: Time) -> bool {
        self.0.iter().any(|(from, until)| (*from..*until).contains(&now))
    }

    /// Chooses the node with the most free places. Avoided nodes and known failed nodes are no
    /// candidates, and a failure is known after `notice`.
    pub(super) fn choose(
        &self,
        on: &On<BString>,
        nodes: &[SimulatedNode],
        avoid: &[String],
        now: Time,
        notice: Duration,
    ) -> Choice {
        if self.is_now(now) {
            return Choice::Not("the engine isn't there", Blame::Engine);
        }
        let wanted = |node: &SimulatedNode| !avoid.contains(&node.name);
        let all_are_avoided = !nodes.iter().any(wanted);
        if all_are_avoided && !on.lists_hosts() {
            return Choice::Not("no node is left", Blame::Exclusion);
        }
        let left = |node: &SimulatedNode| node.places.saturating_sub(node.used);
        let usable = nodes.iter().enumerate().filter(|(_, node)| {
            (all_are_avoided || wanted(node))
                && left(node) > 0
                && !node.is_known_to_be_down(now, notice)
        });
        // Prefer the first of equal nodes.
        let best = usable.rev().max_by_key(|(_, node)| left(node));
        best.map_or(Choice::Wait, |(index, _)| Choice::Node(index))
    }
}
