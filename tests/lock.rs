//! `--lock`, `--lock-wait` and `--splay`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;

use crate::support::Ftsh;
use crate::support::run::Running;

/// Command that reports its start and waits for the file `go`.
const WAITS: &str = "sh -c 'echo ready > ready; until test -e go; do sleep 0.01; done'";

/// A run that holds the lock `lock` in its directory.
fn holder(options: &[&str]) -> Running {
    holder_of(WAITS, options)
}

fn holder_of(script: &str, options: &[&str]) -> Running {
    let run = Ftsh::script(script).options(["--lock=lock"]).options(options).start();
    run.until_lines("ready", 1);
    run
}

fn go(run: &Running) {
    fs::write(run.directory().join("go"), "").expect("a file");
}

/// Another run that needs the lock.
fn rival(run: &Running, script: &str) -> Ftsh {
    let lock = run.directory().join("lock");
    Ftsh::command(script).options(["--lock".as_ref(), lock.as_os_str()])
}

fn in_seconds(seconds: f64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    (now.as_secs_f64() + seconds).to_string()
}

#[test]
fn a_second_run_is_refused_and_names_the_holder() {
    let run = holder(&[]);
    let (pid, script) = (run.pid().to_string(), run.directory().join("script.ftsh"));
    let refused = rival(&run, "echo never").stdout("").failure(75);
    refused.one_line();
    for text in ["not run", &format!("process {pid}"), &script.display().to_string(), "since 20"] {
        refused.expect_stderr(text);
    }
    assert!(!refused.errors().contains("0 ms"), "{}", refused.errors());
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_lock_does_not_reveal_the_text() {
    let script = format!("{WAITS}; echo hunter2");
    let run = Ftsh::command(&script).options(["--lock=lock"]).start();
    run.until_lines("ready", 1);
    let refused = rival(&run, "echo never").stdout("").failure(75);
    refused.one_line().expect_stderr(", `-c`, since");
    let lock = run.directory().join("lock");
    let text = fs::read_to_string(&lock).expect("a lock");
    assert!(text.contains("\nscript -c\n") && !text.contains("hunter2"), "{text}");
    let mode = fs::metadata(lock).expect("a lock").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn the_lock_is_free_after_a_run() {
    let run = holder(&[]);
    let lock = run.directory().join("lock");
    go(&run);
    let finished = run.wait();
    let again = Ftsh::command("echo mine").options(["--lock".as_ref(), lock.as_os_str()]);
    again.stdout("mine\n").success();
    drop(finished);
}

#[test]
fn the_lock_is_free_after_a_kill() {
    for is_supervisor in [true, false] {
        let run = holder(&[]);
        let lock = run.directory().join("lock");
        let shells = run.processes();
        let shells = shells.iter().filter(|process| process.command.contains("--lock=lock"));
        let victim = shells
            .map(|process| process.pid)
            .find(|pid| (*pid == run.pid().as_raw()) == is_supervisor)
            .expect("two processes");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(victim), Signal::SIGKILL)
            .expect("it lives");
        run.until_gone("everything gone");
        let finished = run.wait();
        finished.killed_by(Signal::SIGKILL);
        let again = Ftsh::command("echo mine").options(["--lock".as_ref(), lock.as_os_str()]);
        again.stdout("mine\n").success();
    }
}

#[test]
fn a_run_warns_if_its_lock_was_removed() {
    let script = "rm lock; echo ran";
    for options in [&["--lock=lock"][..], &["--lock=lock", "--cron"]] {
        let run = Ftsh::script(script).options(options).success();
        run.expect_stderr("ftsh: the lock `");
        run.expect_stderr("was removed during the run");
        run.one_line();
    }
    // A second run has a lock of its own, which this run does not hold.
    let run = holder(&[]);
    fs::remove_file(run.directory().join("lock")).expect("a lock");
    rival(&run, "echo beside").stdout("beside\n").stderr("").success();
    go(&run);
    let ended = run.wait();
    ended.expect_code(0);
    ended.expect_stderr("was removed during the run");
}

#[test]
fn the_lock_is_held_until_nothing_is_left() {
    let script = format!("trap '' TERM; {}", &WAITS["sh -c '".len()..WAITS.len() - 1]);
    let script = format!("sh -c \"{}\"", script.replace('"', "\\\""));
    let run = holder_of(&script, &["-f", "log"]);
    run.signal(Signal::SIGTERM);
    run.until_lines("log", 1);
    rival(&run, "echo never").stdout("").failure(75);
    go(&run);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
}

#[test]
fn daemons_don_t_hold_the_lock() {
    let outer = "ftsh --lock=lock -c \"sh -c 'sleep 60 &'\" && ftsh --lock=lock -c 'echo mine'";
    Ftsh::new().file("outer.sh", outer).args(["-c", "sh outer.sh"]).stdout("mine\n").success();
}

#[test]
fn an_exec_keeps_the_lock() {
    let run = holder_of(&format!("exec {WAITS}"), &[]);
    rival(&run, "echo never").stdout("").failure(75);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_run_can_wait_for_the_lock() {
    let run = holder(&[]);
    let waiting = rival(&run, "echo mine").options(["--lock-wait", "1 minute", "-l20", "-flog"]);
    let waiting = waiting.start();
    waiting.until_lines("log", 1);
    go(&run);
    let finished = waiting.wait();
    finished.expect_code(0);
    finished.expect_stdout(b"mine\n");
    assert!(finished.read("log").contains("waiting for up to 1 min: the lock"));
    run.wait().expect_code(0);
}

#[test]
fn waiting_ends_in_time() {
    let run = holder(&[]);
    let late = rival(&run, "echo never").options(["--lock-wait", "20ms"]).stdout("");
    late.stderr("still after").failure(75);
    let deadline = in_seconds(0.1);
    let late = rival(&run, "echo never").options(["--lock-wait", "1h"]).stdout("");
    late.env("FTSH_DEADLINE", deadline).failure(124);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn signals_end_the_waiting() {
    let run = holder(&[]);
    let waiting = rival(&run, "echo never").options(["--lock-wait", "1h", "-l20", "-flog"]);
    let waiting = waiting.start();
    waiting.until_lines("log", 1);
    waiting.signal(Signal::SIGTERM);
    waiting.wait().killed_by(Signal::SIGTERM);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_refusal_is_shown_under_cron() {
    let run = holder(&[]);
    rival(&run, "echo never").options(["--cron"]).stderr("not run: the lock").failure(75);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_run_may_be_skipped_in_silence() {
    let run = holder(&[]);
    let skipping = |options: &[&str]| {
        let finished = rival(&run, "echo never").options(options).stdout("").success();
        assert_eq!(finished.errors(), "", "{options:?}");
        finished
    };
    skipping(&["--lock-busy", "skip"]);
    skipping(&["--lock-busy", "skip", "--cron"]);
    skipping(&["--lock-busy", "skip", "--lock-wait", "20ms"]);
    let log = skipping(&["--lock-busy", "skip", "-l20", "-flog"]).read("log");
    assert!(log.contains("script.ftsh not run: the lock") || log.contains("-c not run"), "{log}");
    // The option takes precedence, and errors unrelated to other runs are still reported.
    let refused = rival(&run, "echo never").env("FTSH_LOCK_BUSY", "skip");
    refused.options(["--lock-busy=fail"]).stderr("not run: the lock").failure(75);
    let late = rival(&run, "echo never").options(["--lock-wait=1h", "--lock-busy=skip"]).stdout("");
    late.env("FTSH_DEADLINE", in_seconds(0.1)).stderr("; the deadline has passed").failure(124);
    // A start that takes longer than the deadline proposes no wait.
    let late = rival(&run, "echo never").options(["--lock-wait=1h"]).stdout("");
    let ended = late.env("FTSH_DEADLINE", in_seconds(-1.0)).failure(124);
    assert!(!ended.errors().contains("--lock-wait"), "{}", ended.errors());
    go(&run);
    run.wait().expect_code(0);
    Ftsh::command("echo never")
        .options(["--lock-busy=skip"])
        .refused(&["needs `--lock` or `--journal`"]);
}

#[test]
fn a_run_may_replace_the_holder() {
    let script = format!("try; {WAITS}; finally; echo cleaned > cleaned; end");
    let run = holder_of(&script, &[]);
    let cleaned = run.directory().join("cleaned");
    let next = rival(&run, &format!("cat {}", cleaned.display()));
    next.options(["--lock-busy=replace"]).stdout("cleaned\n").success();
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
}

#[test]
fn a_stopped_holder_is_replaced() {
    let run = holder(&[]);
    run.signal(Signal::SIGSTOP);
    rival(&run, "echo mine").env("FTSH_LOCK_BUSY", "replace").stdout("mine\n").success();
    run.wait().killed_by(Signal::SIGTERM);
}

#[test]
fn of_two_replacing_runs_one_remains() {
    let run = holder(&[]);
    let started = run.directory().join("started");
    let script = format!("echo x >> {}; {WAITS}", started.display());
    let rivals = [0, 1].map(|_| rival(&run, &script).options(["--lock-busy=replace"]).start());
    let replaced = run.wait();
    replaced.killed_by(Signal::SIGTERM);
    let [first, second] = rivals;
    // One of them ends the other one, before or after it has begun.
    let ended = |run: &Running| !std::path::Path::new(&format!("/proc/{}", run.pid())).exists();
    let is_zombie = |run: &Running| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", run.pid())).unwrap_or_default();
        stat.contains(") Z ")
    };
    let (gone, left) = loop {
        match [&first, &second].map(|run| ended(run) || is_zombie(run)) {
            [true, _] => break (first, second),
            [_, true] => break (second, first),
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    gone.wait().killed_by(Signal::SIGTERM);
    left.until_lines("ready", 1);
    fs::write(left.directory().join("go"), "").expect("a file");
    left.wait().expect_code(0);
}

#[test]
fn only_runs_of_ftsh_are_replaced() {
    let script = "flock lock ftsh --lock=lock --lock-busy=replace -c 'echo never'";
    Ftsh::command(script).stderr("it is not replaced").failure(75);
    // The process in the file does not hold the lock.
    let run = holder(&[]);
    let lock = run.directory().join("lock");
    let text = fs::read_to_string(&lock).expect("a lock");
    let other = std::process::id().to_string();
    fs::write(&lock, text.replace(&format!("pid {}", run.pid()), &format!("pid {other}")))
        .expect("a lock");
    let refused = rival(&run, "echo never").options(["--lock-busy=replace"]).stdout("");
    refused.stderr("it is not replaced: its process is not ftsh").failure(75);
    // A deadline before the end of the longest wait is not over yet.
    fs::write(&lock, text.replace("\nhost ", "\nhost un")).expect("a lock");
    let refused = rival(&run, "echo never").options(["--lock-busy=replace"]).stdout("");
    let refused = refused.env("FTSH_DEADLINE", in_seconds(40.0));
    refused.stderr("it is not replaced: it is not a run of ftsh on this machine [").failure(75);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_run_does_not_replace_a_run_around_it() {
    let inner = "ftsh --lock=lock --lock-busy=replace -c 'echo never'";
    let run = Ftsh::command(inner).options(["--lock=lock"]);
    run.stderr("it is not replaced: this run is a part of it").failure(75);
}

#[test]
fn a_holder_that_stays_is_awaited_for_a_time() {
    let script = format!("trap '' TERM; {}", &WAITS["sh -c '".len()..WAITS.len() - 1]);
    let run = holder_of(&format!("sh -c \"{}\"", script.replace('"', "\\\"")), &[]);
    let late = rival(&run, "echo never").options(["--lock-busy=replace", "--lock-wait=100ms"]);
    late.stdout("").stderr("still after").failure(75);
    go(&run);
    run.wait().killed_by(Signal::SIGTERM);
    Ftsh::command("echo never")
        .options(["--journal=j", "--lock-busy=replace"])
        .refused(&["`--lock-busy replace` needs `--lock`"]);
}

#[test]
fn a_run_without_time_replaces_nothing() {
    let run = holder(&[]);
    let late = || rival(&run, "echo never").options(["--lock-busy=replace"]).stdout("");
    let reason = "it is not replaced: no time is left to wait for its end";
    late().options(["--lock-wait=0"]).stderr(reason).failure(75);
    late().env("FTSH_DEADLINE", in_seconds(-1.0)).stderr(reason).failure(124);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn another_program_s_lock_is_respected() {
    let script = "flock lock ftsh --lock=lock -c 'echo never'";
    Ftsh::command(script).stderr("is held by another program").failure(75);
}

#[test]
fn a_script_has_a_lock_of_its_own() {
    let run = Ftsh::script(WAITS).options(["--lock"]).env("FTSH_LOCK_DIR", "locks").start();
    run.until_lines("ready", 1);
    let directory = run.directory();
    symlink("script.ftsh", directory.join("linked.ftsh")).expect("a link");
    let same = |script: &str| {
        Ftsh::new()
            .env("FTSH_LOCK_DIR", directory.join("locks"))
            .arg("--lock")
            .arg(directory.join(script))
            .arg("argument")
    };
    same("script.ftsh").stderr("is held by process").failure(75);
    same("linked.ftsh").stderr("is held by process").failure(75);
    fs::write(directory.join("other.ftsh"), "echo $1").expect("a script");
    same("other.ftsh").stdout("argument\n").success();
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn locks_of_scripts_are_out_of_others_reach() {
    let refused = |prepare: &dyn Fn(&Ftsh), message: &str| {
        let run = Ftsh::script("echo never").options(["--lock"]).env("FTSH_LOCK_DIR", "locks");
        prepare(&run);
        run.refused(&[message, "--lock=FILE"]).one_line();
    };
    refused(
        &|run| {
            fs::create_dir(run.path("locks")).expect("a directory");
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(run.path("locks"), open).expect("permissions");
        },
        "other users can write to it",
    );
    refused(&|run| symlink(".", run.path("locks")).expect("a link"), "it is not a directory");
    refused(&|run| fs::write(run.path("locks"), "").expect("a file"), "it is not a directory");
}

#[test]
fn other_files_are_not_overwritten_by_a_lock() {
    let script = "mkdir directory; mkfifo fifo; ln -s nowhere link; printf precious > data
        for file in directory fifo link data nosuch/lock
            try
                ftsh --lock=$file -c 'echo never'
            catch
                # It says why.
                echo $error_code
            end
        end
        cat data";
    let finished = Ftsh::script(script).stdout("2\n2\n2\n2\n2\nprecious").success();
    for text in [
        "directory` as a lock: it is a directory",
        "fifo` as a lock: it is not a regular file",
        "link` as a lock: it is a symbolic link",
        "data` as a lock: it holds other data",
        "nosuch/lock` as a lock: no such file",
    ] {
        finished.expect_stderr(text);
    }
}

#[test]
fn a_lock_is_no_file_of_output() {
    for option in ["-fx", "--results=./x", "--otlp=x"] {
        let run = Ftsh::command("echo never").options(["--lock=x", option]);
        run.refused(&["`--lock`", "the same file"]);
    }
}

#[test]
fn the_word_after_lock_is_its_file_or_the_script() {
    let run = |words: &[&str]| {
        Ftsh::new()
            .file("job.ftsh", "echo job $*")
            .file("job", "#!/usr/bin/ftsh\necho named $*")
            .file("data", "precious")
            .env("FTSH_LOCK_DIR", "locks")
            .args(words)
    };
    // The word is the script, which has a lock of its own.
    run(&["--lock", "job.ftsh"]).stdout("job\n").success();
    run(&["--lock", "job.ftsh", "a", "b"]).stdout("job a b\n").success();
    run(&["--lock", "job", "a"]).stdout("named a\n").success();
    run(&["--lock", "--", "job", "a"]).stdout("named a\n").success();
    run(&["--lock", "--cron", "job.ftsh"]).stdout("").success();
    run(&["--lock", "data"]).stderr("precious").failure(127);
    run(&["--lock", "nosuch"]).refused(&["can't read the script `nosuch`"]);
    run(&["--lock", "missing.ftsh", "a"]).refused(&["can't read the script `missing.ftsh`"]);
    // The word is the lock.
    run(&["--lock", "new", "job", "a"]).stdout("named a\n").success();
    run(&["--lock=new", "job", "a"]).stdout("named a\n").success();
    run(&["--lock", "new", "-c", "echo text"]).stdout("text\n").success();
    run(&["-c", "echo text $0", "--lock", "new", "name"]).stdout("text name\n").success();
    run(&["--lock", "new", "--cron", "job"]).stdout("").success();
    run(&["--lock", "new", "--lock", "newer", "job"]).stdout("named\n").success();
    // In doubt.
    run(&["--lock", "data", "job"]).refused(&["is this the lock or the script?"]).one_line();
    // Neither.
    for words in [&["--lock", "-c", "echo text"][..], &["--lock"], &["--lock", "-"]] {
        run(words).refused(&["--lock=FILE"]).one_line();
    }
    run(&["--lock=", "job"]).refused(&["lacks its file"]).one_line();
    run(&["--lock-wait", "1s", "job"]).refused(&["needs `--lock`"]).one_line();
}

#[test]
fn the_variable_of_a_lock_is_no_switch() {
    for value in ["1", "yes", "true"] {
        let refused = Ftsh::script("touch ran").env("FTSH_LOCK", value).failure(2);
        let expected = format!("`FTSH_LOCK` can't be `{value}`: expected the file of the lock");
        refused.expect_stderr(&expected);
        assert!(!refused.directory.path().join("ran").exists());
    }
    for value in ["0", ""] {
        let finished = Ftsh::script("ls").env("FTSH_LOCK", value).stdout("script.ftsh\n").success();
        assert!(finished.errors().is_empty(), "{}", finished.errors());
    }
    Ftsh::script("ls").env("FTSH_LOCK", "./1").stdout("1\nscript.ftsh\n").success();
}

#[test]
fn variables_name_a_lock_but_not_for_others() {
    let script = "ftsh -c 'echo inner'
        sh -c 'echo \"<$FTSH_LOCK$FTSH_LOCK_WAIT$FTSH_LOCK_BUSY$FTSH_SPLAY>\"'";
    let run = Ftsh::script(script)
        .env("FTSH_LOCK", "lock")
        .env("FTSH_LOCK_WAIT", "5 minutes")
        .env("FTSH_LOCK_BUSY", "skip")
        .env("FTSH_SPLAY", "1ms");
    let finished = run.stdout("inner\n<>\n").success();
    assert!(finished.read("lock").contains("script.ftsh"));
}

#[test]
fn a_splay_is_random_repeatable_and_logged() {
    let splay = |seed: &str| {
        let options = ["--splay", "40ms", "--seed", seed, "-l", "20", "-f", "log"];
        let log = Ftsh::command("success").options(options).success().read("log");
        let line = log.lines().next().unwrap_or_default().to_owned();
        line.split(" waiting for up to ").nth(1).unwrap_or_default().to_owned()
    };
    assert!(splay("1").ends_with(" ms: splay"), "{}", splay("1"));
    assert_eq!(splay("1"), splay("1"));
    assert!((2..6).any(|seed| splay(&seed.to_string()) != splay("1")));
}

#[test]
fn a_splay_holds_no_lock_and_ends_by_signals() {
    let options = ["--splay", "10 days", "--seed", "1", "--lock=lock", "-l20", "-flog"];
    let run = Ftsh::script("echo never").options(options).start();
    run.until_lines("log", 1);
    rival(&run, "echo mine").stdout("mine\n").success();
    run.signal(Signal::SIGTERM);
    run.wait().killed_by(Signal::SIGTERM);
}

#[test]
fn a_splay_ends_with_the_deadline() {
    let deadline = in_seconds(-1.0);
    let run = Ftsh::command("sleep 1 hour").options(["--splay", "10 days"]);
    run.env("FTSH_DEADLINE", deadline).failure(124);
}

#[test]
fn a_wait_uses_up_the_time_of_a_deadline() {
    let run = holder(&[]);
    let waiting = rival(&run, "try; sleep 1 hour; end").options(["--lock-wait", "1h"]);
    let waiting = waiting.options(["-l20", "-flog"]).env("FTSH_DEADLINE", in_seconds(2.0));
    let waiting = waiting.start();
    waiting.until_lines("log", 1);
    go(&run);
    let finished = waiting.wait();
    finished.expect_code(124);
    assert!(finished.elapsed.as_secs_f64() < 10.0, "{}", finished.story());
    run.wait().expect_code(0);
}

#[test]
fn durations_are_those_of_the_language() {
    for (value, message) in [
        ("soon", "expected a duration, like `90s` or `5 minutes`"),
        ("5 minutse", "did you mean `minutes`?"),
        ("-1s", "expected a duration"),
        ("", "expected a duration"),
    ] {
        for option in ["--splay", "--lock-wait"] {
            let run = Ftsh::command("echo never").options([option, value, "--lock=lock"]);
            run.refused(&[option, message]).one_line();
        }
    }
}

#[test]
fn locks_of_ended_runs_are_removed() {
    let run = Ftsh::script(WAITS).options(["--lock"]).env("FTSH_LOCK_DIR", "locks").start();
    run.until_lines("ready", 1);
    let locks = run.directory().join("locks");
    let count = || fs::read_dir(&locks).expect("a directory").count();
    // One ends by itself, and one is killed with its supervisor.
    let other = |name: &str, text: &str| {
        let path = run.directory().join(name);
        fs::write(&path, text).expect("a script");
        Ftsh::new().env("FTSH_LOCK_DIR", &locks).arg("--lock").arg(path)
    };
    other("ends.ftsh", "true").success();
    assert_eq!(count(), 2);
    let killed = other("killed.ftsh", "kill -KILL $$ $PPID; sleep 60").start();
    killed.until_gone("killed");
    drop(killed.wait());
    // The lock in use and the lock of the last run are left.
    other("last.ftsh", "true").success();
    assert_eq!(count(), 2);
    other("script.ftsh", "true").stderr("is held by process").failure(75);
    go(&run);
    run.wait().expect_code(0);
}

#[test]
fn a_start_right_after_a_kill_waits_for_the_rest_of_the_holder() {
    // The interpreter outlives its supervisor for the time in which the command ignores SIGTERM.
    let command = "sh -c 'trap \"\" TERM; echo ready > ready; sleep 60'";
    let run = Ftsh::command(command).options(["--lock=lock", "-t", "0.2"]).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGKILL);
    // The signal is on its way when `kill` returns.
    run.eventually("the end of the supervisor", Running::has_ended);
    rival(&run, "echo mine").stdout("mine\n").stderr("").success();
    run.until_gone("everything gone");
    drop(run.wait());
}
