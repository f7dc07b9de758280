//! Output for people while a script runs: the status line, the status page on SIGUSR1, the report,
//! and the summary.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};

use crate::support::Ftsh;
use crate::support::terminal::User;

/// Terminal that can show a line.
const ABLE: (&str, &str) = ("TERM", "xterm");

/// Escape sequence that removes a line.
const ERASED: &str = "\r\x1b[J";

/// Returns a script that waits until the file `go` exists, then succeeds.
fn patient(go: &std::path::Path) -> String {
    format!("try for 1 hour every 1200 ms; test -e {}; end; echo done", go.display())
}

#[test]
fn a_terminal_shows_the_current_wait() {
    let place = tempfile::tempdir().expect("a directory");
    let go = place.path().join("go");
    let script = format!("echo before\n{}", patient(&go));
    let mut user = User::start(&["-c", &script], &[ABLE], 100, None);
    user.sees("before\r\n");
    let before = user.sees("\r\x1b[2mattempt 2 in ");
    assert!(!before.contains("failed:"), "the line shows the failure: {before:?}");
    user.sees(" left: line 2: `test -e");
    std::fs::write(&go, "").expect("a file");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    assert!(
        seen.ends_with(&format!("{ERASED}done\r\n")) || seen.ends_with("\ndone\r\n"),
        "{seen:?}"
    );
}

#[test]
fn the_line_of_a_prefix_names_no_line_of_a_script() {
    let head = ["try", "2", "times", "every", "1", "hour", "--", "sh", "-c", "exit 7"];
    let mut user = User::start(&head, &[ABLE], 100, None);
    user.sees("\x1b[2mattempt 2 of 2 in ");
    let shown = user.sees("exited with 7");
    assert!(!shown.contains("line"), "{shown:?}");
    user.types("\x03");
    let (status, _) = user.ends_after();
    assert_eq!(status.signal(), Some(libc::SIGINT));
}

#[test]
fn the_line_has_a_line_of_its_own_and_keeps_the_cursor() {
    let script = "printf unfinished; try 2 times every 700 ms; test $attempt = 2; end; echo done";
    let user = User::start(&["-f", "/dev/null", "-c", script], &[ABLE], 50, None);
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    // Blanks for a whole line wrap if text stands before them, and change nothing on an empty line.
    let start = format!("unfinished{}\r\r\x1b[2m2/2 in 0.", " ".repeat(50));
    assert!(seen.starts_with(&start), "{seen:?}");
    let lines: Vec<_> = seen.split("\x1b[2m").skip(1).collect();
    assert!(lines.iter().all(|line| line.contains("\x1b[0m\x1b[J\r")), "{seen:?}");
    assert_eq!(seen.matches("  ").count(), 25, "it is known where the cursor is: {seen:?}");
    assert!(seen.ends_with(&format!("{ERASED}done\r\n")), "{seen:?}");
}

#[test]
fn the_line_fits_the_width_without_color() {
    let script = "try 5 times every 1 hour; sh -c 'exit 7'; end";
    let options = ["-l", "10", "-c", script];
    let mut user = User::start(&options, &[ABLE, ("NO_COLOR", "1")], 40, None);
    user.sees("exited with 7\r\n");
    // The line shows the delay, so the log does not report it.
    let before = user.sees("\r2/5 in 59m");
    assert!(!before.contains("until attempt"), "{before:?}");
    let line = user.sees("\x1b[J\r");
    assert!(line.contains("s: `sh -c 'exit") && line.chars().count() <= 37 - 10, "{line:?}");
    user.types("\x03");
    let (status, after) = user.ends_after();
    assert_eq!(status.signal(), Some(libc::SIGINT));
    assert!(!after.contains("until attempt"), "{after:?}");
}

