//! An outage that everyone sees begin.

use std::time::Duration;

use ftsh_lab::common::random;
use ftsh_lab::scenario::outage::{last_try, retry, survivors};
use ftsh_syntax::backoff::Policy;

use crate::support::{number, of, rows};

#[test]
fn proportional_comes_in_waves_slotted_in_flatter_ones_windowed_in_none() {
    let rows = rows("outage", &["outage", "--clients", "100000"]);
    let waves = |policy: &str| number(of(&rows, policy), "waves");
    let depth = |policy: &str| number(of(&rows, policy), "deepest_wave_percent");
    assert!(waves("proportional") >= 4.0);
    assert!(depth("proportional") > 1.3 * depth("slotted"), "{rows:?}");
    assert!(waves("windowed") < 0.5 && waves("slotted") >= 1.0, "{rows:?}");
    assert!(
        number(of(&rows, "exponential"), "peak_to_mean")
            > number(of(&rows, "full"), "peak_to_mean")
    );
}

#[test]
fn the_rate_of_windowed_never_rises_from_window_to_window() {
    let policy: Policy = "windowed from 250 ms to 1 min".parse().expect("a policy");
    let windows: Vec<_> = policy.bounds().take(9).map(|it| (it.earliest, it.latest)).collect();
    let mut counts = vec![0_u32; windows.len()];
    let outage = windows[8].1;
    for client in 0..20_000 {
        retry(&policy, outage, &mut random(1, &[client]), |at| {
            let window = windows.iter().position(|(start, end)| (*start..*end).contains(&at));
            counts[window.expect("in a window")] += 1;
        });
    }
    // Each client retries once in every window, so the rate is one over the window's length.
    assert_eq!(counts, vec![20_000; 9]);
    assert!(windows.is_sorted_by_key(|(start, end)| end.abs_diff(*start)));
}

#[test]
fn contact_is_made_within_a_factor_of_the_outage() {
    let args =
        ["outage", "--clients", "20000", "--outage", "20s", "--policy", "exponential from 1 s"];
    let rows = rows("outage", &args);
    assert!(number(&rows[0], "contact_worst_s") <= 21.0);
}

#[test]
fn the_last_attempt_rescues_clients() {
    let policy: Policy = "full from 1 s to 1 h".parse().expect("a policy");
    let deadline = Duration::from_secs(300);
    let lasts = |rule: bool| -> Vec<f32> {
        let last = |client| last_try(&policy, deadline, rule, &mut random(1, &[client]));
        (0..20_000).map(|client| last(client).as_secs_f32()).collect()
    };
    let (with, without) = (lasts(true), lasts(false));
    for outage in [150.0, 240.0, 270.0] {
        let failed = |lasts| 1.0 - survivors(lasts, outage);
        assert!(failed(&with) < 0.7 * failed(&without), "{outage}");
    }
    assert!(with.iter().all(|last| *last <= 300.0));
}

#[test]
fn the_halves_of_a_crowd_are_distinguished() {
    let crowd = "fixed from 100 ms + full from 1 s to 1 min";
    let args = ["outage", "--clients", "2000", "--policy", crowd];
    let halves = rows("halves", &args);
    assert_eq!(halves.len(), 2);
    assert!(number(&halves[0], "contact_worst_s") <= 0.1);
    assert!(number(&halves[1], "contact_median_s") > 1.0);
}
