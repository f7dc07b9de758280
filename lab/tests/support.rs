//! Runs the laboratory from outside.

use std::process::{Command, Output};

use serde_json::Value;

/// An overload by a tenth of the article's crowd, of a tenth of its server.
pub(crate) const SMALL_OVERLOAD: [&str; 7] =
    ["overload", "--clients", "100", "--limit", "3", "--divisor", "1.5"];

/// The laboratory, with arguments.
pub(crate) fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ftsh-lab"));
    // Texts name scripts by their paths in the repository.
    command.args(args).current_dir("..").output().expect("the laboratory runs")
}

/// What it prints when it succeeds.
pub(crate) fn printed(args: &[&str]) -> String {
    let output = lab(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The rows of one of its tables.
pub(crate) fn rows(table: &str, args: &[&str]) -> Vec<Value> {
    let args = [args, &["--json", "--table", table]].concat();
    let row = |line: &str| serde_json::from_str(line).expect("an object a line");
    printed(&args).lines().map(row).collect()
}

/// A number of a row.
pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {row}"))
}

/// The row of a policy.
pub(crate) fn of<'r>(rows: &'r [Value], policy: &str) -> &'r Value {
    rows.iter().find(|row| row["policy"] == policy).unwrap_or_else(|| panic!("no {policy}"))
}
