//! Overload, simulated.

use crate::support::{number, rows};

const FIXED: &str = "fixed from 100 ms";
const NORMAL: &str = "normal from 100 ms to 5 min by 2.71828";

/// A tenth of the article's crowd, and of its server.
const SMALL: [&str; 13] = [
    "overload",
    "--clients",
    "100",
    "--limit",
    "3",
    "--divisor",
    "1.5",
    "--backlog",
    "102",
    "--policy",
    FIXED,
    "--policy",
    NORMAL,
];

#[test]
fn only_backoff_brings_the_server_back() {
    let rows = rows("overload", &[&SMALL[..], &["--trials", "5"]].concat());
    let [fixed, normal] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&fixed["recovered"], &normal["recovered"]), (&"0/5".into(), &"5/5".into()));
    assert_eq!(fixed["after_per_s"].as_f64(), Some(0.0));
    assert!(number(normal, "peak_concurrency") < 150.0, "{normal}");
    assert!(number(fixed, "requests_stopped") > 4.0 * number(normal, "requests_stopped"));
}

#[test]
fn half_a_crowd_without_backoff_is_enough_to_keep_it_down() {
    let both = format!("{FIXED} + {NORMAL}");
    let args = [&SMALL[..9], &["--policy", &both, "--trials", "3"]].concat();
    let rows = rows("members", &args);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["clients"].as_f64(), Some(50.0));
        assert_eq!(row["answers_at_end"].as_f64(), Some(0.0), "{row}");
    }
}

#[test]
fn without_an_outage_to_speak_of_all_is_well() {
    let rows = rows("overload", &[&SMALL[..], &["--outage", "100ms", "--trials", "3"]].concat());
    assert!(rows.iter().all(|row| row["recovered"] == "3/3"), "{rows:?}");
}

#[test]
fn a_last_attempt_gets_more_clients_served_by_their_deadline() {
    let args = ["--policy", "ethernet from 1 s", "--deadline", "5min", "--trials", "3"];
    let rows = rows("deadline", &[&SMALL[..9], &args].concat());
    let [without, with] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&without["last_attempt"], &with["last_attempt"]), (&false.into(), &true.into()));
    let gain = |part: &str| number(with, part) - number(without, part);
    assert!(gain("served_percent_at_50") >= 0.0, "{rows:?}");
    assert!(gain("served_percent_at_80") > 30.0, "{rows:?}");
    assert!(gain("served_percent_at_95") > 5.0, "{rows:?}");
}
