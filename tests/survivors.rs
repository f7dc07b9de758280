//! Survivors of SIGKILL: processes of another user. The tests need root to create such processes,
//! and do nothing otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Uid;

use crate::support::run::{Finished, Running};
use crate::support::skipped::skipped;
use crate::support::{Ftsh, WAYS};

/// Creates a run, as user nobody, of a script that starts `./setpriv`. Like `su`, the program
/// changes a process to root. None where the system does not permit the change.
fn becoming_root(mode: &str, way: &str, script: &str) -> Option<Ftsh> {
    let run = Ftsh::command(script)
        .options(["-t", "0.2", "-k", mode, "-l", "40", "-f", "the.log"])
        .file("the.log", "")
        .in_way(way)
        .unprivileged();
    fs::set_permissions(run.path("the.log"), fs::Permissions::from_mode(0o666)).expect("a log");
    let program = run.path("setpriv");
    // Copied by another process: see `Ftsh::program`.
    let copied = || Command::new("cp").arg("/usr/bin/setpriv").arg(&program).status();
    if !Uid::effective().is_root() || !copied().is_ok_and(|it| it.success()) {
        skipped("root and setpriv");
        return None;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a program");
    // Refused by some file systems and containers.
    let works = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["--reuid", "0", "--clear-groups", "true"])
        .status();
    if !works.is_ok_and(|status| status.success()) {
        skipped("programs with the set-uid bit");
        return None;
    }
    Some(run)
}

/// Runs a command that is canceled after a moment.
fn canceled(mode: &str, way: &str, command: &str) -> Option<Finished> {
    let script =
        format!("try for 500 ms or 1 time; {command}; catch; echo went on after $error_kind; end");
    Some(becoming_root(mode, way, &script)?.success())
}

/// Runs a check in each of these ways at once, since most of the time is spent waiting.
fn in_each(ways: &[&str], check: impl Fn(&str) + Sync) {
    let test = thread::current().name().map(str::to_owned);
    thread::scope(|scope| {
        for way in ways {
            let named = thread::Builder::new().name(test.clone().unwrap_or_default());
            named.spawn_scoped(scope, || check(way)).expect("a thread");
        }
    });
}

const ROOT: &str = "./setpriv --reuid 0 --regid 0 --clear-groups sleep 3";

#[test]
fn weak_mode_reports_survivors() {
    in_each(&WAYS, |way| {
        let Some(finished) = canceled("weak", way, ROOT) else { return };
        let log = finished.read("the.log");
        assert_eq!(finished.text(), "went on after timeout\n", "{}", finished.story());
        assert!(finished.within(Duration::from_millis(2500)), "{}", finished.story());
        assert!(log.contains(" can't be killed: sleep\n"), "{way}: {log}");
        assert!(log.contains(" is given up with 1 process left\n"), "{way}: {log}");
        assert!(!log.contains("SIGKILL"), "none was sent: {log}");
    });
}

#[test]
fn strong_mode_keeps_trying() {
    in_each(&WAYS, |way| {
        let Some(finished) = canceled("strong", way, ROOT) else { return };
        let log = finished.read("the.log");
        assert_eq!(finished.text(), "went on after timeout\n", "{}", finished.story());
        assert!(finished.elapsed > Duration::from_millis(2900), "{}", finished.story());
        assert_eq!(log.matches(" can't be killed: sleep\n").count(), 1, "{way}: {log}");
        assert!(log.contains(" is empty: 1 process in "), "{way}: {log}");
        finished.nothing_left();
    });
}

#[test]
fn a_daemon_of_another_user_is_reported_too() {
    in_each(&["0", "pidfd"], |way| {
        let daemon = format!("sh -c 'setsid {ROOT} & sleep 60'");
        let Some(finished) = canceled("strong", way, &daemon) else { return };
        let log = finished.read("the.log");
        assert_eq!(log.matches(" can't be killed: sleep\n").count(), 1, "{way}: {log}");
        assert!(finished.elapsed > Duration::from_millis(2900), "{}", finished.story());
    });
}

#[test]
fn a_signal_makes_strong_mode_give_up() {
    in_each(&WAYS, |way| {
        let script = ROOT.replace("sleep 3", "sleep 9");
        let Some(run) = becoming_root("strong", way, &script) else { return };
        let run = run.start();
        let works = |run: &Running| run.processes().iter().any(|it| it.command == "sleep 9");
        run.until("root's process", works);
        let signaled = Instant::now();
        run.signal(Signal::SIGTERM);
        let finished = run.wait();
        finished.killed_by(Signal::SIGTERM);
        assert!(signaled.elapsed() < Duration::from_secs(4), "{way}: {}", finished.story());
        let log = finished.read("the.log");
        assert!(log.contains(" can't be killed: sleep\n"), "{way}: {log}");
    });
}

#[test]
fn an_earlier_daemon_of_another_user_delays_nothing() {
    in_each(&["0", "pidfd"], |way| {
        let daemon = ROOT.replace("sleep 3", "sh daemon");
        let script = format!(
            "sh -c 'setsid {daemon} & read x < ready'
             try for 100 ms or 1 time; sleep 60; catch; echo went on; end"
        );
        let Some(run) = becoming_root("strong", way, &script) else { return };
        let run = run.file("daemon", "echo r > ready; exec sleep 9").fifo("ready");
        let finished = run.stdout("went on\n").success();
        assert!(finished.elapsed < Duration::from_secs(5), "{way}: {}", finished.story());
    });
}

#[test]
fn a_daemon_that_cannot_be_found_is_reported_with_failures() {
    let text = "try 2 times every 1 ms; sh -c 'exit 3'; end";
    let run = || Ftsh::command(text).options(["-l", "10"]);
    let count = |run: Ftsh| run.failure(3).errors().matches("without /proc, daemons").count();
    assert_eq!(count(run().in_way("1")), 0);
    let hides = ["-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];
    let works = Command::new("unshare").args(hides).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return skipped("a right to mount");
    }
    assert_eq!(count(run().through(["unshare"].iter().chain(&hides))), 1);
}
