//! The default policy, with its cap of a minute, beside the cap of an hour of 2003.

use serde_json::Value;

use crate::support::{SMALL_OVERLOAD, number, rows};

/// Returns the rows of the policy with the cap of an hour, and of the default policy.
fn both(table: &str, args: &[&str]) -> [Value; 2] {
    let policies = ["--policy", "ethernet to 1 h", "--policy", "ethernet"];
    let rows = rows(table, &[args, &policies[..]].concat());
    <[Value; 2]>::try_from(rows).expect("a row of each policy")
}

#[test]
fn clients_return_in_one_minute_instead_of_eight_for_a_quarter_more_attempts() {
    let [hour, minute] = both("recovery", &["recovery", "--outage", "5min"]);
    assert!((420.0..540.0).contains(&number(&hour, "notice_p99_s")), "{hour}");
    assert!(number(&minute, "notice_worst_s") <= 60.0, "{minute}");
    let more = number(&minute, "attempts_per_client") / number(&hour, "attempts_per_client");
    assert!((1.15..1.35).contains(&more), "{more}");
}

#[test]
fn a_short_outage_costs_the_same_and_a_long_one_sixteen_requests_a_second() {
    let [hour, minute] = both("recovery", &["recovery", "--outage", "10s"]);
    let more = number(&minute, "attempts_per_client") / number(&hour, "attempts_per_client");
    assert!((0.98..1.02).contains(&more), "{more}");
    let [hour, minute] = both("recovery", &["recovery", "--outage", "2h"]);
    let load = number(&minute, "load_per_s");
    assert!((1000.0 / 60.0..1.1 * 1000.0 / 60.0).contains(&load), "{load}");
    assert!(number(&hour, "load_per_s") < load / 5.0, "{hour}");
}

#[test]
fn a_crowd_that_sees_an_outage_begin_returns_sooner_and_comes_in_more_waves() {
    let args = ["outage", "--clients", "2000", "--outage", "10min", "--trials", "1"];
    let [hour, minute] = both("outage", &args);
    assert!(number(&minute, "contact_p99_s") < 60.0, "{minute}");
    assert!(number(&hour, "contact_p99_s") > 300.0, "{hour}");
    assert!(number(&minute, "waves") > number(&hour, "waves"));
    let succeed = |row: &Value| number(row, "succeed_percent_at_80");
    let rows = rows(
        "deadline",
        &[&args[..], &["--policy", "ethernet to 1 h", "--policy", "ethernet"]].concat(),
    );
    let [_, hour, _, minute] = &rows[..] else { panic!("{rows:?}") };
    assert!(succeed(minute) > 99.0 && succeed(hour) < 70.0, "{rows:?}");
}

#[test]
fn an_overloaded_server_comes_back_sooner() {
    let args = [&SMALL_OVERLOAD[..], &["--backlog", "102", "--trials", "5"]].concat();
    let [hour, minute] = both("overload", &args);
    assert_eq!((&hour["recovered"], &minute["recovered"]), (&"5/5".into(), &"5/5".into()));
    assert!(number(&minute, "all_back_s") < 0.7 * number(&hour, "all_back_s"));
    assert!(number(&minute, "requests_stopped") < 1.1 * number(&hour, "requests_stopped"));
}
