//! The machines that branches have run on, and which of them to avoid.
//!
//! A machine that fails everything at once is free most often, and so gets the most work: the black hole
//! of Thain, *Ethernet Approach to Grid Computing*, 2003. So one that a branch has failed on is avoided for
//! a while, longer each time, and longer still if it fails faster than others succeed.
//!
//! Nobody here knows which machines there are: only those that something came to are known. So all may be avoided
//! that are, and whoever does know says if none is left.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Time;

/// How long a machine is avoided after its first failure.
const FIRST: Duration = Duration::from_secs(1);
/// How long at most.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// For how long a branch isn't sent to a machine where it came to nothing itself, if there are others.
const SHUNNED: Duration = Duration::from_secs(2 * 60);
/// So many times longer if it fails faster than others succeed.
const BLACK_HOLE: u32 = 8;
/// The weight of one success in the mean of how long they take.
const WEIGHT: f64 = 0.1;

/// The machines, by name.
#[derive(Debug, Default)]
pub struct Nodes {
    known: BTreeMap<String, Node>,
    /// How long a success takes, in seconds, if there was one.
    usual: Option<f64>,
}

#[derive(Debug)]
struct Node {
    /// How many branches have failed there since one succeeded.
    in_a_row: u32,
    /// When it may be used again.
    until: Time,
}

/// Machines where a branch came to nothing, and until when it isn't sent there again if there are others.
#[derive(Debug, Default)]
pub struct Shunned(BTreeMap<String, Time>);

impl Shunned {
    /// It came to nothing on one.
    pub fn add(&mut self, node: &str, now: Time) {
        self.0.insert(node.into(), now + SHUNNED);
    }
}

/// What a branch is to avoid.
#[derive(Debug, PartialEq, Eq)]
pub struct Avoided {
    /// These machines.
    pub nodes: Vec<String>,
    /// Until the first of them may be used again.
    pub until: Time,
}

impl Nodes {
    /// A branch begins: the machine takes what it is sent.
    pub fn began(&mut self, node: &str) {
        self.known.entry(node.into()).or_insert(Node::NEW);
    }

    /// A branch has succeeded.
    pub fn succeeded(&mut self, node: &str, elapsed: Duration) {
        let usual = self.usual.get_or_insert(elapsed.as_secs_f64());
        *usual += WEIGHT * (elapsed.as_secs_f64() - *usual);
        let known = self.known.entry(node.into()).or_insert(Node::NEW);
        *known = Node::NEW;
    }

    /// A branch has failed, or never begun, after so long: says for how long the machine is avoided.
    pub fn failed(&mut self, node: &str, elapsed: Duration, now: Time) -> Duration {
        let hasty = self.usual.is_some_and(|usual| elapsed.as_secs_f64() < usual / 2.0);
        let known = self.known.entry(node.into()).or_insert(Node::NEW);
        known.in_a_row = known.in_a_row.saturating_add(1);
        let doubled = FIRST.saturating_mul(1 << (known.in_a_row - 1).min(16));
        let time = doubled.saturating_mul(if hasty { BLACK_HOLE } else { 1 }).min(LONGEST);
        known.until = known.until.max(now + time);
        time
    }

    /// Whether anything came to a machine before.
    pub fn is_known(&self, node: &str) -> bool {
        self.known.contains_key(node)
    }

    /// Whether one is known that takes branches, and that this one may be sent to.
    pub fn has_good(&self, own: &Shunned, now: Time) -> bool {
        let is_good = |node: &Node| node.in_a_row == 0 && node.until <= now;
        let may = |name: &String| own.0.get(name).is_none_or(|until| *until <= now);
        self.known.iter().any(|(name, node)| is_good(node) && may(name))
    }

    /// Those that a branch is to avoid at this moment.
    pub fn avoided(&self, own: &Shunned, now: Time) -> Avoided {
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

    /// No machine is left without those that were avoided: half of these may be used again, those that may be
    /// so sooner. Who was told the same asks for the same.
    pub fn forgive(&mut self, own: &mut Shunned, avoided: &[String]) {
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

impl Node {
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
            assert!(nodes.failed("hole", seconds(1), at(0)) <= LONGEST);
        }
    }

    #[test]
    fn all_that_are_known_may_be_avoided_and_half_of_them_no_more_if_there_are_no_others() {
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
    fn where_a_branch_came_to_nothing_itself_is_the_last_resort() {
        let (mut nodes, mut own) = (Nodes::default(), Shunned::default());
        nodes.failed("a", seconds(1), at(0));
        own.add("a", at(0));
        (0..4).for_each(|_| fail(&mut nodes, "b"));
        let expected = Avoided { nodes: vec!["a".into(), "b".into()], until: at(8) };
        assert_eq!(nodes.avoided(&own, at(2)), expected);
        assert_eq!(avoided(&nodes, &own, at(10)), "a");
        assert_eq!(avoided(&nodes, &own, at(0) + SHUNNED), "");
        nodes.forgive(&mut own, &["a".into(), "b".into()]);
        assert_eq!(avoided(&nodes, &own, at(2)), "a");
        nodes.forgive(&mut own, &["a".into()]);
        assert_eq!(avoided(&nodes, &own, at(2)), "");
    }

    #[test]
    fn a_good_machine_is_one_that_has_taken_a_branch_and_failed_none_since() {
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
