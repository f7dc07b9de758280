//! Machines used by branches, and the decision which machines to avoid.
//!
//! A machine where everything fails at once is free most often, and so receives the most work: the
//! black hole of Thain, *Ethernet Approach to Grid Computing*, 2003. A machine is therefore avoided
//! for a while after a failure: longer after each further failure, and longer still if branches
//! fail faster than others succeed.
//!
//! The set of all machines is unknown here. Only machines with a history are known. All known
//! machines may be avoided at once; the engine reports if no other machine is left.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Time;

/// Time for which a machine is avoided after its first failure.
const MIN_AVOIDANCE: Duration = Duration::from_secs(1);
/// Maximum time for which a machine is avoided.
const MAX_AVOIDANCE: Duration = Duration::from_secs(5 * 60);
/// Time for which a branch avoids a machine where the branch itself failed to run, if other
/// machines exist.
const SHUN_TIME: Duration = Duration::from_secs(2 * 60);
/// Factor for failures faster than the usual success.
const BLACK_HOLE_FACTOR: u32 = 8;
/// Weight of a success in the moving average of durations.
const AVERAGE_WEIGHT: f64 = 0.1;

/// Machines by name.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    known: BTreeMap<String, NodeHistory>,
    /// Average duration of a success in seconds, if any.
    usual: Option<f64>,
}

#[derive(Debug)]
struct NodeHistory {
    /// Number of failures since the last success.
    in_a_row: u32,
    /// Moment from which the machine may be used again.
    until: Time,
}

/// Machines where a branch failed to run, each with the moment until which the branch avoids it.
#[derive(Debug, Default)]
pub(crate) struct Shunned(BTreeMap<String, Time>);

impl Shunned {
    /// Adds a machine where the branch failed to run.
    pub(crate) fn add(&mut self, node: &str, now: Time) {
        self.0.insert(node.into(), now + SHUN_TIME);
    }
}

/// Machines for a branch to avoid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Avoided {
    /// Names of the machines.
    pub nodes: Vec<String>,
    /// Earliest moment at which a machine may be used again.
    pub until: Time,
}

impl Nodes {
    /// Records the beginning of a branch.
    pub(crate) fn began(&mut self, node: &str) {
        self.known.entry(node.into()).or_insert(NodeHistory::NEW);
    }

    /// Records the success of a branch.
    pub(crate) fn succeeded(&mut self, node: &str, elapsed: Duration) {
        let usual = self.usual.get_or_insert(elapsed.as_secs_f64());
        *usual += AVERAGE_WEIGHT * (elapsed.as_secs_f64() - *usual);
        let known = self.known.entry(node.into()).or_insert(NodeHistory::NEW);
        *known = NodeHistory::NEW;
    }

    /// Records the failure of a branch, or a branch that never began. Returns the time for which
    /// the machine is avoided.
    pub(crate) fn failed(&mut self, node: &str, elapsed: Duration, now: Time) -> Duration {
        let hasty = self.usual.is_some_and(|usual| elapsed.as_secs_f64() < usual / 2.0);
        let known = self.known.entry(node.into()).or_insert(NodeHistory::NEW);
        known.in_a_row = known.in_a_row.saturating_add(1);
        let doubled = MIN_AVOIDANCE.saturating_mul(1 << (known.in_a_row - 1).min(16));
        let time =
            doubled.saturating_mul(if hasty { BLACK_HOLE_FACTOR } else { 1 }).min(MAX_AVOIDANCE);
        known.until = known.until.max(now + time);
        time
    }

    /// Returns true if a machine has a history.
    pub(crate) fn is_known(&self, node: &str) -> bool {
        self.known.contains_key(node)
    }

    /// Returns true if a machine is known to accept branches, and is not avoided by this branch.
    pub(crate) fn has_good(&self, own: &Shunned, now: Time) -> bool {
        let is_good = |node: &NodeHistory| node.in_a_row == 0 && node.until <= now;
        let may = |name: &String| own.0.get(name).is_none_or(|until| *until <= now);
        self.known.iter().any(|(name, node)| is_good(node) && may(name))
    }

    /// Returns the machines for a branch to avoid at a moment.
    pub(crate) fn avoided(&self, own: &Shunned, now: Time) -> Avoided {
        let shared = self.known.iter().map(|(name, node)| (name, node.until));
        let own = own.0.iter().map(|(name, until)| (name, *until));
        let mut all = BTreeMap::<&String, Time>::new();
        for (name, until) in shared.chain(own).filter(|(_, until)| *until > now) {
            let last = all.entry(name).or_insert(until);
            *last = until.max(*last);
        }
        let until = all.values().min().copied().unwrap_or(Time::NEVER);
        Avoided { nodes: all.into_keys().cloned().collect(), until }
    }

