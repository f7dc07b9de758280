//! `--cron`: no output unless the script fails.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::run::Running;

fn cron(script: &str) -> Ftsh {
    Ftsh::script(script).options(["--cron"])
}

/// A command that reports its start and waits to be killed.
const WAITS: &str = "echo before; sh -c 'echo waiting; echo ready > ready; sleep 60; :'";

/// Process ids of the supervisor and the interpreter.
fn shells(run: &Running) -> (Pid, Pid) {
    let supervisor = run.pid().as_raw();
    let is_shell = |command: &str| command.contains("ftsh") && command.contains("--cron");
    let mut others = run.processes().into_iter();
    let interpreter = others
        .find(|process| process.pid != supervisor && is_shell(&process.command))
        .expect("an interpreter");
    (run.pid(), Pid::from_raw(interpreter.pid))
}

#[test]
fn a_good_run_is_silent() {
    let script = "echo out\nsh -c 'echo err >&2'\ntry 2 times backoff none\ntest $attempt = 2\nend";
    let finished = cron(script).stdout("").success();
    assert_eq!(finished.errors(), "");
}

#[test]
fn a_failure_is_reported_without_a_log() {
    let finished = cron("echo out\nfalse").options(["-l", "0"]).stdout("").failure(1);
    assert!(finished.errors().starts_with("ftsh: script.ftsh:2: `false` exited with 1\n"));
    assert!(finished.errors().ends_with("\nout\n"));
}

#[test]
fn a_success_with_errors_may_be_shown() {
    // Neither the log nor standard output counts.
    let quiet = "echo out\ntry 2 times backoff none\ntest $attempt = 2\nend";
    let run = || Ftsh::script(quiet).options(["-l20"]);
    for finished in [run().options(["--cron=stderr"]), run().env("FTSH_CRON", "stderr")] {
        assert_eq!(finished.stdout("").success().errors(), "");
    }
    let script = "echo one\nsh -c 'echo two >&2'\nsleep 0.2\necho three";
    let finished = Ftsh::script(script).options(["--cron=stderr"]).stdout("").success();
    let errors = finished.errors();
    let lines: Vec<_> = errors.lines().collect();
    let first = "ftsh: script.ftsh: succeeded with output on standard error; it printed:";
    assert_eq!(lines[0], first);
    assert_eq!(lines.len(), 4, "{errors}");
    assert!(["one", "two", "three"].iter().all(|it| lines.contains(it)), "{errors}");
    // A builtin of the script writes for the script, and a failure is shown as ever.
    let finished = Ftsh::script("echo err >&2").options(["--cron=stderr"]).success();
    assert!(finished.errors().ends_with("printed:\nerr\n"), "{}", finished.errors());
    let finished = Ftsh::script("echo out; exit 3").options(["--cron=stderr"]).failure(3);
    assert!(finished.errors().ends_with("ended with status 3; it printed:\nout\n"));
    // The plain option does not show the success.
    let finished = cron(script).stdout("").success();
    assert_eq!(finished.errors(), "");
    Ftsh::command("echo never").options(["--cron=loud"]).refused(&["`--cron` can't be `loud`"]);
}

#[test]
fn a_failed_run_shows_the_reason_and_then_its_output() {
    let script = "echo one\nsh -c 'echo two >&2'\nprintf three\nsh -c 'exit 7'";
    let finished = cron(script).stdout("").failure(7);
    let errors = finished.errors();
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!(lines[0], "ftsh: script.ftsh:4: `sh -c 'exit 7'` exited with 7");
    assert_eq!(lines[1], "ftsh: script.ftsh: ended with status 7; it printed:");
    assert_eq!(lines[2..], ["one", "two", "three"]);
}

#[test]
fn what_the_failed_command_printed_comes_first() {
    let script = "seq 1 100\necho before\ntry 2 times backoff none\n\
                  sh -c 'seq 101 110; echo why >&2; exit 7'\nend";
    for options in [&[][..], &["-l", "20"], &["--cron=stderr"]] {
        let finished = cron(script).options(options).failure(7);
        let errors = finished.errors();
        let (first, _) = errors.split_once("ftsh: script.ftsh: ended with").expect("a report");
        let (reason, printed) = first.split_once("  it had printed last:\n").expect("output");
        assert!(reason.starts_with("ftsh: script.ftsh:4: `sh -c"), "{errors}");
        let mut printed: Vec<_> = printed.lines().map(str::trim).collect();
        // Two pipes have no order.
        printed.retain(|line| *line != "why");
        assert!(
            printed == ["107", "108", "109", "110"]
                || printed == ["106", "107", "108", "109", "110"],
            "{errors}"
        );
        assert!(options.len() == 1 || first.ends_with("    why\n"), "{errors}");
    }
    // A failure that no command causes.
    let finished = cron("echo one; echo two; failure why").failure(1);
    assert!(!finished.errors().contains("printed last"), "{}", finished.errors());
    // A command whose output is all there is.
    let finished = cron("sh -c 'echo why; exit 7'").failure(7);
    assert!(!finished.errors().contains("printed last"), "{}", finished.errors());
}

#[test]
fn exit_codes_and_quiet_logs_are_no_reason_to_be_silent() {
    let errors = cron("exit 3").failure(3).errors();
    assert_eq!(errors, "ftsh: script.ftsh: ended with status 3\n");
    let errors = cron("echo a; false").options(["-l", "0"]).failure(1).errors();
    assert!(errors.starts_with("ftsh: script.ftsh:1: `false` exited"), "{errors}");
    assert!(errors.ends_with("printed:\na\n"), "{errors}");
}

