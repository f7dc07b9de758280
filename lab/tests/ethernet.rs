//! Job submission.

use crate::support::{number, rows};

/// The jobs that each discipline gets done: fixed, aloha, ethernet.
fn jobs(clients: &str, more: &[&str]) -> [f64; 3] {
    // 60 submissions at once are the edge.
    let args = ["ethernet", "--clients", clients, "--descriptors", "1700", "--time", "5min"];
    let rows = rows("ethernet", &[&args, more].concat());
    ["fixed", "aloha", "ethernet"].map(|name| {
        let row = rows.iter().find(|row| row["discipline"] == name).expect("a discipline");
        number(row, "jobs")
    })
}

#[test]
fn past_the_edge_fixed_collapses_and_ethernet_does_not() {
    let peak = 4.0 * 300.0;
    let below = jobs("40", &[]);
    assert!(below.iter().all(|jobs| *jobs > 0.9 * peak), "{below:?}");
    let [fixed, aloha, ethernet] = jobs("75", &[]);
    assert!(fixed < 0.02 * peak, "{fixed}");
    assert!(ethernet > 0.75 * peak, "{ethernet}");
    assert!(fixed < aloha && aloha < 0.75 * ethernet, "{fixed} {aloha} {ethernet}");
}

#[test]
fn a_submission_whose_time_is_up_frees_its_descriptors() {
    // Each job takes ten minutes alone and no try that long: none is ever done. Did those that are
    // killed keep their descriptors, the queue would crash.
    let args = ["ethernet", "--clients", "50", "--descriptors", "1700", "--time", "30min"];
    let more = ["--alone", "10min", "--discipline", "aloha"];
    let rows = rows("ethernet", &[&args[..], &more].concat());
    assert_eq!((number(&rows[0], "jobs"), number(&rows[0], "crashes")), (0.0, 0.0));
    assert!(number(&rows[0], "failures") >= 250.0, "{}", rows[0]);
}

#[test]
fn the_policy_is_that_of_the_tries() {
    let with = |policy: &str| jobs("75", &["--policy", policy])[1];
    assert!(with("none") < 0.05 * with("ethernet from 10 s to 5 min"));
}