    /// Allows half of the avoided machines again, because no other machine is left. The machines
    /// whose time ends first come first. The choice is the same for equal histories.
    pub(crate) fn forgive(&mut self, own: &mut Shunned, avoided: &[String]) {
        let until = |name: &String| {
            let node = self.known.get(name).map_or(Time::START, |node| node.until);
            (own.0.contains_key(name), node)
        };
        let mut nodes: Vec<_> = avoided.iter().map(|name| (until(name), name)).collect();
        nodes.sort();
        for (_, name) in nodes.iter().take(nodes.len().div_ceil(2)) {
            own.0.remove(*name);
            if let Some(node) = self.known.get_mut(*name) {
                node.until = Time::START;
            }
        }
    }
}

impl NodeHistory {
    const NEW: Self = Self { in_a_row: 0, until: Time::START };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: u64) -> Time {
        Time::after(Duration::from_secs(seconds))
    }

    fn fail(nodes: &mut Nodes, node: &str) {
        nodes.failed(node, seconds(1), at(0));
    }

    fn avoided(nodes: &Nodes, own: &Shunned, now: Time) -> String {
        nodes.avoided(own, now).nodes.join(" ")
    }

    #[test]
    fn a_node_that_fails_is_avoided_longer_each_time() {
        let mut nodes = Nodes::default();
        let none = Shunned::default();
        nodes.succeeded("good", seconds(10));
        let times = (0..4).map(|_| nodes.failed("bad", seconds(9), at(0)).as_secs());
        assert_eq!(times.collect::<Vec<_>>(), [1, 2, 4, 8]);
        let expected = Avoided { nodes: vec!["bad".into()], until: at(8) };
        assert_eq!(nodes.avoided(&none, at(7)), expected);
        let expected = Avoided { nodes: Vec::new(), until: Time::NEVER };
        assert_eq!(nodes.avoided(&none, at(8)), expected);
        nodes.succeeded("bad", seconds(9));
        assert_eq!(nodes.failed("bad", seconds(9), at(0)), seconds(1));
    }

    #[test]
    fn a_black_hole_is_avoided_longer() {
        let mut nodes = Nodes::default();
        nodes.succeeded("good", seconds(10));
        assert_eq!(nodes.failed("hole", seconds(1), at(0)), seconds(8));
        assert_eq!(nodes.failed("slow", seconds(20), at(0)), seconds(1));
        for _ in 0..40 {
            assert!(nodes.failed("hole", seconds(1), at(0)) <= MAX_AVOIDANCE);
        }
    }

    #[test]
    fn half_of_the_avoided_machines_are_allowed_again_without_others() {
        let (mut nodes, mut own) = (Nodes::default(), Shunned::default());
        for (times, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            (0..times).for_each(|_| fail(&mut nodes, name));
        }
        let names = nodes.avoided(&own, at(0)).nodes;
        assert_eq!(names, ["a", "b", "c", "d"]);
        for _ in 0..3 {
            nodes.forgive(&mut own, &names);
            assert_eq!(avoided(&nodes, &own, at(0)), "c d", "as often as it is said");
        }
        nodes.forgive(&mut own, &["c".into(), "d".into()]);
        nodes.forgive(&mut own, &["d".into()]);
        assert_eq!(avoided(&nodes, &own, at(0)), "");
    }

    #[test]
    fn a_branch_avoids_machines_where_it_failed_itself() {
        let (mut nodes, mut own) = (Nodes::default(), Shunned::default());
        nodes.failed("a", seconds(1), at(0));
        own.add("a", at(0));
        (0..4).for_each(|_| fail(&mut nodes, "b"));
        let expected = Avoided { nodes: vec!["a".into(), "b".into()], until: at(8) };
        assert_eq!(nodes.avoided(&own, at(2)), expected);
        assert_eq!(avoided(&nodes, &own, at(10)), "a");
        assert_eq!(avoided(&nodes, &own, at(0) + SHUN_TIME), "");
        nodes.forgive(&mut own, &["a".into(), "b".into()]);
        assert_eq!(avoided(&nodes, &own, at(2)), "a");
        nodes.forgive(&mut own, &["a".into()]);
        assert_eq!(avoided(&nodes, &own, at(2)), "");
    }

    #[test]
    fn a_good_machine_accepted_a_branch_and_failed_none_since() {
        let (mut nodes, mut own) = (Nodes::default(), Shunned::default());
        assert!(!nodes.has_good(&own, at(0)));
        nodes.began("a");
        assert!(nodes.has_good(&own, at(0)) && nodes.is_known("a"));
        own.add("a", at(0));
        assert!(!nodes.has_good(&own, at(0)));
        assert!(nodes.has_good(&Shunned::default(), at(0)));
        nodes.failed("a", seconds(1), at(0));
        nodes.began("a");
        assert!(!nodes.has_good(&Shunned::default(), at(2)));
    }
}
