//! Contention for one row, against the published simulator.

use crate::support::{number, rows};

/// Clients, and for each policy the mean time in ms and calls of 100 trials of the published
/// simulator.
const REFERENCE: [(u64, [(f64, f64); 5]); 4] = [
    (10, [(376.0, 50.0), (3473.0, 50.0), (733.0, 42.0), (458.0, 38.0), (441.0, 37.0)]),
    (50, [(1144.0, 691.0), (35750.0, 619.0), (4159.0, 346.0), (2806.0, 332.0), (2191.0, 375.0)]),
    (100, [(2029.0, 2417.0), (63308.0, 1859.0), (6588.0, 812.0), (4924.0, 795.0), (4565.0, 999.0)]),
    (
        190,
        [
            (3550.0, 8008.0),
            (101_030.0, 5162.0),
            (9498.0, 1759.0),
            (7442.0, 1773.0),
            (7864.0, 2435.0),
        ],
    ),
];

const POLICIES: [&str; 5] = ["none", "exponential", "equal", "full", "decorrelated"];

#[test]
fn times_and_calls_are_those_of_the_published_simulator() {
    let rows = rows("occ", &["occ", "--clients", "10,50,100,190"]);
    assert_eq!(rows.len(), 20);
    for (clients, reference) in REFERENCE {
        for (policy, (time, calls)) in POLICIES.iter().zip(reference) {
            let row = rows.iter().find(|row| row["clients"] == clients && row["policy"] == *policy);
            let row = row.unwrap_or_else(|| panic!("no row for {clients} {policy}"));
            let scatters = *policy == "exponential" || clients == 10;
            let tolerance = if scatters { 0.15 } else { 0.05 };
            for (ours, theirs) in [(number(row, "time_ms"), time), (number(row, "calls"), calls)] {
                assert!(
                    (ours / theirs - 1.0).abs() < tolerance,
                    "{clients} {policy}: {ours}, not {theirs}"
                );
            }
        }
    }
}

#[test]
fn jitter_saves_calls_and_plain_backoff_costs_time() {
    let rows = rows("occ", &["occ", "--clients", "100", "--trials", "20"]);
    let of = |policy: &str| crate::support::of(&rows, policy);
    assert!(number(of("full"), "calls") < 0.5 * number(of("exponential"), "calls"));
    assert!(number(of("full"), "time_ms") < 0.5 * number(of("exponential"), "time_ms"));
    assert!(number(of("equal"), "time_ms") > number(of("full"), "time_ms"));
    assert!(number(of("decorrelated"), "calls") > number(of("full"), "calls"));
}

#[test]
fn work_grows_with_the_square_of_the_clients() {
    let rows = rows("occ", &["occ", "--clients", "40,160", "--policy", "none", "--trials", "20"]);
    let growth = number(&rows[1], "calls") / number(&rows[0], "calls");
    assert!((12.0..20.0).contains(&growth), "{growth}");
}
