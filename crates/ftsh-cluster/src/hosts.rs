//! Hosts that a script lists, each a node with a number of places.

use std::collections::BTreeMap;

use bstr::{BStr, ByteSlice};

use ftsh_syntax::engine;

/// A server lets ten begin at once, and then turns more and more away: `MaxStartups` of `sshd_config`.
const MOST_BEGINNING: u64 = 8;

/// The hosts of a run, and what runs on each.
#[derive(Debug, Default)]
pub struct Hosts(BTreeMap<String, Use>);

/// How many branches are on a host.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    all: u64,
    /// Those that have not begun.
    beginning: u64,
    /// How many have not begun in the end, since one has.
    refused: u64,
    /// Whether one has.
    is_known: bool,
}

impl Hosts {
    /// The host of a list, `host1 host2*4`, that has refused least and has most places left, rather one that is
    /// known, of those that aren't to be avoided, if there are such; and whether there are others. None if none
    /// can take more now; an error says what is wrong with the list.
    pub fn choose(&self, list: &BStr, avoid: &[String]) -> Result<Option<(String, bool)>, String> {
        let hosts = engine::hosts(&list.to_str_lossy())?;
        let wanted = |(host, _): &&(String, u64)| !avoid.contains(host);
        let all_are_avoided = !hosts.iter().any(|host| wanted(&host));

        let usable = hosts.iter().filter(|host| all_are_avoided || wanted(host));
        let free = usable.filter_map(|(host, places)| {
            let used = self.0.get(host).copied().unwrap_or_default();
            let left = places.saturating_sub(used.all);
            let is_free = left > 0 && used.beginning < MOST_BEGINNING;
            is_free.then_some((host, used, left as f64 / *places as f64))
        });
        let best = free.max_by(|(a, of_a, left_a), (b, of_b, left_b)| {
            let by_refusals = of_b.refused.cmp(&of_a.refused);
            let by_place = by_refusals.then(left_a.total_cmp(left_b));
            by_place.then(of_a.is_known.cmp(&of_b.is_known)).then_with(|| b.cmp(a))
        });
        Ok(best.map(|(host, ..)| (host.clone(), hosts.len() > 1)))
    }

    /// Something is sent to a host.
    pub fn enter(&mut self, host: &str) {
        let used = self.0.entry(host.into()).or_default();
        (used.all, used.beginning) = (used.all + 1, used.beginning + 1);
    }

    /// It has begun there, or won't.
    pub fn settle(&mut self, host: &str) {
        if let Some(used) = self.0.get_mut(host) {
            used.beginning = used.beginning.saturating_sub(1);
        }
    }

    /// What was sent to a host has begun there, or nothing came of it though it was wanted.
    pub fn learn(&mut self, host: &str, has_begun: bool) {
        if let Some(used) = self.0.get_mut(host) {
            used.refused = if has_begun { 0 } else { used.refused.saturating_add(1) };
            used.is_known |= has_begun;
        }
    }

    /// It uses it no more.
    pub fn leave(&mut self, host: &str) {
        if let Some(used) = self.0.get_mut(host) {
            used.all = used.all.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(hosts: &Hosts, list: &str, avoid: &[&str]) -> Option<String> {
        let avoid: Vec<_> = avoid.iter().map(ToString::to_string).collect();
        hosts.choose(list.into(), &avoid).expect("a list").map(|(host, _)| host)
    }

    #[test]
    fn places_are_filled_evenly() {
        let mut hosts = Hosts::default();
        let mut order = Vec::new();
        while let Some(host) = chosen(&hosts, "a b*3 u@c", &[]) {
            hosts.enter(&host);
            order.push(host);
        }
        assert_eq!(order, ["a", "b", "u@c", "b", "b"]);
        hosts.leave("b");
        assert_eq!(chosen(&hosts, "a b*3 u@c", &["a"]).as_deref(), Some("b"));
        assert_eq!(chosen(&hosts, "a b*3 u@c", &["b"]), None, "others have taken what is left");
        assert_eq!(chosen(&hosts, "b*3", &["b"]).as_deref(), Some("b"));
    }

    #[test]
    fn a_host_that_is_named_twice_has_the_places_of_both() {
        let mut hosts = Hosts::default();
        for _ in 0..4 {
            assert_eq!(chosen(&hosts, "a a*3", &[]).as_deref(), Some("a"));
            hosts.enter("a");
        }
        assert_eq!(chosen(&hosts, "a a*3", &[]), None);
        assert!(!Hosts::default().choose("a a".into(), &[]).expect("a list").expect("a host").1);
    }

    #[test]
    fn few_begin_at_once() {
        let mut hosts = Hosts::default();
        let mut sent = 0;
        while let Some(host) = chosen(&hosts, "a*100", &[]) {
            hosts.enter(&host);
            sent += 1;
        }
        assert_eq!(sent, MOST_BEGINNING);
        hosts.settle("a");
        assert_eq!(chosen(&hosts, "a*100", &[]).as_deref(), Some("a"));
    }

    #[test]
    fn hosts_that_have_refused_are_asked_last_and_those_that_have_not_first() {
        let mut hosts = Hosts::default();
        let mut order = Vec::new();
        for has_begun in [false, false, true, true, false, true] {
            let host = chosen(&hosts, "a b c*2 d", &[]).expect("a place");
            hosts.enter(&host);
            hosts.settle(&host);
            hosts.learn(&host, has_begun);
            hosts.leave(&host);
            order.push(host);
        }
        // A host that is known goes before one that isn't, until it refuses.
        assert_eq!(order, ["a", "b", "c", "c", "c", "d"]);
        // All are to be avoided: where branches have begun they may again.
        assert_eq!(chosen(&hosts, "a b c*2 d", &["a", "b", "c", "d"]).as_deref(), Some("d"));
        hosts.enter("d");
        assert_eq!(chosen(&hosts, "a b c*2 d", &[]).as_deref(), Some("c"));
    }
}
