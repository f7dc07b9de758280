//! `--end-with-caller`: the run ends when the process that started it is gone.

use std::process::Command;

use crate::support::Ftsh;
use crate::support::skipped::skipped;

/// Waits to be killed, with a process of `keep` beside.
const INNER: &str = "
    try
        keep sh -c 'exec > /dev/null 2>&1; setsid sleep 60 & echo $! > kept'
        sh -c 'echo > ready; exec sleep 60'
    finally
        echo $error_kind $error_code > said
    end
";

/// Kills the process `$caller` as soon as the inner run waits, and shows what the inner run says.
const KILLS: &str = "
    until test -e ready; do sleep 0.01; done
    kill -9 $caller
    until test -s said; do sleep 0.01; done
    while test -n \"$(tr -d '\\0' < /proc/$(cat kept)/cmdline)\"; do sleep 0.01; done 2> /dev/null
    cat said
";

/// Runs a test that starts a caller in the background.
fn killed(start: &str) -> Ftsh {
    let script = "sh outer.sh";
    let outer = format!("{start}\ncaller=$!\n{KILLS}");
    Ftsh::command(script).file("outer.sh", outer).file("inner.ftsh", INNER)
}

fn is_missing(program: &str) -> bool {
    let found = Command::new(program).arg("-V").output().is_ok();
    if !found {
        skipped(program);
    }
    !found
}

#[test]
fn a_run_ends_with_a_killed_runner() {
    // A shell that runs another command afterwards stays the parent.
    let runner = "ftsh --end-with-caller inner.ftsh\necho never\n";
    killed("sh runner.sh &").file("runner.sh", runner).stdout("canceled 143\n").success();
    let runner = "FTSH_END_WITH_CALLER=1 ftsh inner.ftsh\necho never\n";
    killed("sh runner.sh &").file("runner.sh", runner).stdout("canceled 143\n").success();
    // The program after `exec` ends as well.
    let runner = "ftsh --end-with-caller -c 'exec ftsh inner.ftsh'\necho never\n";
    killed("sh runner.sh &").file("runner.sh", runner).stdout("canceled 143\n").success();
}

/// The run has not begun: it waits for its splay, or for a lock.
#[test]
fn a_wait_ends_with_a_killed_runner() {
    for (hold, options) in
        [("", "--splay 1h"), ("flock lock sleep 60 & held=$!", "--lock=lock --lock-wait 1h")]
    {
        let runner =
            format!("ftsh -l 30 -f the.log --end-with-caller {options} -c 'echo never'\n:\n");
        let outer = format!(
            "{hold}
            until [ -z \"$held\" ] || ! flock -n lock true; do sleep 0.01; done
            mkfifo pipe
            sh runner.sh > pipe &
            caller=$!
            exec 3< pipe
            until test -s the.log; do sleep 0.01; done
            kill -9 $caller
            cat <&3
            [ -z \"$held\" ] || pkill -P $held
            echo gone"
        );
        let run = Ftsh::command("sh outer.sh").file("outer.sh", outer);
        run.file("runner.sh", runner).file("lock", "").stdout("gone\n").success();
    }
}

#[test]
fn a_run_ends_with_a_killed_make() {
    if is_missing("make") {
        return;
    }
    let rules = "all:\n\tftsh --end-with-caller inner.ftsh\n";
    killed("make -s > /dev/null 2>&1 &").file("Makefile", rules).stdout("canceled 143\n").success();
}

#[test]
fn a_run_ends_with_a_killed_tmux() {
    if is_missing("tmux") {
        return;
    }
    let start = "tmux -S socket -f /dev/null new-session -d 'ftsh --end-with-caller inner.ftsh; :'
        caller=$(tmux -S socket display-message -p '#{pid}')";
    let outer = format!("{start}\n{KILLS}");
    let run = Ftsh::command("sh outer.sh").file("outer.sh", outer).file("inner.ftsh", INNER);
    // The terminal is gone too, whose SIGHUP may come first.
    run.success();
}

#[test]
fn a_caller_that_lives_changes_nothing() {
    // As from cron: a shell in a session without a terminal starts the line and waits.
    let line = "setsid -w sh -c 'ftsh --end-with-caller --cron -c \"sh -c true; exit 3\"; echo $?'";
    Ftsh::command(line).stdout("3\n").success();
    Ftsh::command("ftsh --end-with-caller -c 'echo on'").stdout("on\n").success();
}

#[test]
fn a_service_has_no_caller() {
    let unshare = ["-rpf", "--mount-proc", "--kill-child"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|it| it.success()) {
        return skipped("namespaces of processes");
    }
    // Process 1 of the namespace starts the shell.
    let service = "sh -c 'ftsh --end-with-caller -c \"echo never\"; echo $?'";
    let script = format!("setsid -w unshare {} {service}", unshare.join(" "));
    let finished = Ftsh::command(&script).stdout("2\n").success();
    assert!(finished.errors().contains("has no caller to watch"), "{}", finished.errors());
}
