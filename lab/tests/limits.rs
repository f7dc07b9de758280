//! Limits learned from durations.

use serde_json::Value;

use crate::support::{number, rows};

fn limits(args: &[&str]) -> Vec<Value> {
    rows("limits", &[&["limits", "--trials", "60"], args].concat())
}

fn drift(rows: &[Value], drift: f64) -> impl Iterator<Item = &Value> {
    rows.iter().filter(move |row| (number(row, "drift") - drift).abs() < 0.1)
}

#[test]
fn steady_work_is_hardly_cut_and_hangs_end_soon() {
    let rows = limits(&["--sigma", "0.3,0.6,0.9,1.2", "--hangs", "1,5,10"]);
    for row in drift(&rows, 1.0) {
        // With few trials the most scattered durations are 0.1 % above the mean.
        let most = if number(row, "sigma") < 1.0 { 0.6 } else { 0.75 };
        assert!(number(row, "cut_percent") <= most, "{row}");
        assert!(number(row, "hang_median_p95") <= 3.5, "{row}");
    }
}

#[test]
fn work_that_became_slower_succeeds_at_once() {
    let rows = limits(&["--sigma", "0.3,0.6,0.9,1.2", "--hangs", "1,10"]);
    for slower in [2.0, 5.0] {
        for row in drift(&rows, slower) {
            assert!(number(row, "first_succeeds_percent") >= 100.0, "{row}");
            assert!(number(row, "cut_twice_percent") <= 0.2, "{row}");
            let most = if number(row, "sigma") < 1.0 { 0.75 } else { 1.6 };
            assert!(number(row, "cut_percent") <= most, "{row}");
            assert!(number(row, "hang_median_p95") <= 3.5, "{row}");
        }
    }
}
