//! What is left when the shell itself is killed, in every way of finding processes.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::run::Running;
use crate::support::{Ftsh, WAYS};

/// Twenty daemons that don't obey.
const DAEMONS: &str = "
    forall i in 1 .to. 20
        sh -c 'trap \"\" TERM; setsid sh -c \"echo r >> ready; sleep 60; :\" & sleep 60; :'
    end";

/// Everything is gone so soon.
const SOON: Duration = Duration::from_millis(200);

/// On a machine that is busy with something else the best of so many runs counts.
const RUNS: usize = 5;

/// How long any of them may take.
const PATIENCE: u32 = 10;

/// The supervisor and the interpreter.
fn shells(run: &Running) -> (i32, i32) {
    let supervisor = run.pid().as_raw();
    let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
    let children = children.expect("a list of children");
    (supervisor, children.trim().parse().expect("one child"))
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("it lives");
}

/// How long it takes until nothing is left after `action`.
fn after(way: &str, script: &str, ready: usize, action: impl Fn(&Running)) -> (Duration, Running) {
    let run = Ftsh::command(script).unprivileged().env("FTSH_TEST_FALLBACK", way).start();
    run.until_lines("ready", ready);
    let start = Instant::now();
    action(&run);
    run.until("everything gone", |run| run.processes().is_empty());
    (start.elapsed(), run)
}

fn killing(end: Signal, action: impl Fn(&Running)) {
    for way in WAYS.into_iter().chain(["ps"]) {
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let (elapsed, run) = after(way, DAEMONS, 20, &action);
            assert!(elapsed < SOON * PATIENCE, "{way}: gone only after {elapsed:?}");
            run.wait().killed_by(end).nothing_left();
            best = best.min(elapsed);
            // Where orphans don't come to us, all processes there are have to be looked at.
            if best < SOON || matches!(way, "1" | "ps") {
                break;
            }
        }
        assert!(best < SOON || matches!(way, "1" | "ps"), "{way}: gone only after {best:?}");
    }
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    killing(Signal::SIGKILL, |run| send(shells(run).0, Signal::SIGKILL));
}

#[test]
fn nothing_outlives_a_killed_interpreter() {
    killing(Signal::SIGKILL, |run| send(shells(run).1, Signal::SIGKILL));
}

#[test]
fn nothing_outlives_an_interpreter_that_panics() {
    // A panic ends it by this signal.
    killing(Signal::SIGABRT, |run| send(shells(run).1, Signal::SIGABRT));
}

#[test]
fn nothing_outlives_an_interpreter_that_was_stopped_and_killed() {
    killing(Signal::SIGKILL, |run| {
        let (_, interpreter) = shells(run);
        send(interpreter, Signal::SIGSTOP);
        run.until("a stopped interpreter", |_| {
            let stat = fs::read_to_string(format!("/proc/{interpreter}/stat")).unwrap_or_default();
            stat.contains(") T ")
        });
        send(interpreter, Signal::SIGKILL);
    });
}

#[test]
fn nothing_outlives_a_nested_shell_that_was_killed() {
    for way in WAYS {
        let inner = "ftsh -c \"sh -c 'trap : TERM; setsid sleep 60 & echo r >> ready; sleep 60'\"";
        let script = format!("try 1 time; {inner}; catch; echo $error_kind $error_code; end");
        let (_, run) = after(way, &script, 1, |run| {
            let nested = run.processes().into_iter().filter(|process| {
                process.command.contains("ftsh -c sh") && process.pid != run.pid().as_raw()
            });
            let nested: Vec<i32> = nested.map(|process| process.pid).collect();
            // The first of them is the one that the outer shell started.
            send(*nested.iter().min().expect("a nested shell"), Signal::SIGKILL);
        });
        let finished = run.wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "signal 9\n", "{way}: {}", finished.story());
        finished.nothing_left();
    }
}

/// Waits until a supervisor, which begins in the interpreter's memory, has its own.
const INDEPENDENT: &str = "until grep -qa FTSH_SUPERVISOR= /proc/$1/environ; do :; done";

#[test]
fn a_supervisor_looks_the_same_with_a_memory_of_its_own() {
    Ftsh::script("sh look $$ > before; sh wait $$; sh look $$ > after; cmp before after")
        .file("look", "tr '\\0' _ < /proc/$1/cmdline; cat /proc/$1/comm")
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
