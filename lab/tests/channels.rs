//! Clients that share a channel.

use serde_json::Value;

use crate::support::{number, rows};

/// The row of a guard, of a tenth of the crowd and the server.
fn small(guard: &str, more: &[&str]) -> Value {
    let args = ["channels", "--guard", guard, "--clients", "100", "--limit", "3", "--divisor"];
    let times = ["1.5", "--outage", "1min", "--watch", "1min", "--trials", "1"];
    rows("channels", &[&args[..], &times, more].concat()).remove(0)
}

#[test]
fn a_budget_revives_a_server_that_retries_without_backoff_keep_down() {
    let [alone, budget] = ["alone", "budget"].map(|guard| small(guard, &["--backlog", "51"]));
    assert_eq!((&alone["recovered"], &budget["recovered"]), (&"0/1".into(), &"1/1".into()));
    assert_eq!(alone["given_up"].as_f64(), Some(0.0));
    assert!(number(&budget, "given_up") > 100.0, "{budget}");
    let sent = |row| number(row, "requests_stopped");
    assert!(sent(&alone) > 3.0 * sent(&budget), "{alone} {budget}");
}

#[test]
fn first_attempts_alone_keep_it_down_if_its_queue_is_long() {
    let budget = small("budget", &["--backlog", "102"]);
    assert_eq!(budget["recovered"], "0/1", "{budget}");
}

#[test]
fn a_budget_of_a_part_of_the_crowd_has_to_be_most_of_it() {
    let share = |percent| small("budget", &["--backlog", "51", "--share", percent]);
    assert_eq!(share("40")["recovered"], "0/1");
    assert_eq!(share("90")["recovered"], "1/1");
}

#[test]
fn a_breaker_alone_lets_all_in_at_once() {
    let breaker = small("breaker", &["--backlog", "102"]);
    // Hardly anything is sent while the server is stopped, and then by all of them.
    assert!(number(&breaker, "requests_stopped") < 100.0, "{breaker}");
    assert_eq!(breaker["peak_concurrency"].as_f64(), Some(100.0), "{breaker}");
    assert_eq!(breaker["recovered"], "0/1", "{breaker}");
}

#[test]
fn machines_have_channels_of_their_own() {
    let spread = small("budget", &["--backlog", "51", "--machines", "100"]);
    let one = small("budget", &["--backlog", "51"]);
    let sent = |row| number(row, "requests_stopped");
    assert!(
        sent(&spread) > sent(&one) + 500.0,
        "each has ten retries to begin with: {spread} {one}"
    );
}
