//! Job submission.

use crate::support::{number, rows};

/// The jobs that clients of a discipline get done.
fn jobs(discipline: &str, clients: &str, more: &[&str]) -> f64 {
    // 60 submissions at once are the edge.
    let args = ["ethernet", "--clients", clients, "--descriptors", "1700", "--start", "1s"];
    let args = [&args[..], &["--discipline", discipline, "--time", "2min"], more].concat();
    number(&rows("ethernet", &args)[0], "jobs")
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn past_the_edge_fixed_collapses_and_ethernet_does_not() {
    let disciplines = ["fixed", "aloha", "ethernet"];
    let peak = 4.0 * 120.0;
    let below = disciplines.map(|name| jobs(name, "40", &[]));
    assert!(below.iter().all(|jobs| *jobs > 0.85 * peak), "{below:?}");
    let [fixed, aloha, ethernet] = disciplines.map(|name| jobs(name, "75", &[]));
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
fn a_repeated_number_of_clients_counts_each_time() {
    let rows = rows("ethernet", &["ethernet", "--clients", "10,10", "--time", "1min"]);
    assert!(rows.len() == 8 && rows.chunks(2).all(|same| same[0] == same[1]), "{rows:?}");
    assert!(rows.iter().all(|row| number(row, "jobs_per_s") <= 4.0), "{rows:?}");
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_policy_is_that_of_the_tries() {
    let with = |policy| jobs("aloha", "75", &["--policy", policy]);
    assert!(with("none") < 0.05 * with("ethernet from 10 s to 5 min"));
}

#[test]
fn a_channel_keeps_the_queue_busy_and_serves_in_the_order_of_coming() {
    let args =
        ["ethernet", "--clients", "400", "--discipline", "channel,ethernet", "--time", "5min"];
    let rows = rows("ethernet", &args);
    let [channel, ethernet] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(channel["crashes"].as_f64(), Some(0.0));
    assert!(number(channel, "jobs") > 0.99 * number(ethernet, "jobs"), "{channel} {ethernet}");
    let spread = |row| number(row, "most_jobs") - number(row, "least_jobs");
    assert!(spread(channel) <= 2.0 && spread(ethernet) > 2.0, "{channel} {ethernet}");
}
