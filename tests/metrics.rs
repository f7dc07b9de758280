//! `--metrics`: a file for the textfile collector of `node_exporter`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use regex::Regex;

use crate::support::run::{Finished, command};
use crate::support::{Ftsh, has};

fn script(text: &str) -> Ftsh {
    Ftsh::script(text).file("metrics/README", "").options(["--metrics", "metrics"])
}

/// The next run in the same directory.
fn again(before: Finished, words: &[&str]) -> Ftsh {
    Ftsh::after(before).args(["--metrics", "metrics"]).args(words)
}

/// The only file with metrics.
fn file(of: &Path) -> PathBuf {
    let found = fs::read_dir(of.join("metrics")).expect("a directory").flatten();
    let mut found: Vec<_> =
        found.map(|it| it.path()).filter(|it| !it.ends_with("README")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn metrics(of: &Finished) -> String {
    fs::read_to_string(file(of.directory.path())).expect("metrics")
}

/// The value of a metric, in thousandths.
fn value(text: &str, name: &str) -> i64 {
    let line = text.lines().find(|line| line.starts_with(&format!("ftsh_{name}{{")));
    let value = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    (value.unwrap_or_else(|| panic!("no {name} in {text}")) * 1000.0).round() as i64
}

/// Without times, and without the directory of the run.
fn shown(of: &Finished) -> String {
    let times = Regex::new(r"(?m)(seconds\{.*\}) [0-9.]*[1-9][0-9.]*$").expect("a pattern");
    let text = metrics(of).replace(&of.directory.path().display().to_string(), "DIR");
    times.replace_all(&text, "$1 TIME").into_owned()
}

#[test]
fn a_script_has_a_file() {
    let finished = script("try 3 times backoff none; sh -c 'exit 4'; end").failure(4);
    insta::assert_snapshot!(shown(&finished), @r#"
# HELP ftsh_last_start_timestamp_seconds Start of the last run, in seconds since 1970.
# TYPE ftsh_last_start_timestamp_seconds gauge
ftsh_last_start_timestamp_seconds{script="DIR/script.ftsh"} TIME
# HELP ftsh_last_success_timestamp_seconds End of the last run that succeeded, in seconds since 1970, or 0.
# TYPE ftsh_last_success_timestamp_seconds gauge
ftsh_last_success_timestamp_seconds{script="DIR/script.ftsh"} 0
# HELP ftsh_last_duration_seconds Duration of the last run that has ended.
# TYPE ftsh_last_duration_seconds gauge
ftsh_last_duration_seconds{script="DIR/script.ftsh"} TIME
# HELP ftsh_last_status Exit status of the last run that has ended.
# TYPE ftsh_last_status gauge
ftsh_last_status{script="DIR/script.ftsh"} 4
# HELP ftsh_attempts_total Attempts in all runs.
# TYPE ftsh_attempts_total counter
ftsh_attempts_total{script="DIR/script.ftsh"} 3
# HELP ftsh_failures_total Failures in all runs, by their kind.
# TYPE ftsh_failures_total counter
ftsh_failures_total{kind="exit",script="DIR/script.ftsh"} 3
"#);
    check(&metrics(&finished));
    let before = metrics(&finished);
    assert_eq!(value(&before, "last_success_timestamp_seconds"), 0);
    let path = file(finished.directory.path());
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o644);
    // Counts continue.
    fs::write(finished.directory.path().join("script.ftsh"), "try 2 times; true; end")
        .expect("a file");
    let finished = again(finished, &["script.ftsh"]).success();
    let after = metrics(&finished);
    check(&after);
    assert_eq!((value(&after, "attempts_total"), value(&after, "last_status")), (4000, 0));
    assert!(
        value(&after, "last_success_timestamp_seconds")
            >= value(&before, "last_start_timestamp_seconds")
    );
    assert!(after.contains("ftsh_failures_total{kind=\"exit\","), "{after}");
    // A failure keeps the last success.
    let success = value(&after, "last_success_timestamp_seconds");
    fs::write(finished.directory.path().join("script.ftsh"), "exit 9").expect("a file");
    let after = metrics(&again(finished, &["script.ftsh"]).failure(9));
    assert_eq!(value(&after, "last_success_timestamp_seconds"), success);
    assert_eq!(value(&after, "last_status"), 9000);
}

/// Checks metrics as Prometheus does, where its program is installed.
fn check(text: &str) {
    if !has("promtool") {
        return;
    }
    let mut promtool = command("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().expect("promtool");
    child.stdin.take().expect("its input").write_all(text.as_bytes()).expect("a reader");
    let output = child.wait_with_output().expect("its end");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}{text}");
}

#[test]
fn names_are_made_of_the_script() {
    let run = Ftsh::new().file("metrics/README", "").file("ä \"b\\.x", "true");
    let finished = run.args(["--metrics", "metrics", "ä \"b\\.x"]).success();
    let name = file(finished.directory.path());
    let name = name.file_name().expect("a name").to_string_lossy();
    assert!(name.starts_with("ftsh____b_.x_"), "{name}");
    assert!(name.ends_with(".prom"), "{name}");
    let text = metrics(&finished);
    assert!(text.contains("ä \\\"b\\\\.x\"} "), "{text}");
    check(&text);
    let finished =
        Ftsh::command("true").file("metrics/README", "").env("FTSH_METRICS", "metrics").success();
    assert!(metrics(&finished).contains("{script=\"-c "));
}

#[test]
fn runs_that_do_not_begin_change_nothing() {
    let holder = Ftsh::script("sh -c 'echo ready > ready; exec sleep 60'").options(["--lock=lock"]);
    let holder = holder.file("metrics/README", "").start();
    holder.until_lines("ready", 1);
    let lock = format!("--lock={}", holder.directory().join("lock").display());
    let directory = holder.directory().join("metrics");
    Ftsh::command("true").options([&lock]).env("FTSH_METRICS", &directory).failure(75);
    Ftsh::command("try").env("FTSH_METRICS", &directory).failure(2);
    assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 1);
    holder.signal(Signal::SIGTERM);
    holder.wait().killed_by(Signal::SIGTERM);
    // Neither the status nor the output depends on the directory.
    let finished = Ftsh::script("echo out").options(["--metrics", "nosuch", "-f", "log"]);
    let log = finished.stdout("out\n").success().read("log");
    assert_eq!(log.matches("can't write the metrics `").count(), 1, "{log}");
}

#[test]
fn a_kill_is_a_failure() {
    for of_interpreter in [true, false] {
        let run = script("sh -c 'echo ready > ready; exec sleep 60'").start();
        run.until_lines("ready", 1);
        let text = fs::read_to_string(file(run.directory())).expect("metrics");
        assert!(value(&text, "last_start_timestamp_seconds") > 0);
        let interpreter = run.interpreter().expect("an interpreter");
        let victim = if of_interpreter { interpreter } else { run.pid() };
        kill(victim, Signal::SIGKILL).expect("it lives");
        run.until_gone("after SIGKILL");
        let finished = run.wait();
        assert_eq!(value(&metrics(&finished), "last_status"), 137_000, "{of_interpreter}");
    }
}
