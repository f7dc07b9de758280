//! `--cron-after`: reports of repeated failures only. Priorities of lines for systemd's journal.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::run::Finished;

/// A script that fails while the file `bad` exists.
const SCRIPT: &str = "echo out; if sh -c 'test -e bad'; failure why; end";

fn first() -> Ftsh {
    Ftsh::script(SCRIPT).file("bad", "").options(["--lock=lock", "--cron-after", "3"])
}

fn again(before: Finished) -> Ftsh {
    Ftsh::after(before).args(["--lock=lock", "--cron-after", "3", "script.ftsh"])
}

#[test]
fn repeated_failures_are_shown() {
    let mut run = first().failure(1);
    for number in 1..=2 {
        assert_eq!(run.errors(), "", "failure {number}");
        run = again(run).failure(1);
    }
    for _ in 3..=4 {
        let errors = run.errors();
        assert!(errors.starts_with("ftsh: script.ftsh:1: why\n"), "{errors}");
        assert!(errors.ends_with("ended with status 1; it printed:\nout\n"), "{errors}");
        run = again(run).failure(1);
    }
    fs::remove_file(run.directory.path().join("bad")).expect("a file");
    let run = again(run).success();
    assert_eq!(run.errors(), "ftsh: script.ftsh: works again after 5 failed runs\n");
    let run = again(run).success();
    assert_eq!(run.errors(), "");
    // A few failures that were not shown.
    fs::write(run.directory.path().join("bad"), "").expect("a file");
    let run = again(run).failure(1);
    assert_eq!(run.errors(), "");
    fs::remove_file(run.directory.path().join("bad")).expect("a file");
    let run = again(run).success();
    assert_eq!(run.errors(), "");
    assert!(!run.directory.path().join("lock.failures").exists());
}

#[test]
fn kills_count_and_refusals_do_not() {
    let stays = "sh -c 'echo ready >> ready; exec sleep 60'";
    let run = Ftsh::script(stays).options(["--cron-after", "2"]).env("FTSH_LOCK_DIR", "locks");
    let run = run.file("locks/README", "").start();
    run.until_lines("ready", 1);
    let interpreter = run.interpreter().expect("an interpreter");
    kill(run.pid(), Signal::SIGKILL).expect("it lives");
    let _ = kill(interpreter, Signal::SIGKILL);
    // Nobody is left to end the command.
    for process in run.processes() {
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
    run.until_gone("after SIGKILL");
    let finished = run.leave();
    assert_eq!(finished.errors(), "");
    let next =
        |before| Ftsh::after(before).env("FTSH_LOCK_DIR", "locks").env("FTSH_CRON_AFTER", "2");
    // Mistakes are always shown, and do not count.
    let finished = next(finished).args(["--splay", "soon", "script.ftsh"]).failure(2);
    assert!(finished.errors().contains("`--splay`"));
    fs::write(finished.directory.path().join("script.ftsh"), "failure why").expect("a script");
    let finished = next(finished).arg("script.ftsh").failure(1);
    assert!(finished.errors().starts_with("ftsh: script.ftsh:1: why\n"), "{}", finished.errors());
}

#[test]
fn a_count_that_cannot_be_kept_hides_nothing() {
    let run = Ftsh::script("failure why").file("lock.failures", "precious\n");
    let finished = run.options(["--lock=lock", "--cron-after=5", "-f", "log"]).failure(1);
    assert!(finished.errors().starts_with("ftsh: script.ftsh:1: why\n"), "{}", finished.errors());
    assert_eq!(finished.read("lock.failures"), "precious\n");
    assert!(finished.read("log").contains("the file has other content"));
    // A directory that other users can write to.
    let run = Ftsh::script("failure why").options(["--cron-after=5", "-f", "log"]);
    let run = run.file("locks/README", "");
    fs::set_permissions(run.path("locks"), fs::Permissions::from_mode(0o777)).expect("a directory");
    let finished = run.env("FTSH_LOCK_DIR", "locks").failure(1);
    assert!(finished.errors().starts_with("ftsh: script.ftsh:1: why\n"), "{}", finished.errors());
    let log = finished.read("log");
    assert!(log.contains("can't count failures: can't put a lock into"), "{log}");
    Ftsh::new().args(["--cron-after=5", "nosuch.ftsh"]).refused(&["can't read the script"]);
    Ftsh::command("true")
        .options(["--cron-after", "2"])
        .refused(&["`--cron-after` needs a script"]);
    Ftsh::script("true").options(["--cron-after", "0"]).refused(&["`--cron-after` can't be `0`"]);
}

/// A shell whose standard error seems to be systemd's journal.
fn in_journal(run: Ftsh) -> Ftsh {
    run.through(["sh", "-c", "JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec \"$@\"", "sh"])
}

#[test]
fn lines_for_the_journal_have_priorities() {
    let text = "try 2 times backoff none; x=1; sh -c 'echo of a command >&2; exit 3'; end";
    let priorities = |finished: Finished| {
        let errors = finished.errors();
        println!("{errors}");
        errors.lines().map(|line| line[..3].to_owned()).collect::<Vec<_>>()
    };
    let finished = in_journal(Ftsh::script(text).options(["-l", "10"])).failure(3);
    assert_eq!(priorities(finished), ["of ", "<4>", "of ", "<4>", "<3>", "<3>", "<3>"]);
    let finished = in_journal(Ftsh::command("x=1; false").options(["-l", "30"])).failure(1);
    assert_eq!(priorities(finished), ["<5>", "<5>", "<3>", "<3>"]);
    let finished = in_journal(Ftsh::command("sh -c 'echo out'; failure why").options(["--cron"]));
    assert_eq!(priorities(finished.failure(1)), ["<3>", "<3>", "<3>", "out"]);
    let text = "sh -c 'echo out'\nsh -c 'echo why; exit 1'";
    let finished = in_journal(Ftsh::script(text).options(["--cron"])).failure(1);
    assert_eq!(priorities(finished), ["<3>", "<3>", "<3>", "<3>", "out", "why"]);
    // Another file, such as one of a command.
    let finished = Ftsh::command("false").env("JOURNAL_STREAM", "1:2").failure(1);
    assert!(finished.errors().starts_with("ftsh: "), "{}", finished.errors());
    let finished = in_journal(Ftsh::command("false").options(["-f", "log"])).failure(1);
    assert!(finished.read("log").starts_with('2'));
}
