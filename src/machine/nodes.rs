//! The machines that branches have run on, and which of them to avoid.
//!
//! A machine that fails everything at once is free most often, and so gets the most work: the black hole
//! of Thain, *Ethernet Approach to Grid Computing*, 2003. So one that a branch has failed on is avoided for
//! a while, longer each time, and longer still if it fails faster than others succeed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::time::Time;

/// How long a machine is avoided after its first failure.
const FIRST: Duration = Duration::from_secs(1);
/// How long at most.
const LONGEST: Duration = Duration::from_secs(5 * 60);
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

impl Nodes {
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

    /// No machine is avoided any more: without them there would be none.
    pub fn forgive(&mut self) {
        self.known.values_mut().for_each(|node| node.until = Time::START);
    }

    /// Those to avoid at this moment, `last` among them; never all that are known, if there are several.
    pub fn avoided(&self, last: Option<&str>, now: Time) -> Vec<String> {
        let is_last = |name: &str| last == Some(name);
        let mut avoided: Vec<_> = self
            .known
            .iter()
            .filter(|(name, node)| node.until > now || is_last(name))
            .map(|(name, node)| (is_last(name), node.until, name.clone()))
            .collect();
        avoided.sort();
        if avoided.len() > 1 && avoided.len() == self.known.len() {
            // The one that is to be used again first.
            avoided.remove(0);
        }
        let mut names: Vec<_> = avoided.into_iter().map(|(_, _, name)| name).collect();
        names.sort();
        names
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

    #[test]
    fn a_node_that_fails_is_avoided_longer_each_time() {
        let mut nodes = Nodes::default();
        nodes.succeeded("good", seconds(10));
        let times = (0..4).map(|_| nodes.failed("bad", seconds(9), at(0)).as_secs());
        assert_eq!(times.collect::<Vec<_>>(), [1, 2, 4, 8]);
        assert_eq!(nodes.avoided(None, at(7)), ["bad"]);
        assert!(nodes.avoided(None, at(8)).is_empty());
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
    fn some_node_is_left() {
        let mut nodes = Nodes::default();
        nodes.failed("a", seconds(1), at(0));
        assert_eq!(nodes.avoided(None, at(0)), ["a"], "there may be others");
        nodes.failed("b", seconds(1), at(0));
        nodes.failed("b", seconds(1), at(0));
        assert_eq!(nodes.avoided(None, at(0)), ["b"]);
        assert_eq!(nodes.avoided(Some("a"), at(0)), ["a"], "the last one first of all");
        nodes.forgive();
        assert_eq!(nodes.avoided(None, at(0)), Vec::<String>::new());
        assert_eq!(nodes.avoided(Some("b"), at(0)), ["b"]);
    }
}
