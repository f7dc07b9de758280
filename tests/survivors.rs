//! What can't be killed: processes of another user. Only root can make such ones, so these tests do
//! nothing for anybody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use nix::unistd::Uid;

use crate::support::run::Finished;
use crate::support::{Ftsh, WAYS};

/// A run as nobody whose command becomes root's after a moment, as with `su`, and ends after three
/// seconds. None where that can't be done.
fn becoming_root(mode: &str, way: &str, command: &str) -> Option<Finished> {
    let run = Ftsh::command(&format!(
        "try for 500 ms or 1 time; {command}; catch; echo went on after $error_kind; end"
    ))
    .options(["-t", "0.2", "-k", mode, "-l", "40", "-f", "the.log"])
    .file("the.log", "")
    .env("FTSH_TEST_FALLBACK", way)
    .unprivileged();
    fs::set_permissions(run.path("the.log"), fs::Permissions::from_mode(0o666)).expect("a log");
    let program = run.path("setpriv");
    if !Uid::effective().is_root() || fs::copy("/usr/bin/setpriv", &program).is_err() {
        return None;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a program");
    // Not where the file system or a container forbids it.
    let works = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(["--reuid", "0", "--clear-groups", "true"])
        .status();
    works.is_ok_and(|status| status.success()).then(|| run.success())
}

const ROOT: &str = "./setpriv --reuid 0 --regid 0 --clear-groups sleep 3";

#[test]
fn weak_mode_names_what_it_leaves() {
    for way in WAYS {
        let Some(finished) = becoming_root("weak", way, ROOT) else { return };
        let log = finished.read("the.log");
        assert_eq!(finished.text(), "went on after timeout\n", "{}", finished.story());
        assert!(finished.elapsed < Duration::from_millis(2500), "{}", finished.story());
        assert!(log.contains(" can't be killed: sleep\n"), "{way}: {log}");
        assert!(log.contains(" is given up with 1 process left\n"), "{way}: {log}");
        assert!(!log.contains("SIGKILL"), "none was sent: {log}");
    }
}

#[test]
fn strong_mode_goes_on_trying() {
    for way in WAYS {
        let Some(finished) = becoming_root("strong", way, ROOT) else { return };
        let log = finished.read("the.log");
        assert_eq!(finished.text(), "went on after timeout\n", "{}", finished.story());
        assert!(finished.elapsed > Duration::from_millis(2900), "{}", finished.story());
        assert_eq!(log.matches(" can't be killed: sleep\n").count(), 1, "{way}: {log}");
        assert!(log.contains(" is empty: 1 process in 2."), "{way}: {log}");
        finished.nothing_left();
    }
}

#[test]
fn a_daemon_that_changed_its_user_is_named_too() {
    for way in ["0", "pidfd"] {
        let daemon = format!("sh -c 'setsid {ROOT} & sleep 60'");
        let Some(finished) = becoming_root("strong", way, &daemon) else { return };
        let log = finished.read("the.log");
        assert_eq!(log.matches(" can't be killed: sleep\n").count(), 1, "{way}: {log}");
        assert!(finished.elapsed > Duration::from_millis(2900), "{}", finished.story());
    }
}
