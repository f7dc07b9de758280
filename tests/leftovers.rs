//! Nothing outlives its attempt, its script or its shell.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::Ftsh;
use crate::support::processes::with_argument;

/// A word that no other process has among its arguments.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Fails if a process with this argument is there, after ending it.
fn none_has(argument: &str) {
    let survivors = with_argument(argument);
    for survivor in &survivors {
        let _ = kill(Pid::from_raw(survivor.pid), Signal::SIGKILL);
    }
    assert!(survivors.is_empty(), "left running: {survivors:?}");
}

#[test]
fn a_hundred_deep_chain_is_gone() {
    let run = Ftsh::command("try for 1 second or 1 time; sh chain 100; end").file(
        "chain",
        "if [ $1 = 0 ]; then echo r > ready; exec sleep 60; fi\nsh chain $(($1 - 1)) & wait\n",
    );
    let finished = run.limit(Duration::from_secs(40)).failure(124);
    finished.nothing_left();
    finished.read("ready");
}

#[test]
fn two_hundred_daemons_are_gone() {
    let finished = Ftsh::command(
        "try for 2 seconds or 1 time; forall i in 1 .to. 200; sh -c 'setsid /bin/sleep 60 & /bin/sleep 60'; end; end",
    )
    .limit(Duration::from_secs(60))
    .failure(124);
    finished.nothing_left();
}

#[test]
fn daemons_without_our_environment_are_gone() {
    let mark = unique("wiped");
    let finished = Ftsh::command(&format!(
        "try for 500 ms or 1 time; sh -c 'setsid env -i /bin/sh -c \"/bin/sleep 60; :\" {mark} & echo r > ready; /bin/sleep 60'; end"
    ))
    .failure(124);
    finished.read("ready");
    none_has(&mark);
}

#[test]
fn killing_the_shell_kills_what_it_runs() {
    let run = Ftsh::command(
        "forall i in 1 .to. 20; sh -c 'setsid /bin/sleep 60 & echo r >> ready; exec /bin/sleep 60'; end",
    )
    .start();
    run.until_lines("ready", 20);
    run.signal(Signal::SIGKILL);
    let killed = Instant::now();
    run.until("everything gone", |run| {
        // The shell itself stays as a zombie, which has no environment, until it is waited for.
        run.processes().is_empty()
    });
    assert!(killed.elapsed() < Duration::from_secs(2), "gone only after {:?}", killed.elapsed());
    run.wait().killed_by(Signal::SIGKILL).nothing_left();
}

#[test]
fn killing_any_shell_process_leaves_nothing() {
    // The shell may be more than one process: whichever dies first, the rest follows.
    let run =
        Ftsh::command("sh -c 'setsid /bin/sleep 61 & echo r > ready; exec /bin/sleep 62'").start();
    run.until_lines("ready", 1);
    let shells: Vec<i32> = run
        .processes()
        .into_iter()
        .filter(|process| process.command.contains("ftsh -c"))
        .map(|process| process.pid)
        .collect();
    assert!(!shells.is_empty());
    let last = *shells.iter().max().expect("a shell");
    kill(Pid::from_raw(last), Signal::SIGKILL).expect("a signal");
    run.wait().nothing_left();
}

#[test]
fn a_fork_bomb_is_emptied() {
    for _ in 0..3 {
        let finished = Ftsh::command("try for 700 ms or 1 time; sh bomb 7; end")
            .options(["-t", "1"])
            .file(
                "bomb",
                "trap '' TERM\n[ $1 = 0 ] && exec sleep 60\nsetsid sh bomb $(($1 - 1)) &\nsetsid sh bomb $(($1 - 1)) &\nwait\n",
            )
            .limit(Duration::from_secs(60))
            .failure(124);
        finished.nothing_left();
    }
}

#[test]
fn attempts_do_not_overlap() {
    // Each attempt starts a daemon that holds `busy` until it is told to end, and takes its time then.
    let finished = Ftsh::command("try 5 times every 1 ms; sh attempt; catch; success; end")
        .file(
            "attempt",
            "mkdir busy || echo overlap >> log\nsetsid sh daemon &\nwhile ! test -e ready; do :; done\nrm ready\nexit 1\n",
        )
        .file(
            "daemon",
            "trap '/bin/sleep 0.1; rmdir busy; exit' TERM\n: > ready\nwhile :; do /bin/sleep 0.01; done\n",
        )
        .success();
    finished.nothing_left();
    assert!(!finished.directory.path().join("log").exists(), "{}", finished.story());
}

/// What `ls /proc/self/fd` says when the shell has no part in it: what the tests themselves inherited
/// stays open in every command.
fn inherited_descriptors() -> String {
    let output = std::process::Command::new("ls")
        .arg("/proc/self/fd")
        .env("LC_ALL", "C")
        .output()
        .expect("ls runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
}

#[test]
fn no_descriptors_leak_into_commands() {
    let expected = inherited_descriptors();
    for script in [
        "ls /proc/self/fd -> fds; echo $fds",
        "try for 1 minute; echo x -> v; ls /proc/self/fd -< v -> fds; end; echo $fds",
        "ls /proc/self/fd | cat -> fds; echo $fds",
        "forall i in 1 2 3; sleep 10 ms; end; ls /proc/self/fd 2> errors -> fds; echo $fds",
    ] {
        Ftsh::command(script).options(["-l", "40", "-f", "the.log"]).stdout(&expected).success();
    }
}

#[test]
fn many_commands_use_no_descriptors_up() {
    Ftsh::command("for i in 1 .to. 300; echo $i -> v; cat -< v | cat > f; sh -c true 2-> w; end; ls /proc/$$/fd | wc -l -> n; test $n -lt 40")
        .limit(Duration::from_secs(60))
        .success();
}
