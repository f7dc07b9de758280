//! `--redact` and `FTSH_REDACT`: secrets appear in no output of the shell.

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::Finished;

const SECRET: &str = "hunter2 'q\"\\é";

/// A run that hides `$P`, which is [`SECRET`] in the environment.
fn hiding(script: &str) -> Ftsh {
    Ftsh::script(script).options(["--redact", "P"]).env("P", SECRET)
}

/// Checks that standard error contains these texts and no secret.
fn reports(finished: &Finished, texts: &[&str]) {
    let errors = finished.errors();
    assert!(!errors.contains("hunter"), "{errors}");
    for text in texts {
        assert!(errors.contains(text), "no {text} in:\n{errors}");
    }
}

#[test]
fn reports_summaries_and_logs_hide_a_variable() {
    let filler = "x".repeat(85);
    let script =
        format!("try 2 times backoff none\n    sh -c 'exit 3' \"{filler} $P\" \"-p$P\"\nend");
    for level in ["10", "40"] {
        let finished = hiding(&script).options(["--summary", "-l", level]).failure(3);
        reports(&finished, &["exited with 3", "2 at line 2", "***"]);
        let finished = hiding(&script).options(["-l", level, "--log-format", "json"]).failure(3);
        reports(&finished, &["\"command_failed\"", "-p***"]);
        for line in finished.errors().lines() {
            serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        }
        let finished = hiding(&script).options(["-l", level, "-f", "log"]).failure(3);
        reports(&finished, &["***"]);
        let log = finished.read("log");
        assert!(!log.contains("hunter") && log.contains("***"), "{log}");
    }
}

#[test]
fn words_of_branches_are_hidden_in_log_lines() {
    let script = "forall x in \"a $P\"; sh -c 'exit 3'; end";
    for format in ["text", "json"] {
        let options = ["-l", "40", "--log-format", format, "-f", "log"];
        let log = hiding(script).options(options).failure(3).read("log");
        assert!(!log.contains("hunter"), "{log}");
        let place = if format == "text" { "(x=a ***)" } else { "\"branch\":\"x=a ***\"" };
        assert!(log.contains(place), "{log}");
    }
}

#[test]
fn numbers_in_json_stay_numbers() {
    let script = "sh -c 'exit 33'";
    let finished = Ftsh::command(script)
        .options(["-l", "40", "--log-format", "json"])
        .env("FTSH_REDACT", "true\ncode\n\"pid\nexit")
        .failure(33);
    for line in finished.errors().lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    }
    finished.expect_stderr("sh -c '*** 33'");
}

#[test]
fn values_that_become_known_are_hidden() {
    for assignment in [
        "P=hunter2",
        "sh -c 'printf hunt; echo er2' -> P",
        "read P <<< hunter2",
        "export P=hunter2",
        "for P in hunter2; x=$P; end",
        "function f; P=$1; end; f hunter2",
        "forall P in hunter2; false $P; end",
        "P=hunter2 sh -c 'test \"$P\" = other'",
        "env P=hunter2 false",
    ] {
        let script = format!("{assignment}\nsh -c 'exit 3' \"$P\"\n");
        let finished =
            Ftsh::script(script).options(["--redact=P", "-l", "40", "--unset=empty"]).run();
        assert!(!finished.status.is_some_and(|status| status.success()), "{assignment}");
        // Functions receive their arguments before the secret is known.
        let errors = finished.errors();
        let leaks: Vec<_> = errors.lines().filter(|line| line.contains("hunter2")).collect();
        assert!(leaks.iter().all(|line| line.ends_with("start: f hunter2")), "{errors}");
        finished.expect_stderr("***");
    }
}

#[test]
fn a_caught_failure_hides_it_too() {
    hiding("try; sh -c 'exit 1' \"$P\"; catch; echo \"$error, $error_command\"; end")
        .stdout("`sh -c 'exit 1' '***'` exited with 1, sh -c 'exit 1' '***'\n")
        .success();
}

#[test]
fn values_may_come_one_a_line() {
    let finished = Ftsh::command("sh -c 'exit 1' one two three; # a second one")
        .env("FTSH_REDACT", "first one\nsecond one\ntwo three\n\nx\n")
        .failure(1);
    finished.expect_stderr("`sh -c 'exit 1' one ***` exited with 1");
    finished.expect_stderr("# a ***");
}

#[test]
fn nested_shells_hide_the_same() {
    let finished =
        hiding("ftsh -c 'x=\"$P\"; sh -c \"exit 1\" \"$x\"'").options(["-l", "40"]).failure(1);
    reports(&finished, &["-c:1: `sh -c 'exit 1' '***'` exited with 1"]);
    // A variable that is not exported is only known to shells that set it themselves.
    let script = "P=hunter2; ftsh -c 'false $1' \"\" $P";
    reports(
        &Ftsh::command(script).options(["--redact", "P"]).failure(1),
        &[":1: `false '***'` exited"],
    );
    Ftsh::command("P=hunter2; sh -c 'test -z \"$FTSH_REDACT$P\"'")
        .options(["--redact", "P"])
        .success();
}

#[test]
fn a_status_request_hides_secrets() {
    let run = hiding("forall x in \"a$P\"; sh -c 'echo > ready; exec sleep 5' \"$P\"; end").start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGUSR1);
    run.until("a page", |run| run.errors().contains("running `sh"));
    run.signal(Signal::SIGTERM);
    reports(&run.wait(), &["x=a***", "exec sleep 5' '***'"]);
}

#[test]
fn errors_before_the_run_hide_secrets() {
    let finished = Ftsh::script("return 1 hunter2").env("FTSH_REDACT", "hunter2").failure(2);
    reports(&finished, &["***"]);
    Ftsh::command("true")
        .options(["--redact", "a b"])
        .failure(2)
        .expect_stderr("the name of a var");
    Ftsh::command("true").env("FTSH_REDACT_NAMES", "A, B").failure(2);
}

#[test]
fn wrong_options_and_names_hide_it_too() {
    for wrong in ["-t", "-k", "-l", "--seed", "--splay", "--unset", "--backoff", "--no-such"] {
        let finished = Ftsh::command("success")
            .options([wrong, "hunter2"])
            .env("FTSH_REDACT", "hunter2")
            .failure(2);
        assert!(!finished.errors().contains("hunter2"), "{wrong}: {}", finished.errors());
    }
    let finished = hiding("unset $P").env("P", "hunter2").options(["-l", "20"]).success();
    reports(&finished, &["unset ***"]);
}

#[test]
fn a_limit_holds_where_long_values_are_hidden() {
    let script = "try for 300 ms or 1 time
        for i in 1 .to. 16
            P=\"$P$P\"
        end
        sleep 1
    catch
        echo $error_kind
    end";
    Ftsh::command(script)
        .options(["--redact", "P", "-l", "40", "-f", "log"])
        .env("P", "a".repeat(1000))
        .stdout("timeout\n")
        .success();
}
