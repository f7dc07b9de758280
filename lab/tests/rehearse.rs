//! Rehearsals of scripts.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::number;

/// A folder with a script.
pub(crate) fn folder(script: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.ftsh"), script).expect("a script");
    folder
}

pub(crate) fn lab(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ftsh-lab"));
    command.current_dir(folder).env_clear().args(["rehearse", "a.ftsh"]).args(args);
    command.output().expect("the laboratory runs")
}

/// What a rehearsal of a script prints.
pub(crate) fn rehearse(script: &str, args: &[&str]) -> String {
    let output = lab(folder(script).path(), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The rows of a table, without any changes.
pub(crate) fn rows(script: &str, table: &str, models: &[&str], args: &[&str]) -> Vec<Value> {
    let models = models.iter().flat_map(|model| ["--command", model]);
    let more = ["--as-it-is", "--json", "--table", table];
    let args: Vec<_> = models.chain(more).chain(args.iter().copied()).collect();
    let row = |line: &str| serde_json::from_str(line).expect("an object a line");
    rehearse(script, &args).lines().map(row).collect()
}

/// The row of all runs of so many trials, and the share that succeeds in percent.
fn all(script: &str, models: &[&str], args: &[&str]) -> (Value, f64) {
    let mut rows = rows(script, "times", models, args);
    let row = rows.pop().expect("a row");
    let succeeded = rows.iter().find(|row| row["runs_that"] == "succeed");
    (row, succeeded.map_or(0.0, |row| number(row, "percent")))
}

#[test]
fn attempts_that_fail_by_chance_make_the_chance_that_one_computes() {
    for (percent, times) in [(30, 1), (30, 2), (30, 3), (50, 4), (90, 5)] {
        let script = format!("try {times} times\n\twget a\nend\n");
        let model = format!("wget fails {percent}%");
        let (row, succeeded) = all(&script, &[&model], &["--trials", "2000"]);
        let expected = 100.0 * (1.0 - (f64::from(percent) / 100.0).powi(times));
        let (low, high) =
            (number(&row, "success_low_percent"), number(&row, "success_high_percent"));
        assert!((low..=high).contains(&expected), "{percent} {times}: {expected} {row}");
        assert!((low..=high).contains(&succeeded), "{succeeded} {row}");
    }
}

#[test]
fn without_failures_all_succeed_and_the_times_add_up() {
    let script = "function f\n\ta\nend\nf\nsleep 1 minute\nforall x in 1 2\n\tb $x\nend\n";
    let (row, succeeded) = all(script, &["a takes 3s", "b 1 takes 5s", "b takes 7 s"], &[]);
    assert_eq!((succeeded, number(&row, "longest_s")), (100.0, 70.0), "{row}");
    assert_eq!(row["mean_s"], 70.0);
}

#[test]
fn a_limit_is_counted_and_changed() {
    let script = "limit 1 minute\n\ttry for 10 minutes every 1 s\n\t\ta\n\tend\nend\n";
    let rows = rows(script, "tries", &["a takes 50s to 100s"], &["--trials", "10"]);
    let heads: Vec<&str> =
        rows.iter().filter_map(|row| row["try"].as_str()).map(str::trim).collect();
    assert_eq!(heads, ["limit 1 minute", "try for 10 minutes every 1 s"]);
    assert_eq!((number(&rows[0], "begun"), number(&rows[0], "most")), (1.0, 1.0), "{}", rows[0]);
    let models = ["--command", "a takes 50s to 100s", "--trials", "100"];
    let text = rehearse(script, &models);
    assert!(text.contains("for 1 min → 2 min"), "{text}");
}

#[test]
fn no_deadline_is_exceeded() {
    let script = "try for 1 minute\n\ttry 3 times each 7 seconds\n\t\ta\n\tend\n\tb\nend\n";
    let models =
        ["a fails 40% takes 1s to 20s hangs 5%", "b hangs 30% fails 50% takes 0s to 5 min"];
    for policy in ["ethernet", "full", "windowed", "fixed from 10 s", "decorrelated from 20 s"] {
        let (row, succeeded) = all(script, &models, &["--policy", policy]);
        assert!(number(&row, "longest_s") <= 60.0, "{row}");
        assert!((1.0..99.0).contains(&succeeded), "{succeeded}");
    }
    let (row, _) = all("try for 1 minute\n\ta\nend\n", &["a hangs ignores SIGTERM"], &[]);
    assert_eq!(row["longest_s"], 90.0, "until SIGKILL");
}

#[test]
fn an_outage_fails_new_runs_and_runs_in_progress() {
    let script = "try for 1 hour every 1 minute\n\ta\nend\n";
    let (row, succeeded) = all(script, &["a down for 20 minutes"], &["--trials", "10"]);
    assert_eq!((succeeded, number(&row, "longest_s")), (100.0, 1200.0));
    let model = "a takes 10 min down from 5 min for 1 min";
    let (row, succeeded) = all("a\n", &[model], &["--trials", "10"]);
    assert_eq!((succeeded, number(&row, "longest_s")), (0.0, 300.0));
    let model = "a takes 1s or 30s if it fails down for 50 s";
    let (row, _) = all(script, &[model], &["--trials", "10"]);
    assert_eq!(row["longest_s"], 61.0);
}

#[test]
fn the_first_runs_can_fail() {
    let tried = |times| {
        let script = format!("try {times} times\n\ta\nend\n");
        all(&script, &["a fails 2 times exits 9"], &["--trials", "10"]).1
    };
    assert_eq!((tried(2), tried(3)), (0.0, 100.0));
}

#[test]
fn the_first_model_that_is_about_a_command_counts() {
    let script = "wget -O x http://a.de/x\n/usr/bin/wget http://b.org/x\n";
    let models = ["wget *a.de* takes 2s", "wget takes 5s", "wget *b.org* takes 100s"];
    let (row, _) = all(script, &models, &["--trials", "1"]);
    assert_eq!(row["longest_s"], 7.0);
    let text = rehearse(script, &["--command", "curl fails", "--trials", "2"]);
    assert!(text.contains("No command was ever like this: `curl fails`."), "{text}");
    assert!(text.contains("succeed at once and print nothing: `wget`."), "{text}");
}

#[test]
fn clients_share_a_server_that_serves_some_at_once() {
    let clients = ["--clients", "5", "--start", "1ms", "--trials", "3"];
    let (row, succeeded) = all("a\n", &["a takes 10s serves 1"], &clients);
    assert_eq!((number(&row, "runs"), succeeded), (15.0, 100.0));
    let longest = number(&row, "longest_s");
    assert!((49.9..=50.0).contains(&longest), "{row}");
    // Who gives up leaves the others their turn.
    let script = "try for 25 s\n\ta\nend\n";
    let (row, succeeded) = all(script, &["a takes 10s serves 1"], &clients);
    assert_eq!((succeeded, number(&row, "longest_s")), (40.0, 25.0));
    let rows = rows("a\n", "commands", &["a takes 10s"], &clients);
    assert_eq!((number(&rows[0], "at_once"), number(&rows[0], "a_second")), (5.0, 5.0));
}

#[test]
fn files_captures_and_conditions_are_those_of_the_script() {
    let script = "\
a -> v
if $v .ne. 'some words'
\tfailure captured $v
end
echo x > new
if .not. .exists. new
\tfailure no redirection
end
for f in *.csv
\tread word < $f
\tb $word
end
if .exists. nothing
\tfailure it exists
end
if .not. .succeeds. ( false )
\tc \"$HOME\" $1
end
";
    let models = ["a prints 'some words'", "b one fails", "c * two takes 2s"];
    let args = ["--file", "one.csv=1", "--trials", "1", "two"];
    // The environment is the laboratory's, which has no HOME here.
    let told = rows(script, "ends", &models, &args);
    assert!(told[0]["failure"].as_str().is_some_and(|it| it.contains("HOME")), "{told:?}");
    let (row, succeeded) = all(&script.replace("\"$HOME\"", "home"), &models, &args);
    assert_eq!((succeeded, number(&row, "longest_s")), (100.0, 2.0));
}

#[test]
fn exit_decides_the_end_of_a_run() {
    let told = rows("exec a\n", "ends", &["a exits 7"], &["--trials", "2"]);
    assert_eq!((&told[0]["kind"], &told[0]["runs"]), (&"exit".into(), &2.into()));
    assert!(told[0]["failure"].as_str().is_some_and(|it| it.starts_with("exit 7")), "{told:?}");
    let (_, succeeded) = all("exit 0\nfalse\n", &[], &["--trials", "2"]);
    assert!(succeeded > 99.0);
    assert!(
        rows("exit 0\n", "ends", &[], &["--trials", "2"]).is_empty(),
        "and that isn't a mistake"
    );
}

#[test]
fn endless_runs_are_stopped() {
    let (row, succeeded) = all("a\n", &["a hangs"], &["--until", "1h", "--trials", "2"]);
    assert_eq!((succeeded, number(&row, "longest_s")), (0.0, 3600.0));
}

#[test]
fn errors_in_a_script_are_shown_in_the_words_of_the_shell() {
    let text = "try 3 tiems\n\ta\nend\n";
    let output = lab(folder(text).path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let mistakes = ftsh_syntax::parse("a.ftsh", text).expect_err("a mistake");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, ftsh_syntax::diagnostic::render_all(&mistakes));
}

#[test]
fn models_can_be_in_a_file() {
    let folder = folder("a\n");
    let path = folder.path().join("models");
    std::fs::write(&path, "# of a\n\na takes 3s\n").expect("a file");
    let args = ["--commands", "models", "--trials", "1", "--json", "--table", "times"];
    let output = lab(folder.path(), &args);
    let row: Value = serde_json::from_slice(
        output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default(),
    )
    .expect("a row");
    assert_eq!(row["longest_s"], 3.0);
    std::fs::write(&path, "# of a\n\na takes for ever\n").expect("a file");
    let output = lab(folder.path(), &args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("ftsh-lab: models:3: `takes for`: not a length"), "{said}");
}

#[test]
fn single_changes_find_what_decides() {
    let script = "try for 10 minutes or 3 times every 1 second\n\ta\nend\n";
    let args = ["--command", "a fails 50%", "--json", "--table", "changes"];
    let text = rehearse(script, &args);
    let rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let of = |change: &str| rows.iter().find(|row| row["change"] == change);
    let more = |change: &str| {
        let row = of(change).unwrap_or_else(|| panic!("no {change} in {text}"));
        (number(row, "more_points"), number(row, "more_points_half"))
    };
    let (fewer, half) = more("3 times → 1");
    assert!((fewer + 37.5).abs() < half && half < 5.0, "{text}");
    let (further, half) = more("3 times → 6");
    assert!((further - 10.9).abs() < half && half < 4.0, "{text}");
    assert_eq!(more("for 10 min → 5 min"), (0.0, 0.0));
    assert_eq!(rows[0]["change"], "3 times → 1", "the most important one comes first");
}

#[test]
fn a_report() {
    let script = "\
try for 1 hour backoff full from 10 s to 5 min
\ttry for 5 minutes or 1 time
\t\twget http://a/b
\tend
\tgzip b
end
";
    let args = [
        "--command",
        "wget fails 30% takes 2s to 2 min hangs 5% down for 10 to 50 min",
        "--trials",
        "200",
    ];
    insta::assert_snapshot!(rehearse(script, &args), @r#"
    a.ftsh, rehearsed 200 times: 98.5 % of the runs succeed (95 % interval: 95.7 to
    99.5 %)
    runs that  runs     %  mean time    median       90 %         99 %         longest
    ---------  ----  ----  -----------  -----------  -----------  -----------  --------
    succeed     197  98.5  34 min 7 s   34 min 32 s  49 min 32 s  58 min 9 s   59 min
                                                                               24 s
    fail          3   1.5  58 min 55 s  1 h          1 h          1 h          1 h
    all         200   100  34 min 30 s  35 min 2 s   50 min 27 s  59 min 24 s  1 h

    What ended the runs that failed
    line  runs       %  failure, for example
                of all
    ----  ----  ------  ------------------------------------------------------------
       3     2     1.0  `wget http://a/b` ran out of time after 13.2 s, at the end
                        of 1 h, by `for` at line 1, 29 attempts in 1 h
       3     1     0.5  `wget http://a/b` exited with 1, 24 attempts in 56 min 47 s

    Commands
    command             runs  most  failed  cut short  mean time
                     a trial             %          %
    ---------------  -------  ----  ------  ---------  ---------
    wget                18.1    30    94.1        0.5  5.7 s
    gzip (no model)    0.985     1       0          0  0 ms

    Tries
    line  try                   begun  attempts  most  succeeded  gave up  cut short
                              a trial      mean                %        %          %
    ----  ------------------  -------  --------  ----  ---------  -------  ---------
       1  try for 1 hour         1.00      18.1    30       98.5      1.5          0
          backoff full from
          10 s to 5 min
       2    try for 5            18.1      1.00     1        5.4     94.5        0.1
          minutes or 1 time

    What one change would do, in the same trials (differences with 99 % intervals)
    line  change                   success  more         mean time    longer
                                         %  points
    ----  -----------------------  -------  -----------  -----------  --------------
       1  for 1 h → 30 min            42.5  −56.0 ± 9.1  26 min 1 s   −8.5 ± 1.7 min
       1  backoff full → fixed         100  =            31 min 51 s  −2.7 ± 0.7 min
       1  backoff full → ethernet     96.5  =            36 min 56 s  +2.4 ± 1.2 min
       1  backoff to 5 min → 1         100  =            32 min 19 s  −2.2 ± 0.8 min
          min
    7 more rows: --table changes

    The worst run, the longest that failed: trial 75, 1 h
    time         line  what
    -----------  ----  -------------------------------------------------------------
    0 ms            1  try: attempt 1
    0 ms            2  try: attempt 1
    0 ms            3  failed: `wget http://a/b` exited with 1
    0 ms            2  try gave up after 1 attempt in 0 ms: `wget http://a/b` exited
                       with 1
    0 ms            1  try: 6.7 s until attempt 2
    6.7 s           1  try: attempt 2
    6.7 s           2  try: attempt 1
    6.7 s           3  failed: `wget http://a/b` exited with 1
    6.7 s           2  try gave up after 1 attempt in 0 ms: `wget http://a/b` exited
                       with 1
    6.7 s           1  try: 6.2 s until attempt 3
    12.9 s          1  try: attempt 3
    12.9 s          2  try: attempt 1
    54 min 50 s     1  try: 2 min 26 s until attempt 28
    57 min 17 s     1  try: attempt 28
    57 min 17 s     2  try: attempt 1
    57 min 17 s     3  start: wget http://a/b
    58 min 37 s     3  failed: `wget http://a/b` exited with 1
    58 min 37 s     2  try gave up after 1 attempt in 1 min 20 s: `wget http://a/b`
                       exited with 1
    58 min 37 s     1  try: 1 min 8 s until attempt 29
    59 min 46 s     1  try: attempt 29
    59 min 46 s     2  try: attempt 1
    59 min 46 s     3  start: wget http://a/b
    1 h             3  failed: `wget http://a/b` ran out of time after 13.2 s, at
                       the end of 1 h, by `for` at line 1
    1 h             1  try gave up after 29 attempts in 1 h: `wget http://a/b` ran
                       out of time after 13.2 s, at the end of 1 h, by `for` at line
                       1
    124 more rows in the middle: --table worst

    Changes that make no difference one could tell: line 1: for 1 h → 2 h, each 4
    min, where there is none, backoff from 10 s → 20 s, backoff from 10 s → 5 s;
    line 2: for 5 min → 10 min, for 5 min → 2 min 30 s, 1 time → 2.

    Commands without a model succeed at once and print nothing: `gzip`.

    11281 events were simulated, without those of the changes.
    "#);
}
