//! Limits learned from durations.

use serde_json::Value;

use crate::support::{number, rows};

/// Returns the rows of a number of trials. Each trial has about one good attempt that is cut short,
/// so that scattered durations need many trials.
fn limits(trials: &str, sigma: &str, hangs: &str) -> Vec<Value> {
    rows("limits", &["limits", "--trials", trials, "--sigma", sigma, "--hangs", hangs])
}

/// Checks the bars of the design. `scatter` is the part by which chance may exceed the bar of cuts.
fn holds(rows: &[Value], scatter: f64) {
    for row in rows {
        assert!(number(row, "cut_percent") <= 0.6 * (1.0 + scatter), "{row}");
        assert!(number(row, "hang_median_p95") <= 3.5, "{row}");
        assert!(number(row, "cut_twice_percent") <= 0.0, "{row}");
        let is_drifting = number(row, "drift") > 1.0;
        assert!(!is_drifting || number(row, "first_succeeds_percent") >= 100.0, "{row}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn good_attempts_are_hardly_cut_and_hangs_end_soon() {
    let rows = limits("60", "0.3,0.6,0.9", "1,5,10");
    assert_eq!(rows.len(), 27);
    holds(&rows, 0.0);
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_bars_hold_for_the_most_scattered_work() {
    // The standard deviation of the cuts is 7 %.
    let rows = limits("200", "1.2", "1,10");
    assert_eq!(rows.len(), 6);
    holds(&rows, 0.07);
}
