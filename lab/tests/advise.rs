//! Advice that its own simulation confirms.

use crate::support::{number, printed, rows};

const WISHES: [&str; 9] =
    ["advise", "--clients", "1000", "--capacity", "50/s", "--p99", "10ms", "--notice", "1min"];

#[test]
fn the_recommended_policy_is_the_promptest_that_the_server_can_stand() {
    let rows = rows("advise", &WISHES);
    let best: Vec<_> = rows.iter().filter(|row| row["recommended"] == true).collect();
    assert_eq!(best.len(), 1);
    assert!(number(best[0], "long_run_p99_per_s") <= 62.5);
    assert!(number(best[0], "notice_p99_s") <= 60.0);
    for other in rows.iter().filter(|row| row["sustained"] == true) {
        assert!(number(other, "notice_p99_s") >= number(best[0], "notice_p99_s"));
    }
    let text = printed(&WISHES);
    let line = format!("  backoff {}\n", best[0]["backoff"].as_str().expect("a policy"));
    assert!(text.contains(&line), "{text}");
}

#[test]
fn the_rules_own_policy_comes_first_and_comes_in_bursts() {
    let rows = rows("advise", &WISHES);
    assert_eq!(rows[0]["backoff"], "ethernet from 10 ms to 20 s by 2");
    assert!(rows[0]["sustained"] == false && rows[0]["prompt"] == true);
}

#[test]
fn wishes_that_conflict_are_said_to() {
    let mut wishes = WISHES;
    wishes[8] = "5s";
    let text = printed(&wishes);
    assert!(text.contains("The wishes conflict") && text.contains("a capacity of 200/s"), "{text}");
    // With what it says would do, it does.
    let better = text.split("A capacity of about ").nth(1).and_then(|it| it.split(" would").next());
    wishes[4] = better.expect("a capacity");
    let rows = rows("advise", &wishes);
    assert!(
        rows.iter().any(|row| row["recommended"] == true && row["prompt"] == true),
        "{wishes:?}"
    );
}

#[test]
fn other_policies_can_be_compared() {
    let args =
        [&WISHES[..], &["--policy", "fixed from 100 ms", "--policy", "full from 10 ms to 50 s"]]
            .concat();
    let rows = rows("advise", &args);
    assert!(rows[0]["sustained"] == false && rows[1]["recommended"] == true, "{rows:?}");
}