#[test]
fn a_long_delay_is_logged_without_a_line() {
    let script = "try 2 times every 2 minutes; false; end";
    let background = "set -m; \"$@\" & read line; kill $!; wait $!";
    let mut user = User::start(&["-c", script], &[ABLE], 80, Some(background));
    user.sees("until attempt 2, at ");
    user.types("\r");
    let (_, seen) = user.ends_after();
    assert!(!seen.contains("until attempt"), "it is shown once: {seen:?}");
    for other in [
        // The command has the terminal.
        "sh -c 'sleep 600'",
        // The command leaves the line no room.
        "while true; echo x; sleep 0.05; end",
    ] {
        let script = format!(
            "forall x in 1 2; if $x .eql. 1; {script}; end; if $x .eql. 2; {other}; end; end"
        );
        let mut user = User::start(&["-l", "10", "-c", &script], &[ABLE], 80, None);
        user.sees("until attempt 2, at ");
        user.types("\x03");
        let (_, seen) = user.ends_after();
        assert!(!seen.contains("until attempt"), "it is shown once: {seen:?}");
    }
}

#[test]
fn failures_are_logged_where_no_line_shows_them() {
    let script = "try 2 times every 10 ms; sh -c 'exit 7'; end";
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("log");
    let name = file.to_str().expect("text");
    let plain = ["-c", script];
    let report = |seen: &str| seen.contains("in the `try` at line 1: 2 attempts");
    for (options, variables, wrapper, logs) in [
        (&plain[..], &[ABLE][..], None, false),
        (&plain, &[ABLE], Some("\"$@\" > /dev/null"), false),
        (&["-l", "10", "-c", script], &[ABLE], None, true),
        (&plain, &[ABLE, ("FTSH_LOG_LEVEL", "10")], None, true),
        (&plain, &[("TERM", "dumb")], None, true),
        (&plain, &[ABLE], Some("\"$@\" | cat"), true),
        (&plain, &[ABLE], Some("set -m; \"$@\" & wait $!"), true),
        (&["--cron", "-c", script], &[ABLE], None, true),
    ] {
        let (_, seen) = User::start(options, variables, 200, wrapper).ends_after();
        let logged = seen.contains(" failed: `sh -c 'exit 7'` exited with 7");
        assert_eq!(logged, logs, "{options:?} {variables:?} {wrapper:?} {seen:?}");
        assert!(report(&seen), "{options:?} {seen:?}");
    }
    let json = ["--log-format", "json", "-c", script];
    let (_, seen) = User::start(&json, &[ABLE], 200, None).ends_after();
    assert_eq!(seen.matches("\"event\":\"command_failed\"").count(), 2, "{seen:?}");
    let (_, seen) = User::start(&["-f", name, "-c", script], &[ABLE], 200, None).ends_after();
    let log = std::fs::read_to_string(&file).expect("a log");
    assert!(log.contains(" failed: ") && !seen.contains(" failed: "), "{log:?} {seen:?}");
}

#[test]
fn no_line_is_shown_beside_other_output() {
    let script = "try 2 times every 700 ms; sh -c 'exit 7'; end";
    let quiet = [ABLE];
    for (options, variables, wrapper) in [
        (&["-c", script][..], &[("TERM", "dumb")][..], None),
        (&["-c", script], &[("TERM", "")], None),
        (&["-l", "0", "-c", script], &quiet, None),
        (&["-c", script], &quiet, Some("\"$@\" | cat")),
        (&["-c", script], &quiet, Some("\"$@\" 2>&1 < /dev/null | cat")),
        (&["-c", script], &quiet, Some("set -m; \"$@\" & wait $!")),
    ] {
        let user = User::start(options, variables, 80, wrapper);
        let (_, seen) = user.ends_after();
        assert!(
            !seen.contains("attempt 2") && !seen.contains('\x1b'),
            "{options:?} {wrapper:?} {seen:?}"
        );
    }
}

#[test]
fn the_line_is_hidden_while_commands_use_the_terminal() {
    // The second branch waits and could be shown, but the first may write at any time.
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display();
    let done = directory.path().join("done").display().to_string();
    let script = format!(
        "forall x in 1 2\n\
         if $x .eql. 1; sh -c 'echo a; sleep 1; echo b'; end\n\
         try 2 times every 600 ms; sh -c 'exit 7' >& /dev/null; catch; end\n\
         end\n\
         sh -c 'until test -e {done} || ! test -d {place}; do sleep 0.01; done &'\n\
         try 2 times every 600 ms; failure; catch; end\n\
         echo > {done}"
    );
    let user = User::start(&["-f", "/dev/null", "-c", &script], &[ABLE], 80, None);
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    let while_first = seen.split("b\r\n").next().unwrap_or_default();
    assert!(while_first.starts_with("a\r\n") && !while_first.contains('\x1b'), "{seen:?}");
    assert!(!seen.contains("attempt 2 of 2 in"), "something of the shell's still ran: {seen:?}");
}

