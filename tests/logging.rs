//! The log: levels, files, formats, sharing.

use crate::support::{Ftsh, WAYS};

const SCRIPT: &str = "try 2 times every 1 ms
	if $attempt .eql. 1
		sh -c 'exit 7'
	end
	/bin/echo done
end
";

fn log_at(level: &str) -> String {
    Ftsh::script(SCRIPT)
        .options(["-l", level, "-f", "the.log"])
        .stdout("done\n")
        .success()
        .read("the.log")
}

#[test]
fn each_level_logs_more() {
    let logs: Vec<String> = ["0", "10", "20", "30", "40"].into_iter().map(log_at).collect();
    assert_eq!(logs[0], "");
    assert!(logs[1].contains('7'), "{}", logs[1]);
    assert!(!logs[1].contains("/bin/echo"), "{}", logs[1]);
    assert!(logs[2].contains("/bin/echo"), "{}", logs[2]);
    assert!(logs[3].to_lowercase().contains("try"), "{}", logs[3]);
    for pair in logs.windows(2) {
        assert!(pair[0].lines().count() < pair[1].lines().count(), "{}\n---\n{}", pair[0], pair[1]);
    }
}

#[test]
fn the_quietest_level_logs_only_the_final_failure() {
    let recovered =
        "try 3 times every 1 ms; test $attempt = 3; end; try; false; catch; true; end\n";
    let finished = Ftsh::script(recovered).options(["-l", "5"]).success();
    assert_eq!(finished.errors(), "");
    let failing = format!("{recovered}try 2 times every 1 ms; sh -c 'exit 7'; end");
    let errors = Ftsh::script(&failing).options(["-l", "5"]).failure(7).errors();
    assert!(
        errors.starts_with("ftsh: script.ftsh:2: `sh -c 'exit 7'` exited with 7\n"),
        "{errors}"
    );
    assert!(errors.contains("in the `try` at line 2: 2 attempts"), "{errors}");
    let log = Ftsh::script(&failing).options(["-l", "5", "-f", "the.log"]).failure(7);
    let log = log.read("the.log");
    assert!(log.contains("script.ftsh:2 try gave up after 2 attempts in "), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn a_line_has_the_pid_the_script_and_the_line() {
    let finished = Ftsh::script("echo $$ > pid\nsuccess\nsh -c 'exit 7'\n")
        .options(["-l", "10", "-f", "the.log"])
        .failure(7);
    let (log, pid) = (finished.read("the.log"), finished.read("pid"));
    let line =
        log.lines().find(|line| line.contains("script.ftsh:3")).expect("a line about line 3");
    assert!(line.contains(pid.trim()), "{pid} in {line}");
}

#[test]
fn times_are_local() {
    let offset = |run: Ftsh| {
        let finished = run.failure(1);
        let line = finished.errors();
        let offset = finished.text();
        assert!(line.contains(&format!("{}\"", offset.trim())), "{offset} in {line}");
        offset
    };
    let run = || Ftsh::command("date +%:z; false").options(["--log-format", "json"]);
    offset(run());
    assert_eq!(offset(run().env("TZ", "<+05>-5")), "+05:00\n");
}

#[test]
fn decimal_times() {
    let log = Ftsh::script("false").options(["-D", "-f", "the.log"]).failure(1).read("the.log");
    let first = log.split_whitespace().next().expect("a log line").to_owned();
    let time: f64 = first.parse().expect("a decimal time first");
    assert!(time > 1.6e9, "{log}");
}

#[test]
fn the_log_is_appended_to() {
    let log = Ftsh::script("sh -c 'exit 7'")
        .file("the.log", "what was there\n")
        .options(["-f", "the.log"])
        .failure(7)
        .read("the.log");
    assert!(log.starts_with("what was there\n"), "{log}");
    assert!(log.lines().count() > 1, "{log}");
}

#[test]
fn a_log_that_cannot_be_opened_stops_before_anything_runs() {
    Ftsh::command("echo never")
        .options(["-f", "no/such/dir/log"])
        .refused(&["no/such/dir/log"])
        .one_line();
}

#[test]
fn the_environment_sets_the_log_and_options_win() {
    let finished = Ftsh::command("/bin/echo a")
        .env("FTSH_LOG_FILE", "env.log")
        .env("FTSH_LOG_LEVEL", "20")
        .success();
    assert!(finished.read("env.log").contains("/bin/echo"));
    let finished = Ftsh::command("/bin/echo a")
        .env("FTSH_LOG_FILE", "env.log")
        .env("FTSH_LOG_LEVEL", "20")
        .options(["-f", "option.log", "-l", "0"])
        .success();
    assert_eq!(finished.read("option.log"), "");
    assert!(!finished.directory.path().join("env.log").exists());
}

#[test]
fn a_nested_shell_inherits_the_options() {
    let log = Ftsh::command("cd sub; ftsh inner.ftsh")
        .file("sub/inner.ftsh", "/bin/echo nested\n")
        .options(["-l", "20", "-f", "the.log"])
        .success()
        .read("the.log");
    assert!(log.contains("inner.ftsh:1"), "{log}");
}

#[test]
fn several_shells_share_a_log() {
    let finished = Ftsh::command(
        "forall i in 1 .to. 20; ftsh -l 40 -f the.log -c 'for i in 1 .to. 5; sh -c true; end'; end",
    )
    .success();
    let log = finished.read("the.log");
    assert!(log.lines().count() >= 100, "{log}");
    let first = log.lines().next().expect("lines").split_whitespace().count();
    assert!(first >= 3, "{log}");
    for line in log.lines() {
        let year = line.get(..2);
        assert_eq!(year, log.get(..2), "a torn line: {line:?}");
    }
}

#[test]
fn json_lines_are_json() {
    let log = Ftsh::script(SCRIPT)
        .options(["-l", "40", "-f", "the.log", "--log-format", "json"])
        .success()
        .read("the.log");
    assert!(log.lines().count() > 4);
    for line in log.lines() {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(value.is_object(), "{line}");
    }
}

#[test]
fn a_message_with_newlines_is_one_log_line() {
    let log = Ftsh::script("sh -c 'exit 7' 'one\ntwo'\n")
        .options(["-l", "20", "-f", "the.log"])
        .failure(7)
        .read("the.log");
    assert!(!log.lines().any(|line| line.starts_with("two")), "{log}");
}

/// A script with a daemon that ignores SIGTERM, at level 40.
fn log_of_processes(way: &str, format: &str) -> String {
    Ftsh::command("try for 1 second or 1 time; sh -c 'trap \"\" TERM; setsid sleep 60 & sleep 61 & sleep 62'; catch; success; end")
        .options(["-t", "0.2", "-l", "40", "-f", "the.log", "--log-format", format])
        .in_way(way)
        .success()
        .nothing_left()
        .read("the.log")
}

#[test]
fn processes_are_logged_from_start_to_end() {
    for way in WAYS {
        let log = log_of_processes(way, "text");
        let after = |text: &str| {
            let at = log.find(text).unwrap_or_else(|| panic!("{way}: no {text:?} in {log}"));
            log[at + text.len()..].split([' ', '\n']).next().expect("a word").to_owned()
        };
        // The start record contains the number of the command's process.
        let pid = log.split(" started: sh").next().and_then(|head| head.rsplit(' ').next());
        let pid = pid.expect("a number");
        assert_eq!(after("signal SIGTERM to process "), format!("-{pid}"), "its group: {log}");
        assert_eq!(after("signal SIGCONT to process "), format!("-{pid}"), "{log}");
        assert!(log.contains(&format!("signal SIGKILL to process {pid}\n")), "{way}: {log}");
        assert_eq!(log.matches("signal SIGKILL to process ").count(), 4, "{way}: {log}");
        assert!(log.contains(&format!("process {pid} ended: SIGKILL")), "{way}: {log}");
        assert!(log.contains(" is empty: 4 processes in "), "{way}: {log}");
        // An unusual containment is logged.
        assert_eq!(log.contains("no pidfds: "), way != "0", "{log}");
        assert_eq!(log.contains("no subreaper: "), way == "1", "{log}");
    }
}

#[test]
fn an_adopted_daemon_is_logged() {
    for way in ["0", "pidfd"] {
        let script = "try 1 time; sh -c 'setsid sleep 60 & exit 1'; catch; success; end";
        let finished =
            Ftsh::command(script).options(["-l", "40", "-f", "the.log"]).in_way(way).success();
        let log = finished.nothing_left().read("the.log");
        let adopted = log.lines().find(|line| line.contains(" adopted: ")).expect("an adoption");
        // The process may be found before it executes the program.
        let names = [": sh", ": setsid", ": sleep"];
        assert!(names.iter().any(|name| adopted.ends_with(name)), "{way}: {log}");
        assert!(log.contains(" is empty: 1 process in "), "{way}: {log}");
    }
}

#[test]
fn processes_are_logged_for_programs_too() {
    let log = log_of_processes("0", "json");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let event = |name: &str| {
        let found = lines.iter().find(|line| line["event"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {log}"))
    };
    assert!(event("spawned")["process"].is_i64(), "{log}");
    assert!(event("signaled")["signal"].is_string(), "{log}");
    assert_eq!(event("emptied")["processes"], 4, "{log}");
    assert!(event("emptied")["duration"].is_number(), "{log}");
}

#[test]
fn a_limit_on_files_is_a_failure_and_no_signal_to_the_shell() {
    let script = format!(
        "
        for i in 1 .to. 40; try 1 time; failure number $i; catch # expected
        end; end
        try 1 time; echo {long} > f; catch; echo the builtin failed; end
        try 1 time; sh -c 'exec head -c 2000 /dev/zero' > f
        catch; echo the program: $error_kind $error_code; end",
        long = "x".repeat(2000)
    );
    Ftsh::command(&script)
        .options(["-f", "log", "-l", "20"])
        .through(["sh", "-c", "ulimit -f 1; exec \"$@\"", "sh"])
        .stdout("the builtin failed\nthe program: signal 153\n")
        .stderr("ftsh: can't write the log: ")
        .success();
}

#[test]
fn a_final_failure_is_reported_once() {
    let check = |script: &str, uncaught: usize, reported: usize| {
        let options = ["-f", "log", "--log-format", "json"];
        let log = Ftsh::command(script).options(options).run().read("log");
        assert_eq!(log.matches("\"uncaught\":true").count(), uncaught, "{script}\n{log}");
        let errors = Ftsh::command(script).run().errors();
        assert_eq!(errors.matches("`false` exited with 1").count(), reported, "{script}\n{errors}");
    };
    check("false", 1, 1);
    check("false | cat", 1, 1);
    check("true | false | cat", 1, 1);
    check("forall x in 1; false; end", 1, 1);
    check("forany x in 1 in order; false; end", 1, 1);
    check("forany x in 1 2; false; end", 1, 2);
    check("forany x in 1 2 3 hedge after 1 hour; false; end", 1, 3);
    check("forany x in 0 1 in order hedge after 1 hour; test $x = 1; end", 0, 0);
    check("forany x in 1 2 hedge after 1 hour; giveup; end", 1, 0);
    check("function f; forall x in 1; true | false; end; end; f", 1, 1);
    check("forall x in 1; forany y in 2; try; false; end; end; end", 1, 2);
    check("try; false | cat; catch; end", 0, 2);
    check("try; false; catch; failure; end", 1, 3);
    check("try; false; catch; forall x in 1; failure; end; end", 1, 3);
    check("try; try; false; catch; failure; end; catch; end", 0, 3);
    check("forany x in 0 1 in order; try; forall y in $x; test $y = 1; end; end; end", 0, 0);
    check("if .succeeds. (f); end; function f; forany x in 1; false; end; end", 0, 1);
}

#[test]
fn every_failed_stage_is_logged() {
    let late = "sh -c 'trap \"\" PIPE; while echo x; do :; done 2> /dev/null; exit 2'";
    let finished = Ftsh::command(&format!("{late} | sh -c 'exit 3'")).failure(2);
    let errors = finished.errors();
    for code in ["exited with 2", "exited with 3"] {
        assert_eq!(errors.matches(code).count(), 1, "{errors}");
    }
}

/// Checks that the texts follow one another.
fn in_order(errors: &str, texts: &[&str]) {
    let mut rest = errors;
    for text in texts {
        let Some(at) = rest.find(text) else { panic!("no {text:?} in its place in:\n{errors}") };
        rest = &rest[at + text.len()..];
    }
}

#[test]
fn a_repeated_failure_is_counted_when_its_try_ends() {
    // Fails three times, then succeeds.
    let flaky = "try 9 times backoff none; if $attempt < 4; false; end; end\n";
    let wrapped = |before: &str, after: &str| format!("{before}\n{flaky}{after}");
    for script in [
        wrapped("", "echo later >&2"),
        wrapped("function f", "end; f; echo later >&2"),
        wrapped("forall x in a", "end; echo later >&2"),
        wrapped("forall x in a", "echo later >&2; end"),
        wrapped("forall x in a output grouped", "end; echo later >&2"),
        wrapped("try", "echo later >&2; end"),
        wrapped("function f", "end; f | cat; echo later >&2"),
        wrapped("limit 1 hour", "end; echo later >&2"),
        "forall x in a; for i in 1 2 3; forany y in 1 2 in order; if $y == 1; false; end; end
         end; end; echo later >&2"
            .to_owned(),
        "while true; try 9 times backoff none; if $attempt == 4; break; end; false; end; end
         echo later >&2"
            .to_owned(),
        "function f; try 9 times backoff none; if $attempt == 4; return 1; end; false; end; end
         x=f(); echo later >&2"
            .to_owned(),
        // A failure around a `try` is still counted after the end of the `try`.
        "try 9 times backoff none
         try 9 times backoff none; if $attempt < 2; cd nowhere; end; end
         if $attempt < 4; false; end
         end; echo later >&2"
            .to_owned(),
    ] {
        let errors = Ftsh::script(&script).options(["-l", "10"]).success().errors();
        in_order(&errors, &["`false` exited", "`false` exited", " (3 times in ", "later\n"]);
        assert_eq!(errors.matches("`false` exited").count(), 2, "{errors}");
    }
}

#[test]
fn a_repeated_failure_is_counted_before_what_ends_the_run() {
    let script = "try 100 times backoff none
 if $attempt < 4; false; end
 echo > begun
 sleep 1000
end";
    let running = Ftsh::script(script).options(["-l", "10", "--summary"]).start();
    running.until("a beginning", |run| run.directory().join("begun").exists());
    running.signal(nix::sys::signal::Signal::SIGTERM);
    let errors = running.wait().killed_by(nix::sys::signal::Signal::SIGTERM).errors();
    in_order(&errors, &["(3 times in ", "ended by signal SIGTERM", "ftsh: summary of"]);
    let times = errors.lines().filter(|line| line.contains(" script.ftsh"));
    let times: Vec<_> = times.map(|line| &line[..26]).filter(|it| it.contains(':')).collect();
    assert!(times.is_sorted(), "{errors}");

    let script = "forall x in 1 2 3; for i in 1 2 3; try; test 1 = 2; catch; end; end; end; false";
    let options = ["-l", "10", "--summary"];
    let errors = Ftsh::script(script).options(options).failure(1).errors();
    let summary = errors.find("ftsh: summary").expect("a summary");
    assert!(!errors[summary..].contains('[') && !errors[summary..].contains(" times "), "{errors}");
}

#[test]
fn lines_of_a_branch_have_its_word() {
    let script = "forall dc in a b
 forall host in h1
  if $dc == b
   sh -c 'exit 7' | cat
  end
 end
end";
    let run = |format: &str| {
        let options = ["-l", "30", "-f", "the.log", "--log-format", format];
        Ftsh::script(script).options(options).failure(7).read("the.log")
    };
    let text = run("text");
    let line = text.lines().find(|line| line.contains("failed: `sh")).expect("a failure");
    assert!(line.contains(" script.ftsh:4 (dc=b, host=h1, task "), "{line}");
    assert!(text.contains(" script.ftsh:3 (dc=a, host=h1) condition: false\n"), "{text}");
    assert!(text.contains(" (dc=a, host=h1) forall: host=h1 succeeded"), "{text}");
    assert!(text.contains(" script.ftsh:3 (dc=a, host=h1) forall: host=h1\n"), "{text}");
    for line in run("json").lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if value["event"] == "condition" {
            let branch = if value["value"] == true { "dc=b, host=h1" } else { "dc=a, host=h1" };
            assert_eq!(value["branch"], branch, "{line}");
            assert!(value["task"].as_u64() > Some(0), "{line}");
        }
    }
    let hedged = Ftsh::script("forany m in x y in order hedge after 1 hour; test $m = y; end");
    let errors = hedged.options(["-l", "10"]).success().errors();
    assert!(errors.contains(" script.ftsh:1 (m=x) failed: `test x = y`"), "{errors}");
    let stage = Ftsh::script("sh -c 'exit 7' | cat").options(["-l", "20", "-f", "the.log"]);
    let log = stage.failure(7).read("the.log");
    assert!(log.contains(" script.ftsh:1 (task "), "{log}");
}
