//! What backoff adds to an outage.

use crate::support::{number, rows};

#[test]
fn plain_doubling_at_most_doubles_an_outage() {
    for outage in ["30s", "30min"] {
        let args = ["recovery", "--outage", outage, "--policy", "exponential from 1 s to 1 day"];
        let rows = rows("recovery", &args);
        let stretch = number(&rows[0], "worst_stretch");
        assert!((0.9..=1.05).contains(&stretch), "{outage}: {stretch}");
    }
}

#[test]
fn a_cap_bounds_the_wait_and_a_fixed_delay_costs_load() {
    let policies = ["--policy", "ethernet from 1 s to 1 min", "--policy", "fixed from 1 s"];
    let rows = rows("recovery", &[&["recovery", "--outage", "30min"], &policies[..]].concat());
    assert!(number(&rows[0], "notice_worst_s") <= 60.0);
    assert!(number(&rows[1], "load_per_s") > 20.0 * number(&rows[0], "load_per_s"));
}