#[test]
fn branches_are_counted() {
    let place = tempfile::tempdir().expect("a directory");
    let go = place.path().join("go").display().to_string();
    let script = format!(
        "forall x in 1 2 3 4\n\
         if $x .le. 2; sh -c 'until test -e {go}; do sleep 0.01; done' > /dev/null 2>&1; end\n\
         if $x .eql. 3; try for 1 hour every 1100 ms; test -e {go} >& /dev/null; end; end\n\
         end"
    );
    let mut user = User::start(&["-f", "/dev/null", "-c", &script], &[ABLE], 100, None);
    user.sees("1/4 done, 2 run, 1 wait, ");
    std::fs::write(&go, "").expect("a file");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    assert!(seen.ends_with(ERASED), "{seen:?}");
}

#[test]
fn a_bar_shows_the_progress_of_a_forall() {
    let place = tempfile::tempdir().expect("a directory");
    let go = place.path().join("go").display().to_string();
    let script = format!(
        "try\nforall x in 1 2 3 4 5 6 7 8 9 10 at most 3 keep going\n\
         if $x .eql. 2; failure; end\n\
         if $x .gt. 6; sh -c 'until test -e {go}; do sleep 0.01; done' > /dev/null 2>&1; end\n\
         end\ncatch\necho $error_kind\nend"
    );
    let mut user = User::start(&["-f", "/dev/null", "-c", &script], &[ABLE], 100, None);
    user.sees("\r\x1b[2mforall [#####x--- ] 5 of 10 done, 3 running, 1 failed, about ");
    user.sees(" s left\x1b[0m");
    std::fs::write(&go, "").expect("a file");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
    assert!(seen.ends_with("failure\r\n"), "{seen:?}");
}

#[test]
fn commands_that_redirect_everything_leave_the_line_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let go = place.path().join("go").display().to_string();
    let wait = format!("sh -c 'until test -e {go}; do sleep 0.01; done'");
    // The second command opens the terminal itself, and still gets it.
    let script = format!(
        "forall x in 1 2 3\n{wait} < /dev/null > /dev/null 2>&1\nend\n\
         sh -c 'read line < /dev/tty; echo got $line > /dev/tty' < /dev/null > /dev/null 2>&1"
    );
    let mut user = User::start(&["-f", "/dev/null", "-c", &script], &[ABLE], 100, None);
    user.sees("\r\x1b[2mforall [----------] 0 of 3 done, 3 running");
    std::fs::write(&go, "").expect("a file");
    user.types("a line\r");
    user.sees("got a line");
    let (status, seen) = user.ends_after();
    assert_eq!(status.code(), Some(0), "{seen:?}");
}

#[test]
fn a_status_page_shows_the_position() {
    let script = "try 3 times every 1 hour\n    sh -c 'exit 7'\nend\n";
    let running = Ftsh::script(script).start();
    running.until("a failure", |run| run.errors().contains("exited with 7"));
    running.signal(Signal::SIGUSR1);
    running.until("a status", |run| run.errors().contains("last failure"));
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    let errors = finished.errors();
    let page = errors.split("ftsh: status of script.ftsh [").nth(1).expect("a status");
    for line in [
        "line 1: waiting for ",
        ", attempt 2 of 3 in 59 min 59 s\n",
        "    1 | try 3 times every 1 hour\n",
    ] {
        assert!(page.contains(line), "{line} in {errors}");
    }
    assert!(
        page.contains("    last failure: line 2: `sh -c 'exit 7'` exited with 7\n"),
        "{errors}"
    );
    finished.killed_by(Signal::SIGTERM);
}

#[test]
fn a_busy_shell_prints_a_status_page_and_continues() {
    let running = Ftsh::command("n=0; echo > begun; while true; n=$n .add. 1; end").start();
    running.until("a beginning", |run| run.directory().join("begun").exists());
    for round in 1..=3 {
        running.signal(Signal::SIGUSR1);
        running.until("a status", |run| run.errors().matches("ftsh: status of").count() >= round);
    }
    running.signal(Signal::SIGTERM);
    running.wait().killed_by(Signal::SIGTERM);
}

