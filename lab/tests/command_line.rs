//! The command line: every scenario, and every mistake.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{lab, printed};

/// A quick command line of each scenario.
const SCENARIOS: [&[&str]; 13] = [
    &["occ", "--clients", "10,20", "--trials", "3"],
    &["outage", "--clients", "2000", "--outage", "20s"],
    &["recovery", "--outage", "30s", "--trials", "100"],
    &["delays", "full from 100 ms to 20 s", "--samples", "100"],
    &["advise", "--clients", "100", "--capacity", "50/s", "--p99", "10ms", "--notice", "1min"],
    &["ethernet", "--clients", "10,30", "--descriptors", "1000", "--time", "1min"],
    &["buffer", "--producers", "2,9", "--buffer", "5", "--time", "1min", "--trials", "1"],
    &["limits", "--sigma", "0.6", "--hangs", "5", "--trials", "3"],
    &["blackhole", "--trials", "3"],
    &["cluster", "--jobs", "30", "--most", "8,30", "--trials", "2"],
    &["overload", "--clients", "100", "--limit", "3", "--backlog", "99", "--trials", "2"],
    &[
        "channels",
        "--guard",
        "alone,budget",
        "--clients",
        "50",
        "--outage",
        "20s",
        "--watch",
        "10s",
    ],
    &[
        "rehearse",
        "examples/mirror.ftsh",
        "a.iso",
        "--command",
        "wget *.de.* hangs 10% fails 50%",
        "--command",
        "wget fails 30% takes 2s to 20s down for 20 to 60 min",
        "--trials",
        "20",
        "--clients",
        "2",
    ],
];

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn every_scenario_runs_and_fits_the_screen() {
    for args in SCENARIOS {
        let text = printed(args);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 80), "{args:?}:\n{text}");
        let json = printed(&[args, &["--json"]].concat());
        for line in json.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("an object a line");
            assert!(
                row["table"].is_string() && row["backoff"].is_string() || row["part"].is_string(),
                "{row}"
            );
        }
        let csv = printed(&[args, &["--csv"]].concat());
        let mut lines = csv.lines();
        let columns = lines.next().map(|line| line.matches(',').count());
        assert!(lines.all(|line| line.contains('"') || Some(line.matches(',').count()) == columns));
        let help = printed(&[args[0], "--help"]);
        assert!(help.contains(&format!("ftsh-lab {}", args[0])), "{help}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn the_same_seed_gives_the_same_bytes_however_many_threads() {
    for args in SCENARIOS {
        for format in [&["--json"][..], &["--csv"], &[]] {
            let with = |more: &[&str]| printed(&[args, format, more].concat());
            let one = with(&["--threads", "1"]);
            assert_eq!(one, with(&["--threads", "3"]), "{args:?}");
            if format == ["--json"] {
                assert_ne!(one, with(&["--seed", "2"]), "{args:?}");
            }
        }
    }
}

#[test]
fn impossible_parameters_get_one_clear_line() {
    let mistakes: [(&[&str], &str); 45] = [
        (&[], "missing scenario; the scenarios are"),
        (&["occ", "--clients", "10000", "--trials", "1000000"], "too many to simulate"),
        (
            &[
                "advise",
                "--clients",
                "10",
                "--capacity",
                "1e-300/s",
                "--p99",
                "1s",
                "--notice",
                "1s",
            ],
            "must be from 1e-9/s",
        ),
        (&["occ", "--clients", "0"], "0 is not in 1..=10000"),
        (&["occ", "--clients", "-5"], "-5 is not in 1..=10000"),
        (&["occ", "--trials", "0"], "0 is not in 1..=1000000"),
        (&["occ", "--policy", "full from 10 s to 1 s"], "`from` (10 s) is above `to` (1 s)"),
        (&["occ", "--policy", "ful"], "did you mean `full`?"),
        (&["occ", "--policy", "full by NaN"], "`by` must be a number from 1"),
        (&["occ", "--delay", "0s"], "must be above 0"),
        (&["occ", "--plot", "/nowhere/a.svg"], "can't write /nowhere/a.svg"),
        (&["occ", "--plot", "a.jpg"], "must end in .svg or .png"),
        (&["occ", "--table", "x"], "no table `x`"),
        (&["outage", "--clients", "99999999999"], "not in 1..="),
        (&["outage", "--policy", "none"], "too many to simulate"),
        (&["outage", "--outage", "900 days", "--bucket", "1ms"], "use a longer --bucket"),
        (&["outage", "--outage", "99999999999d"], "longer than 1000 days"),
        (&["recovery", "--outage", "-1s"], "not a length of time"),
        (&["delays"], "required arguments were not provided"),
        (&["delays", "full + fixed"], "name one at a time"),
        (&["delays", "full", "--retries", "10000", "--samples", "1000000"], "too many"),
        (
            &["advise", "--clients", "10", "--capacity", "NaN/s", "--p99", "1s", "--notice", "1s"],
            "above 0",
        ),
        (
            &["advise", "--clients", "10", "--capacity", "5", "--p99", "1s", "--notice", "1s"],
            "not a rate",
        ),
        (&["ethernet", "--descriptors", "500"], "too few for one submission"),
        (&["ethernet", "--time", "900d"], "too many to simulate"),
        (&["ethernet", "--rate", "0/s"], "must be a number above 0"),
        (&["buffer", "--buffer", "-1"], "must be a number above 0"),
        (&["blackhole", "--discipline", "fixed"], "either aloha or ethernet"),
        (&["blackhole", "--holes", "4"], "4 is not in 0..=3"),
        (&["cluster", "--holes", "4"], "--holes: some of the 4 machines must be good"),
        (&["cluster", "--time", "2d"], "--time: the scripts try for a day"),
        (&["cluster", "--discipline", "channel"], "jobs go through no channel"),
        (&["cluster", "--failing", "1ms", "--job", "1h"], "too many to simulate"),
        (&["overload", "--watch", "1s"], "--watch must be at least 10 s"),
        (&["overload", "--deadline", "1s"], "--deadline must be at least 10 s"),
        (&["overload", "--factor", "0.5"], "must be at least 1"),
        (&["overload", "--live", "--scale", "1000"], "less than a millisecond"),
        (&["rehearse"], "required arguments were not provided"),
        (&["rehearse", "nowhere.ftsh"], "can't read the script `nowhere.ftsh`"),
        (&["rehearse", "a.ftsh", "--command", "wget"], "`wget` needs a clause"),
        (&["rehearse", "a.ftsh", "--command", "wget fials 30%"], "did you mean `fails`?"),
        (&["rehearse", "a.ftsh", "--command", "wget takes 5"], "not a length of time"),
        (&["rehearse", "examples/build.ftsh", "--policy", "full + fixed"], "share a single one"),
        (&["rehearse", "examples/build.ftsh", "--commands", "nowhere"], "can't read nowhere"),
        (&["scenario"], "unrecognized subcommand"),
    ];
    for (args, message) in mistakes {
        let output = lab(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with("ftsh-lab: ") && said.contains(message), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_picture_that_was_not_drawn_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.svg");
    let plot = path.to_str().expect("text");
    assert_eq!(lab(&["outage", "--policy", "none", "--plot", plot]).status.code(), Some(2));
    assert!(!path.exists());
}

#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_ftsh-lab"))
        .args(["outage", "--clients", "100", "--outage", "10min", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the laboratory runs");
    drop(lab.stdout.take());
    let mut said = String::new();
    lab.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(lab.wait().expect("an end").success(), "{said}");
    assert_eq!(said, "");
}
