//! Hosts that a script lists, each a node with a number of places.

use std::collections::BTreeMap;

/// Maximum number of branches that begin at once on a host. A server with the default `MaxStartups`
/// of `sshd_config` refuses connections at random from ten on.
const MAX_BEGINNING: u64 = 8;

/// Hosts of a run, with the branches on each host.
#[derive(Debug, Default)]
pub(crate) struct Hosts(BTreeMap<String, HostUse>);

/// Use of a host.
#[derive(Clone, Copy, Debug, Default)]
struct HostUse {
    all: u64,
    /// Number of branches that have not begun.
    beginning: u64,
    /// Number of branches in a row that did not begin.
    refused: u64,
    /// True once a branch has begun on the host.
    is_known: bool,
}

impl Hosts {
    /// Chooses one of these hosts with their places, and returns true if the list has other
    /// hosts. Hosts to avoid are candidates only if the list has no others.
    ///
    /// The host with the fewest refusals comes first, then the host with the largest share of free
    /// places, then a known host. Returns none if no host has a free place.
    pub(crate) fn choose(
        &self,
        hosts: &[(String, u64)],
        avoid: &[String],
    ) -> Option<(String, bool)> {
        let wanted = |(host, _): &&(String, u64)| !avoid.contains(host);
        let all_are_avoided = !hosts.iter().any(|host| wanted(&host));

        let usable = hosts.iter().filter(|host| all_are_avoided || wanted(host));
        let free = usable.filter_map(|(host, places)| {
            let used = self.0.get(host).copied().unwrap_or_default();
            let left = places.saturating_sub(used.all);
            let is_free = left > 0 && used.beginning < MAX_BEGINNING;
            is_free.then_some((host, used, left as f64 / *places as f64))
        });
        let best = free.max_by(|(a, of_a, left_a), (b, of_b, left_b)| {
            let by_refusals = of_b.refused.cmp(&of_a.refused);
            let by_place = by_refusals.then(left_a.total_cmp(left_b));
            by_place.then(of_a.is_known.cmp(&of_b.is_known)).then_with(|| b.cmp(a))
        });
        best.map(|(host, ..)| (host.clone(), hosts.len() > 1))
    }

    /// Counts a branch that is sent to a host.
    pub(crate) fn enter(&mut self, host: &str) {
        let used = self.0.entry(host.into()).or_default();
        (used.all, used.beginning) = (used.all + 1, used.beginning + 1);
    }

    /// Records that a branch has begun on a host, or cannot begin there.
    pub(crate) fn end_start(&mut self, host: &str) {
        if let Some(used) = self.0.get_mut(host) {
            used.beginning = used.beginning.saturating_sub(1);
        }
    }

    /// Counts a success or a refusal of a host.
    pub(crate) fn record_start(&mut self, host: &str, has_begun: bool) {
        if let Some(used) = self.0.get_mut(host) {
            used.refused = if has_begun { 0 } else { used.refused.saturating_add(1) };
            used.is_known |= has_begun;
        }
    }

    /// Frees the place of a branch.
    pub(crate) fn leave(&mut self, host: &str) {
        if let Some(used) = self.0.get_mut(host) {
            used.all = used.all.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use ftsh_syntax::engine;

    use super::*;

    fn chosen(hosts: &Hosts, list: &str, avoid: &[&str]) -> Option<String> {
        let avoid: Vec<_> = avoid.iter().map(ToString::to_string).collect();
        let list = engine::hosts(list).expect("a list");
        hosts.choose(&list, &avoid).map(|(host, _)| host)
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
    fn a_host_named_twice_has_the_places_of_both() {
        let mut hosts = Hosts::default();
        for _ in 0..4 {
            assert_eq!(chosen(&hosts, "a a*3", &[]).as_deref(), Some("a"));
            hosts.enter("a");
        }
        assert_eq!(chosen(&hosts, "a a*3", &[]), None);
        let list = engine::hosts("a a").expect("a list");
        assert!(!Hosts::default().choose(&list, &[]).expect("a host").1);
    }

    #[test]
    fn few_begin_at_once() {
        let mut hosts = Hosts::default();
        let mut sent = 0;
        while let Some(host) = chosen(&hosts, "a*100", &[]) {
            hosts.enter(&host);
            sent += 1;
        }
        assert_eq!(sent, MAX_BEGINNING);
        hosts.end_start("a");
        assert_eq!(chosen(&hosts, "a*100", &[]).as_deref(), Some("a"));
    }

    #[test]
    fn hosts_that_refused_come_last() {
        let mut hosts = Hosts::default();
        let mut order = Vec::new();
        for has_begun in [false, false, true, true, false, true] {
            let host = chosen(&hosts, "a b c*2 d", &[]).expect("a place");
            hosts.enter(&host);
            hosts.end_start(&host);
            hosts.record_start(&host, has_begun);
            hosts.leave(&host);
            order.push(host);
        }
        // A known host precedes an unknown host until the known host refuses.
        assert_eq!(order, ["a", "b", "c", "c", "c", "d"]);
        // All hosts are to be avoided: a host on which branches have begun comes first.
        assert_eq!(chosen(&hosts, "a b c*2 d", &["a", "b", "c", "d"]).as_deref(), Some("d"));
        hosts.enter("d");
        assert_eq!(chosen(&hosts, "a b c*2 d", &[]).as_deref(), Some("c"));
    }
}
