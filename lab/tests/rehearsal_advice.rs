//! Which limit decides, as rehearsals tell it.

use serde_json::Value;

use crate::rehearse::rehearse;
use crate::support::number;

/// What changes of a script do, those that do most first.
fn changes(script: &str, model: &str, args: &[&str]) -> Vec<Value> {
    let args = [&["--command", model, "--json", "--table", "changes"], args].concat();
    let row = |line: &str| serde_json::from_str(line).expect("an object a line");
    rehearse(script, &args).lines().map(row).collect()
}

#[test]
fn a_limit_for_each_attempt_is_found_where_a_command_hangs() {
    let few = ["--trials", "200"];
    for (script, model, change) in [
        ("try for 1 hour\n\twget\nend\n", "wget hangs 30% takes 10s", "each 20 s"),
        ("try 5 times\n\twget\nend\n", "wget hangs 10% takes 2s", "each 4 s"),
        ("try 2 times\n\twget\nend\n", "wget hangs 10% takes 2s to 90s", "each 3 min"),
        // A tenth of the hour would be less than any attempt needs.
        ("try for 1 hour\n\twget\nend\n", "wget hangs 30% takes 10 min", "each 20 min"),
        // Twice as long as an attempt takes would be more than the whole has.
        ("try for 1 hour\n\twget\nend\n", "wget hangs 30% takes 1 to 20 min", "each 30 min"),
        ("try for 1 hour\n\twget\nend\n", "wget hangs 5% fails 10%", "each 1 s"),
    ] {
        let rows = changes(script, model, &few);
        assert_eq!(rows[0]["change"], format!("{change}, where there is none"), "{model} {rows:?}");
        assert!(number(&rows[0], "more_points") > 4.0, "{model} {rows:?}");
    }
}

#[test]
fn delays_of_single_attempts_are_not_changed() {
    let rows = changes("try for 1 hour\n\twget\nend\n", "wget takes 5 s", &["--trials", "20"]);
    let changes: Vec<_> = rows.iter().map(|row| &row["change"]).collect();
    assert_eq!(changes, ["for 1 h → 2 h", "for 1 h → 30 min"]);
}

/// What a rehearsal prints, in one line.
fn told(script: &str, models: &[&str]) -> String {
    let models = models.iter().flat_map(|model| ["--command", model]);
    let args: Vec<_> = models.chain(["--trials", "50"]).collect();
    rehearse(script, &args).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn commands_outside_of_any_try_are_listed() {
    let script = "try 2 times\n\ta\ncatch\n\tb\nend\nwget x\n";
    let text = told(script, &["wget fails 50%", "a fails 50%", "b fails"]);
    assert!(text.contains("by its first failure: line 6: `wget x`, "), "{text}");
    assert!(!text.contains("line 4: `b`"), "b is what is done about a failure: {text}");
    assert!(!told(script, &["a fails 90%"]).contains("first failure"));
}

#[test]
fn commands_of_stopped_runs_are_listed() {
    let text = told("forall x in 1 2\n\tgzip $x\n\twget $x\nend\n", &["wget 1 hangs"]);
    let what = "50 runs weren't over when they were stopped; what was running then: `wget` in 50 of \
                them, and nothing would ever have ended it. `each` or `for` of a `try`";
    assert!(text.contains(what), "{text}");
    let args = ["--until", "1h", "--trials", "5", "--command", "wget hangs"];
    let text = rehearse("try for 1 day\n\twget\nend\n", &args);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("what was running then: `wget` in 5 of them."), "{text}");
}

#[test]
fn tries_that_could_not_be_changed_are_named() {
    let script = "n=3\ntry $n times\n\twget\nend\n";
    let text = told(script, &["wget fails 50%"]);
    let what = "Not changed, since only running the script can tell what is said there: line 2: \
                `try $n times`.";
    assert!(text.contains(what), "{text}");
}

#[test]
fn years_are_shown_in_days() {
    let args = ["--table", "changes", "--command", "wget hangs 50% takes 2s"];
    let text = rehearse("try 2 times\n\twget\nend\n", &args);
    assert!(text.contains(" d\n") && !text.contains(" h\n"), "{text}");
}
