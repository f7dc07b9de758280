//! What is left when the shell itself is killed, with and without pidfds and subreapers.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;

/// Twenty daemons that don't obey.
const DAEMONS: &str = "
    forall i in 1 .to. 20
        sh -c 'trap \"\" TERM; setsid sh -c \"echo r >> ready; sleep 60; :\" & sleep 60; :'
    end";

/// The issue of the whole project: everything is gone so soon.
const SOON: Duration = Duration::from_millis(200);

/// How it goes on a machine where five builds run.
const PATIENCE: u32 = 10;

fn killing(which: impl Fn(&[i32]) -> i32) {
    for fallback in ["0", "pidfd", "1", "ps"] {
        let run = Ftsh::command(DAEMONS).env("FTSH_TEST_FALLBACK", fallback).start();
        run.until_lines("ready", 20);
        let is_shell = |command: &str| command.contains("ftsh") && command.contains("forall");
        let processes = run.processes();
        let shells = processes.iter().filter(|process| is_shell(&process.command));
        let mut shells: Vec<i32> = shells.map(|process| process.pid).collect();
        shells.sort_unstable();
        let start = Instant::now();
        kill(Pid::from_raw(which(&shells)), Signal::SIGKILL).expect("it lives");
        run.until("everything gone", |run| run.processes().is_empty());
        let elapsed = start.elapsed();
        eprintln!("fallback {fallback}: gone after {elapsed:?}");
        assert!(elapsed < SOON * PATIENCE, "fallback {fallback}: gone only after {elapsed:?}");
        run.wait().killed_by(Signal::SIGKILL).nothing_left();
    }
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    killing(|shells| shells[0]);
}

#[test]
fn nothing_outlives_a_killed_interpreter() {
    killing(|shells| shells[shells.len() - 1]);
}

/// Waits until a supervisor, which begins in the interpreter's memory, has its own.
const INDEPENDENT: &str = "until grep -qa FTSH_SUPERVISOR= /proc/$1/environ; do :; done";

#[test]
fn a_supervisor_looks_the_same_with_a_memory_of_its_own() {
    Ftsh::script("sh look $$ > before; sh wait $$; sh look $$ > after; cmp before after")
        .file("look", "tr '\\0' _ < /proc/$1/cmdline; cat /proc/$1/comm; ls /proc/$1/fd")
        .file("wait", INDEPENDENT)
        .success();
}

#[test]
fn what_replaces_the_shell_finds_what_the_shell_found() {
    let look =
        "grep -E '^Sig(Blk|Ign|Cgt|Pnd)' /proc/self/status; ls /proc/self/fd; env | grep FTSH_SUP";
    let run = |script| Ftsh::script(script).file("look", look).file("wait", INDEPENDENT).run();
    let (early, late) = (run("exec sh look"), run("sh wait $$; exec sh look"));
    assert!(early.text().contains("SigBlk:"));
    assert_eq!(early.text(), late.text());
}
