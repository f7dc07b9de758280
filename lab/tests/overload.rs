//! Overload, simulated.

use serde_json::Value;

use crate::support::{SMALL_OVERLOAD, number, rows};

const FIXED: &str = "fixed from 100 ms";
const NORMAL: &str = "normal from 100 ms to 5 min by 2.71828";

/// The rows of a table, of a tenth of the article's crowd, server and queue.
fn small(table: &str, policies: &[&str], more: &[&str]) -> Vec<Value> {
    let policies: Vec<_> = policies.iter().flat_map(|policy| ["--policy", policy]).collect();
    rows(table, &[&SMALL_OVERLOAD[..], &["--backlog", "102"], &policies, more].concat())
}

#[test]
fn only_backoff_brings_the_server_back() {
    let rows = small("overload", &[FIXED, NORMAL], &["--trials", "5"]);
    let [fixed, normal] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&fixed["recovered"], &normal["recovered"]), (&"0/5".into(), &"5/5".into()));
    assert_eq!(fixed["after_per_s"].as_f64(), Some(0.0));
    assert!(number(normal, "peak_concurrency") < 150.0, "{normal}");
    assert!(number(fixed, "requests_stopped") > 4.0 * number(normal, "requests_stopped"));
}

#[test]
fn half_a_crowd_without_backoff_is_enough_to_keep_it_down() {
    let both = format!("{FIXED} + {NORMAL}");
    let rows = small("members", &[&both], &["--trials", "3"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["clients"].as_f64(), Some(50.0));
        assert_eq!(row["answers_at_end"].as_f64(), Some(0.0), "{row}");
    }
}

#[test]
fn without_an_outage_to_speak_of_all_is_well() {
    let rows = small("overload", &[FIXED, NORMAL], &["--outage", "100ms", "--trials", "3"]);
    assert!(rows.iter().all(|row| row["recovered"] == "3/3"), "{rows:?}");
}

#[test]
fn a_last_attempt_gets_more_clients_served_by_their_deadline() {
    let rows =
        small("deadline", &["ethernet from 1 s to 1 h"], &["--deadline", "5min", "--trials", "3"]);
    let [without, with] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&without["last_attempt"], &with["last_attempt"]), (&false.into(), &true.into()));
    let gain = |part: &str| number(with, part) - number(without, part);
    assert!(gain("served_percent_at_50") >= 0.0, "{rows:?}");
    assert!(gain("served_percent_at_80") > 30.0, "{rows:?}");
    assert!(gain("served_percent_at_95") > 5.0, "{rows:?}");
}
