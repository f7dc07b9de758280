//! Atomic attempts of the real binary that are ended from outside, and what they leave.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::Ftsh;

/// All that is in a directory, where scratch directories would be as well.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_signal_drops_it_all() {
    let script = "echo old > f\n\
                  try for 1 hour atomic\n\
                      echo printed; sh -c 'echo complaint >&2'; echo x > $scratch/x\n\
                      try atomic; echo inner; end > g\n\
                      touch begun; sleep 1000\n\
                  end > f";
    let running = Ftsh::command(script).limit(Duration::from_secs(60)).start();
    running.until("an attempt", |run| run.directory().join("begun").exists());
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    finished.expect_stdout(b"");
    assert_eq!(finished.read("f"), "old\n");
    assert!(!finished.errors().contains("complaint"), "{}", finished.errors());
    assert_eq!(names(finished.directory.path()), ["begun", "f"]);
}

#[test]
fn a_limit_drops_it_all() {
    let script = "echo old > f\n\
                  try for 300 ms or 1 time atomic\n\
                      echo printed; echo $scratch; echo x > $scratch/x; sleep 1000\n\
                  catch\n\
                      success\n\
                  finally\n\
                      echo \"$error_kind\" >&2\n\
                  end > f";
    let finished = Ftsh::command(script).success();
    finished.expect_stdout(b"");
    finished.expect_stderr("timeout");
    assert_eq!(finished.read("f"), "old\n");
    assert_eq!(names(finished.directory.path()), ["f"]);
}

#[test]
fn a_directory_that_cannot_be_removed_is_reported() {
    // A file took its place.
    let script = "try 1 time atomic; echo $scratch; rmdir $scratch; touch $scratch; end\n\
                  sh -c 'until grep -q \"cannot remove\" log; do sleep 0.01; done'";
    let options = ["-f", "log", "-l", "40"];
    let finished = Ftsh::command(script).options(options).limit(Duration::from_secs(60)).success();
    let path = finished.text();
    let message = format!("cannot remove `{}`: not a directory", path.trim_end());
    assert!(finished.read("log").contains(&message), "{message} in {}", finished.read("log"));
    std::fs::remove_file(path.trim_end()).expect("it is there");
}

#[test]
fn what_is_printed_comes_out_when_the_attempt_has_succeeded() {
    let script = "try 1 time atomic\n\
                      echo first; forall x in 1 .to. 20; echo $x; end\n\
                      touch begun\n\
                      sh -c 'until test -e go; do sleep 0.01; done'\n\
                  end\n\
                  echo last";
    let running = Ftsh::command(script).limit(Duration::from_secs(60)).start();
    running.until("an attempt", |run| run.directory().join("begun").exists());
    assert!(!running.has_output());
    std::fs::write(running.directory().join("go"), "").expect("a file");
    let finished = running.wait();
    finished.expect_code(0);
    let text = finished.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[21]), (22, "first", "last"));
}

/// The run is told to end again and again, in the middle of what it writes; each start goes on.
#[test]
fn each_attempt_takes_place_once_however_often_a_recorded_run_is_ended() {
    const ALL: usize = 60;
    let script = "for i in 1 .to. 60\n\
                      try 100 times every 1 ms atomic\n\
                          echo $i; /bin/true\n\
                      end >> f\n\
                  end";
    let mut run = Ftsh::script(script).options(["--journal=j"]);
    let written = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    let mut starts = 0;
    let finished = loop {
        starts += 1;
        let (file, before) = (run.path("f"), written(&run.path("f")));
        let running = run.limit(Duration::from_secs(60)).start();
        running.until("an attempt has taken place", |_| written(&file) > before);
        running.signal(Signal::SIGTERM);
        let finished = running.wait();
        if written(&file) == ALL {
            break finished;
        }
        finished.killed_by(Signal::SIGTERM).nothing_left();
        run = Ftsh::after(finished).options(["--journal=j", "script.ftsh"]);
    };
    let numbers: Vec<String> = (1..=ALL).map(|number| format!("{number}\n")).collect();
    assert_eq!(finished.read("f"), numbers.concat());
    assert!(starts > 5, "{starts} starts");
}

/// Prints a reason and many lines, and fails.
const SAYS: &str = "sh -c 'echo \"no route to $0\" >&2; seq 100; exit 3'";