#[test]
fn many_branches_are_summarized() {
    let running = Ftsh::command(
        "echo > begun; forall n in 1 .to. 3000; try 2 times every 1 hour; failure $n; end; end",
    )
    .options(["-l", "1"])
    .start();
    running.until("a beginning", |run| run.directory().join("begun").exists());
    running.until("all branches", |run| {
        let _ = kill(run.pid(), Signal::SIGUSR1);
        run.errors().contains("and 2981 more:\n    line 1: 2981 waiting\n")
    });
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    let errors = finished.errors();
    let mut pages = errors.split("ftsh: status");
    let last = pages.find(|page| page.contains("2981 waiting")).expect("a status");
    assert!(last.contains("3000 waiting after a failure"), "{last}");
    assert!(last.lines().count() < 100, "{last}");
}

#[test]
fn a_request_ignored_at_the_start_stays_ignored() {
    let running = Ftsh::command("echo > begun; try 2 times every 400 ms; test -e no; end")
        .ignoring(Signal::SIGUSR1)
        .start();
    running.until("a beginning", |run| run.directory().join("begun").exists());
    running.signal(Signal::SIGUSR1);
    let finished = running.wait();
    finished.expect_code(1);
    assert!(!finished.errors().contains("status"), "{}", finished.story());
}

#[test]
fn commands_receive_the_status_signal_as_without_the_shell() {
    Ftsh::command("try; sh -c 'kill -USR1 $$'; catch; echo $error_kind $error_code; end")
        .stdout("signal 138\n")
        .success();
}

#[test]
fn a_report_names_failure_place_and_count() {
    let script =
        "function fetch\n    sh -c \"exit $1\"\nend\ntry 2 times backoff none\n    fetch 7\nend\n";
    let finished = Ftsh::script(script).failure(7);
    let errors = finished.errors();
    let lines: Vec<_> = errors.lines().collect();
    let last = lines[lines.len() - 4..].join("\n");
    let (last, time) = last.rsplit_once(" in ").expect("a time");
    assert_eq!(
        last,
        "ftsh: script.ftsh:2: `sh -c 'exit 7'` exited with 7\n  2 | sh -c \"exit $1\"\n  \
         in `fetch`, called at line 5\n  in the `try` at line 4: 2 attempts",
        "{errors}"
    );
    assert!(time.ends_with('s'), "{errors}");
    assert_eq!(errors.matches("exited with 7").count(), 3, "two attempts and the report: {errors}");
    let quiet = Ftsh::script(script).options(["-l", "0"]).failure(7);
    assert_eq!(quiet.errors(), "");
}

#[test]
fn a_report_names_the_reason() {
    for (script, expected) in [
        ("sh -c 'kill -SEGV $$'", "ftsh: -c:1: `sh -c 'kill -SEGV $$'` was killed by SIGSEGV\n"),
        ("nosuch", "ftsh: -c:1: nosuch: not found along PATH [notfound]\n"),
        (
            "try for 30 ms; sh -c 'exec sleep 100'; end",
            "ftsh: -c:1: `sh -c 'exec sleep 100'` ran out of time after 30 ms [timeout]\n",
        ),
        (
            "try; false; catch; failure no; end",
            "ftsh: -c:1: no\n  1 | try; false; catch; failure no; end\n  \
             before that: line 1: `false` exited with 1\n",
        ),
    ] {
        let errors = Ftsh::command(script).run().errors();
        assert!(errors.contains(expected), "{expected} in {errors}");
    }
    // A program reads JSON.
    let errors =
        Ftsh::command("sh -c 'exit 7'").options(["--log-format", "json"]).failure(7).errors();
    assert!(
        errors.starts_with('{') && errors.trim_end().ends_with("\"uncaught\":true}"),
        "{errors}"
    );
    // With the log in a file, standard error has only the report.
    let finished = Ftsh::command("sh -c 'exit 7'").options(["-f", "the.log"]).failure(7);
    assert_eq!(
        finished.errors().lines().next(),
        Some("ftsh: -c:1: `sh -c 'exit 7'` exited with 7")
    );
    assert!(finished.read("the.log").contains("failed: `sh -c 'exit 7'` exited with 7"));
}

