//! Schedules of policies and scripts.

use crate::support::{lab, number, printed, rows};

#[test]
fn quantiles_lie_between_the_bounds() {
    for policy in
        ["ethernet", "exponential", "full", "equal", "decorrelated", "slotted", "windowed"]
    {
        let rows = rows("delays", &["delays", &format!("{policy} to 1 min"), "--samples", "500"]);
        assert_eq!(rows.len(), 10);
        for row in rows {
            for kind in ["delay", "time"] {
                let at = |which: &str| number(&row, &format!("{kind}_{which}_s"));
                let values = [at("least"), at("median"), at("p90"), at("most") * 1.000_001];
                assert!(values.is_sorted(), "{row}");
            }
        }
    }
}

#[test]
fn the_tries_of_a_script_have_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("a.ftsh");
    let text =
        "try for 1 hour\n  try 3 times each 10 seconds backoff fixed from 5 s\n    a\n  end\nend\n";
    std::fs::write(&script, text).expect("a script");
    let path = script.to_str().expect("text");
    let rows = rows("tries", &["delays", "--script", path]);
    assert_eq!(rows[0]["most_s"], 3600.0);
    assert!(rows[1]["least_s"] == 10.0 && rows[1]["most_s"] == 40.0, "{rows:?}");
    assert!(printed(&["delays", "--script", path]).contains("try 3 times each 10 seconds"));
    std::fs::write(&script, "try\n").expect("a script");
    assert_eq!(lab(&["delays", "--script", path]).status.code(), Some(2));
}