#[test]
fn the_reason_of_a_held_attempt_is_in_the_report_and_in_the_log() {
    let rows = [
        ("try 2 times backoff none atomic; SAYS a; end > f", ["a", "a"]),
        ("try 1 time atomic in .; SAYS a > /dev/null; end", ["a", "a"]),
        ("forall x in a b keep going; try 1 time atomic; SAYS $x; end > $x; end", ["a", "b"]),
        ("forall x in a; try 1 time atomic; SAYS $x; end > $x; end", ["a", "a"]),
        ("forany x in a b in order hedge after 1 hour; SAYS $x > /dev/null; end", ["b", "b"]),
    ];
    for (script, reasons) in rows {
        let script = script.replace("SAYS", SAYS);
        for option in ["-l5", "--cron"] {
            let finished = Ftsh::command(&script).options([option]).failure(3);
            for reason in reasons {
                let line = format!("    no route to {reason}\n");
                assert!(finished.errors().contains(&line), "{}", finished.story());
            }
        }
        let finished = Ftsh::command(&script).options(["-l10", "-flog"]).failure(3);
        for reason in reasons {
            let line = format!("the failed attempt had printed: no route to {reason}\n");
            assert_eq!(finished.read("log").matches(&line).count(), 1, "{}", finished.read("log"));
        }
    }
}

#[test]
fn the_reason_of_an_attempt_that_exits_is_in_the_log() {
    let says = "echo 'no settings' >&2; exit 4";
    for script in [
        "try 3 times backoff none atomic; SAYS; end",
        "try 1 time atomic in .; try 1 time; SAYS; finally; success; end; end",
        "try 1 time atomic; try 1 time atomic; SAYS; end; end",
        "forany x in a hedge after 1 hour; SAYS; end",
        "forall x in a; try 1 time atomic; SAYS; end; end",
    ] {
        let is_branch = script.starts_with("for");
        let level = if is_branch { "-l10" } else { "-l5" };
        let finished = Ftsh::command(&script.replace("SAYS", says)).options([level]).failure(4);
        let line = "the attempt that exited with 4 had printed: no settings\n";
        assert_eq!(finished.errors().matches(line).count(), 1, "{}", finished.story());
    }
    let script = "try 1 time atomic; echo 'no settings' >&2; exit 0; end";
    let finished = Ftsh::command(script).options(["-l10"]).success();
    assert!(!finished.errors().contains("had printed"), "{}", finished.story());
}

/// A terminal, cron and `2>&1` join standard output and standard error.
#[test]
fn the_reason_of_a_held_attempt_survives_a_long_output_to_the_same_file() {
    let says = "sh -c 'echo \"no route to $0\" >&2; seq 200000; exit 3'";
    for script in [
        "try 2 times backoff none atomic; SAYS a; end",
        "forall x in a; try 1 time atomic; SAYS $x; end; end",
        "forany x in a in order hedge after 1 hour; SAYS $x; end",
        "try 1 time atomic; try 1 time atomic; SAYS a; end; end",
        "if true; try 1 time atomic; SAYS a; end; end > both 2>&1",
    ] {
        let script = script.replace("SAYS", says);
        let finished = Ftsh::command(&script).options(["-l5", "--cron"]).failure(3);
        let line = "\n    no route to a\n";
        assert!(finished.errors().contains(line), "{}", finished.story());
    }
}

/// Several commands in one attempt; a command of its own may write to both at once.
#[test]
fn held_output_to_the_same_file_keeps_the_order_of_commands() {
    let script = "try 1 time atomic\n\
                      for n in 1 2 3 4 5 6 7 8 9\n\
                          echo out$n; echo err$n >&2; sh -c \"echo out\"; sh -c \"echo err >&2\"\n\
                      end\n\
                  end > both 2>&1";
    let finished = Ftsh::command(script).success();
    let lines = |number| format!("out{number}\nerr{number}\nout\nerr\n");
    assert_eq!(finished.read("both"), (1..=9).map(lines).collect::<String>());
}

#[test]
fn the_reason_of_a_held_attempt_follows_the_report_of_a_command_with_heads() {
    for (heads, reason) in [
        ("try 2 times backoff none atomic", "{}"),
        ("forany m in a b in order hedge after 1 hour", "b"),
        ("forall m in a keep going try 1 time atomic", "a"),
    ] {
        let words = ["--", "sh", "-c", "echo \"no route to $0\" >&2; exit 3", "{}"];
        let finished = Ftsh::new().args(heads.split(' ')).args(words).failure(3);
        let errors = finished.errors();
        let (_, tail) = errors.split_once('\n').expect("two lines");
        assert_eq!(tail, format!("  it had printed last:\n    no route to {reason}\n"), "{heads}");
    }
}
