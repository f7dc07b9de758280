//! A black hole among the machines of a cluster.

use serde_json::Value;

use crate::support::{number, rows};

/// The rows of the disciplines, with so many jobs submitted at once.
fn placed(more: &[&str]) -> [Value; 4] {
    let args = [&["cluster", "--trials", "5"], more].concat();
    rows("cluster", &args).try_into().expect("a row for each discipline")
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_machine_that_fails_everything_gets_most_attempts_unless_it_is_avoided() {
    let [fixed, aloha, ethernet, exclusion] = placed(&["--most", "16"]);
    assert!(number(&fixed, "in_holes_percent") > 90.0, "{fixed}");
    for delaying in [&aloha, &ethernet] {
        assert!(number(delaying, "in_holes_percent") > 40.0, "{delaying}");
        // Who has been in the hole waits while good places are free.
        assert!(number(delaying, "time_s") > 1.5 * number(&exclusion, "time_s"), "{delaying}");
    }
    assert!(number(&exclusion, "in_holes_percent") < 5.0, "{exclusion}");
    assert_eq!(exclusion["unlucky"], 0.0, "{exclusion}");
    // 200 jobs of 10 s in twelve places.
    assert!(number(&exclusion, "time_s") < 1.1 * 2000.0 / 12.0, "{exclusion}");
    for row in [fixed, aloha, ethernet, exclusion] {
        assert_eq!(row["done"], 200.0, "{row}");
        let good = number(&row, "attempts") - number(&row, "in_holes");
        assert!((good - 200.0).abs() < 0.01, "{row}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn jobs_queued_in_the_engine_avoid_no_machine() {
    let [.., few] = placed(&["--most", "24"]);
    let [.., many] = placed(&["--most", "200"]);
    assert!(number(&few, "in_holes") < 20.0, "{few}");
    // Nearly all that didn't begin at once on a good machine.
    assert!(number(&many, "in_holes") > 150.0, "{many}");
    assert_eq!(many["worst"], 2.0, "but each job only once: {many}");
}

#[test]
fn without_a_hole_no_job_begins_twice() {
    for row in placed(&["--most", "16", "--holes", "0"]) {
        assert_eq!(row["attempts"], 200.0, "{row}");
        assert_eq!(row["in_holes"], 0.0, "{row}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn unfinished_jobs_are_reported() {
    let [_, aloha, _, exclusion] = placed(&["--most", "200", "--time", "3min"]);
    assert!(number(&aloha, "done") < 150.0, "{aloha}");
    assert_eq!(aloha["time_s"], 180.0, "{aloha}");
    assert_eq!(exclusion["done"], 200.0, "{exclusion}");
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn one_good_machine_is_found_among_others() {
    for holes in ["2", "3"] {
        let [.., exclusion] = placed(&["--most", "16", "--holes", holes, "--jobs", "50"]);
        assert_eq!(exclusion["done"], 50.0, "{exclusion}");
        assert!(number(&exclusion, "in_holes_percent") < 40.0, "{exclusion}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn two_machines_are_enough_to_avoid_one() {
    let [.., exclusion] = placed(&["--most", "16", "--nodes", "2", "--jobs", "50"]);
    assert_eq!(exclusion["done"], 50.0, "{exclusion}");
    assert!(number(&exclusion, "in_holes_percent") < 20.0, "{exclusion}");
}