#[test]
fn errors_before_the_script_are_shown() {
    cron("try").stderr("this `try` has no `end`").failure(2);
    cron("echo a").options(["-f", "no/such/log"]).stderr("can't open the log").failure(2);
    Ftsh::new().args(["--cron", "nosuch"]).stderr("can't read the script").failure(2);
}

#[test]
fn reopening_standard_error_truncates_nothing() {
    let script = "echo first; sh -c 'echo second > /dev/stderr'; echo third; failure";
    cron(script).stderr("printed:\nfirst\nsecond\nthird\n").failure(1);
}

#[test]
fn a_lot_is_kept_whole() {
    let finished = cron("seq 1 300000; echo end; failure").failure(1);
    let errors = finished.errors();
    let kept = errors.split("printed:\n").nth(1).expect("what was printed");
    assert!((1..=300_000).map(|n| n.to_string()).eq(kept.lines().take(300_000)), "numbers");
    assert_eq!(kept.lines().nth(300_000), Some("end"));
}

#[test]
fn a_full_disk_costs_the_middle_only() {
    // The pipe at the end hides the limit from the final output.
    let script = "sh -c '(ulimit -f 8; ftsh --cron -c \"seq 1 200000; failure\") 2>&1 | cat'";
    let shown = Ftsh::command(script).success().text();
    assert!(shown.contains("printed:\n1\n2\n"), "the beginning");
    assert!(shown.contains(" bytes are missing here: file too large\n"), "the hole");
    assert!(shown.contains("\n200000\n"), "the end");
    assert!(shown.starts_with("ftsh: -c:1: failure\n"), "the reason");
}

#[test]
fn an_unwritable_temporary_directory_is_no_hindrance() {
    cron("echo a; failure").env("TMPDIR", "/nosuch").stderr("printed:\na\n").failure(1);
}

#[test]
fn output_is_shown_after_a_signal() {
    let run = cron(WAITS).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    finished.expect_stderr("ftsh: script.ftsh: ended by SIGTERM; it printed:\nbefore\nwaiting\n");
}

#[test]
fn output_is_shown_after_the_interpreter_is_killed() {
    let run = cron(WAITS).start();
    run.until_lines("ready", 1);
    kill(shells(&run).1, Signal::SIGKILL).expect("it lives");
    let finished = run.wait();
    finished.killed_by(Signal::SIGKILL).nothing_left();
    finished.expect_stderr("ended by SIGKILL; it printed:\nbefore\n");
}

#[test]
fn output_is_shown_after_the_supervisor_is_killed() {
    let run = cron(WAITS).start();
    run.until_lines("ready", 1);
    kill(shells(&run).0, Signal::SIGKILL).expect("it lives");
    run.until_gone("everything gone");
    let finished = run.wait();
    finished.killed_by(Signal::SIGKILL);
    finished.expect_stderr("ended by SIGKILL; it printed:\nbefore\n");
}

#[test]
fn a_daemon_neither_delays_the_end_nor_dies_of_it() {
    let daemon = "(until test -e go; do sleep 0.01; done; echo a; echo b; echo > survived) &";
    let finished = Ftsh::new()
        .file("daemon.sh", daemon)
        .file("job.ftsh", "echo a; sh daemon.sh")
        .file(
            "outer.sh",
            "ftsh --cron job.ftsh && echo > go\nuntil test -e survived; do sleep 0.01; done",
        )
        .args(["-c", "sh outer.sh"])
        .success();
    assert_eq!(finished.errors(), "");
}

#[test]
fn an_exec_is_kept_as_well() {
    let finished = cron("echo a; exec sh -c 'echo b; exit 5'").stdout("").failure(5);
    assert_eq!(finished.errors(), "ftsh: script.ftsh: ended with status 5; it printed:\na\nb\n");
    let finished = cron("exec echo b").stdout("").success();
    assert_eq!(finished.errors(), "");
}

#[test]
fn a_log_file_is_written_in_any_case() {
    let finished = cron("true").options(["-l", "20", "-f", "log"]).success();
    assert_eq!(finished.errors(), "");
    assert!(finished.read("log").contains("start: true"));
}

#[test]
fn a_variable_switches_it_on_but_not_for_others() {
    let script = "ftsh -c 'echo inner' -> x\necho \"<$x>\"\nsh -c 'echo \"<$FTSH_CRON>\"'\nfailure";
    let finished = Ftsh::script(script).env("FTSH_CRON", "1").stdout("").failure(1);
    finished.expect_stderr("printed:\n<inner>\n<>\n");
    Ftsh::script("echo a").env("FTSH_CRON", "0").stdout("a\n").success();
    Ftsh::script("echo a").env("FTSH_CRON", "maybe").refused(&["FTSH_CRON", "expected `0`"]);
}

#[test]
fn a_crontab_line_needs_little_environment() {
    let line = "try 2 times backoff none; test $attempt = 2; echo done; end";
    let cleared = format!("env -i PATH=$PATH FTSH_CRON=0 ftsh -c '{line}'");
    Ftsh::new().args(["-c", &cleared]).stdout("done\n").success();
}

#[test]
fn a_good_run_is_silent_about_its_summary_too() {
    let summed_up = |script| cron(script).options(["--summary"]).run().errors();
    assert_eq!(summed_up("true"), "");
    let errors = summed_up("echo out; false");
    assert!(errors.find("working") < errors.find("out\n"), "{errors}");
    assert!(errors.contains("working"), "{errors}");
}
