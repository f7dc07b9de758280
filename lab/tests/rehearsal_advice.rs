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
fn what_lies_between_attempts_is_left_alone_where_there_was_only_one() {
    let rows = changes("try for 1 hour\n\twget\nend\n", "wget takes 5 s", &["--trials", "20"]);
    let changes: Vec<_> = rows.iter().map(|row| &row["change"]).collect();
    assert_eq!(changes, ["for 1 h → 2 h", "for 1 h → 30 min"]);
}