#[test]
fn a_failure_is_reported_despite_a_signal_during_cleanup() {
    let running = Ftsh::script(
        "sh -c '(trap \"\" TERM; echo > begun; while :; do sleep 0.01; done) & :'\n\
         sh -c 'until test -e begun; do :; done; echo $$ > failed; exit 7'",
    )
    .options(["-t", "5"])
    .start();
    running.until_lines("failed", 1);
    let failed = std::fs::read_to_string(running.directory().join("failed")).expect("a number");
    // Only a message that its parent has received is complete.
    let process = Path::new("/proc").join(failed.trim());
    running.until("the failure of the command", |_| !process.exists());
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    finished.killed_by(Signal::SIGTERM);
    assert!(finished.errors().contains("exited with 7"), "{}", finished.story());
}

#[test]
fn a_summary_shows_the_counts_of_a_run() {
    let script = "try 3 times backoff fixed from 10 ms\n    sh -c 'exit 7'\ncatch\nend\nforall x in a b\n    \
                  try 2 times backoff none\n        test $attempt = 2\n    end\nend\n";
    let finished = Ftsh::script(script).options(["--summary", "-l", "0"]).success();
    let errors = finished.errors();
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines[0].starts_with("ftsh: summary of script.ftsh: succeeded after "), "{errors}");
    assert_eq!(lines[1], "  attempts  7 in 3 tries, 1 gave up", "{errors}");
    assert!(lines[2].starts_with("  working   "), "{errors}");
    assert!(lines[3].starts_with("  waiting   ") && lines[3].contains("2 delays"), "{errors}");
    assert_eq!(lines[4], "  failures  5 exit", "{errors}");
    assert_eq!(lines[5], "    3 at line 2: `sh -c 'exit 7'` exited with 7", "{errors}");
    assert!(lines[6].starts_with("    2 at line 7: `test 1 = 2` exited"), "{errors}");
    assert_eq!(lines.len(), 7, "{errors}");

    // Two failures at one line: status 2 twice, status 1 once.
    let script = "for code in 2 1 2; try; sh -c \"exit $code\"; catch; end; end";
    let errors = Ftsh::command(script).options(["--summary", "-l", "0"]).success().errors();
    assert!(
        errors.contains("\n    2 at line 1: ") && errors.contains("\n    1 at line 1: "),
        "{errors}"
    );

    // Failures of several words are not those of one word, and their count is no further failure.
    let options = ["--summary", "-l", "0"];
    let heads = "forall x in a b c keep going; try 2 times backoff none";
    let script = format!("{heads}; sh -c 'exit 3' $x; end; end");
    let errors = Ftsh::command(&script).options(options).failure(3).errors();
    let failures = errors.lines().find(|line| line.starts_with("  failures"));
    assert_eq!(failures, Some("  failures  6 exit"), "{errors}");
    let line = errors.lines().find(|line| line.contains("6 at line 1: `sh")).expect("a line");
    assert!(line.ends_with(" exited with 3, and others"), "{errors}");
    for script in ["limit 1 hour; false; end", "limit 1 hour; limit 1 min; false; end; end"] {
        let errors = Ftsh::command(script).options(options).failure(1).errors();
        assert!(errors.contains("\n  failures  1 exit\n"), "{errors}");
    }
    // What no branch has logged is counted.
    for script in
        ["forall x in a keep going; exit 3; end", "forall x in a at least 2; success; end"]
    {
        let errors = Ftsh::command(script).options(options).run().errors();
        assert!(errors.contains("\n    1 at line 1: "), "{errors}");
    }

    let running = Ftsh::command("echo > begun; sleep 1000").options(["--summary"]).start();
    running.until("a beginning", |run| run.directory().join("begun").exists());
    running.signal(Signal::SIGTERM);
    let finished = running.wait();
    finished.killed_by(Signal::SIGTERM);
    finished.expect_stderr("ftsh: summary of -c: ended by SIGTERM after ");

    let errors = Ftsh::command("false | cat").options(["--summary"]).failure(1).errors();
    let (summary, report) = (errors.find("summary"), errors.find("ftsh: -c:1: `false`"));
    assert!(summary.is_some() && summary < report, "the report is the last: {errors}");
}
