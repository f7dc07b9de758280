//! What places branches on nodes, and what it knows of these.

use std::time::Duration;

use super::node::Node;
use ftsh_machine::Time;
use ftsh_machine::event::Blame;
use ftsh_syntax::engine::EngineId;

/// What an engine does with a branch.
pub enum Choice {
    /// It goes to the node with this number.
    Node(usize),
    /// It waits for a place.
    Wait,
    /// It isn't taken.
    Not(&'static str, Blame),
}

/// When an engine does nothing that it is asked.
#[derive(Default)]
pub struct Outages(Vec<(Time, Time)>);

impl Outages {
    pub fn add(&mut self, from: Time, until: Time) {
        self.0.push((from, until));
    }

    fn is_now(&self, now: Time) -> bool {
        self.0.iter().any(|(from, until)| (*from..*until).contains(&now))
    }

    /// Where a branch goes that isn't to go to some nodes: to the one that has most places left, of those that
    /// aren't known to be down. It is noticed so late that they are.
    pub fn choose(
        &self,
        engine: EngineId,
        nodes: &[Node],
        avoid: &[String],
        now: Time,
        notice: Duration,
    ) -> Choice {
        if self.is_now(now) {
            return Choice::Not("the engine isn't there", Blame::Engine);
        }
        let wanted = |node: &Node| !avoid.contains(&node.name);
        let all_are_avoided = !nodes.iter().any(wanted);
        if all_are_avoided && !engine.lists_hosts() {
            return Choice::Not("no node is left", Blame::Exclusion);
        }
        let left = |node: &Node| node.places.saturating_sub(node.used);
        let usable = nodes.iter().enumerate().filter(|(_, node)| {
            (all_are_avoided || wanted(node))
                && left(node) > 0
                && !node.is_known_to_be_down(now, notice)
        });
        // The first of several.
        let best = usable.rev().max_by_key(|(_, node)| left(node));
        best.map_or(Choice::Wait, |(index, _)| Choice::Node(index))
    }
}
