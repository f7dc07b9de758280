//! Rehearsals of what has no end, or goes on for very long.

use crate::rehearse::{folder, lab, rows};
use crate::support::number;

/// What is said to a script that can't be rehearsed.
fn refused(script: &str, args: &[&str]) -> String {
    let output = lab(folder(script).path(), args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn a_run_without_time_names_the_command_that_should_take_some() {
    let script = "try for 1 hour backoff none\n\twget a\nend\n";
    for until in [&[][..], &["--until", "2h"]] {
        let told = |model: &str, words: &str| {
            let said = refused(script, &[&["--command", model], until].concat());
            assert!(said.contains("time stands still after 0 ms"), "{said}");
            assert!(said.contains(words), "{said}");
        };
        told("wget fails", "--command 'wget fails takes 1s'");
        told("wget takes 3s down for 20 min", "`or 1s if it fails`");
        told("wget fails takes 0s", "have `wget fails takes 0s` take some");
    }
    let said = refused("sleep 5 seconds\nwhile true\n\ta\nend\n", &["--until", "1h"]);
    assert!(said.contains("time stands still after 5 s"), "{said}");
    assert!(said.contains("--command 'a takes 1s'"), "{said}");
    // Taking some is what helps.
    let models = ["wget fails takes 1s"];
    let row = &rows(script, "times", &models, &["--trials", "1"])[0];
    assert_eq!((&row["runs_that"], number(row, "longest_s")), (&"fail".into(), 3600.0));
}

#[test]
fn an_endless_builtin_blames_no_command() {
    for script in ["while true\nend\n", "wget a\nwhile true\n\techo x\nend\n"] {
        let said = refused(script, &["--until", "1h"]);
        assert!(said.contains("time stands still after 0 ms"), "{said}");
        assert!(said.contains("a loop without an end, or without a `sleep`"), "{said}");
        assert!(!said.contains("wget"), "{said}");
    }
}

#[test]
fn any_trial_that_stands_still_is_reported() {
    let script = "try for 1 hour backoff none\n\twget a\nend\n";
    let model = "wget takes 1s down from 0s to 10s for 1 min";
    let said = refused(script, &["--command", model, "--trials", "20"]);
    assert!(said.contains("`or 1s if it fails`"), "{said}");
    assert!(!said.contains("stands still after 0 ms"), "not the first one: {said}");
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn endless_runs_are_observed_for_the_requested_time() {
    let script = "while true\n\tsleep 1 second\nend\n";
    let said = refused(script, &[]);
    assert!(said.contains("is not over after"), "{said}");
    assert!(said.contains("`--until 1h` stops each unfinished run at that time"), "{said}");
    let row = &rows(script, "times", &[], &["--until", "4d", "--trials", "1"])[0];
    assert_eq!(row["longest_s"], 345_600.0, "more events than without: {row}");
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn many_attempts_before_one_limit_are_no_time_that_stands_still() {
    let script = "try for 2 minutes backoff fixed from 1 ms\n\twget a\nend\n";
    let row = &rows(script, "times", &["wget fails"], &["--until", "1h", "--trials", "1"])[0];
    assert!((119.9..=120.0).contains(&number(row, "longest_s")), "{row}");
}
