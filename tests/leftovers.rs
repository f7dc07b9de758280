//! Processes of canceled attempts, ended scripts and killed shells: none is left.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::processes::with_argument;
use crate::support::rounds::{self, rounds, timed, twice};
use crate::support::{Ftsh, WAYS};

/// Returns a word that no other process has among its arguments.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Fails if a process with this argument exists, after killing it.
fn none_has(argument: &str) {
    let survivors = with_argument(argument);
    for survivor in &survivors {
        let _ = kill(Pid::from_raw(survivor.pid), Signal::SIGKILL);
    }
    assert!(survivors.is_empty(), "left running: {survivors:?}");
}

#[test]
fn a_hundred_deep_chain_is_gone() {
    rounds(&WAYS, |round| {
        let run = round.command("try 1 time; sh -c 'sh chain 100 & read x < ready; exit 1'; end");
        let finished = run
            .file(
                "chain",
                "[ $1 = 0 ] && { echo r > ready; exec sleep 60; }\nsh chain $(($1 - 1)) & wait\n",
            )
            .fifo("ready")
            .failure(1);
        finished.nothing_left();
    });
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

/// Attempt that leaves 200 processes behind and searches for those of the previous attempt.
const ATTEMPT: &str = "
    for pid in $(cat pids); do
        read -r _ _ state _ < /proc/$pid/stat && test $state != Z && echo $pid >> survivors
    done 2> /dev/null
    : > pids
    for i in $(seq 50); do
        sleep 60 & echo $! >> pids
        setsid sleep 60 & echo $! >> pids
        nohup sleep 60 > /dev/null 2>&1 & echo $! >> pids
        (setsid sh -c 'echo $$ >> pids; exec sleep 60' &)
    done
    while test $(wc -l < pids) -lt 200; do sleep 0.01; done
    echo r >> rounds
    exit 1
";

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn two_hundred_daemons_of_every_attempt_are_gone() {
    let attempts = rounds::count().clamp(2, 4);
    let script = format!("try {attempts} times every 1 ms; sh attempt; end");
    twice(&WAYS, |round| {
        let finished = round
            .command(&script)
            .file("attempt", ATTEMPT)
            .limit(Duration::from_secs(300))
            .failure(1);
        finished.nothing_left();
        assert_eq!(finished.read("rounds").lines().count(), attempts, "{}", finished.story());
        assert!(!finished.directory.path().join("survivors").exists(), "{}", finished.story());
    });
}

#[test]
fn processes_that_ignore_sigterm_are_gone_after_the_kill_timeout() {
    let most = Duration::from_millis(800);
    timed("stubborn processes gone", most, &WAYS, |round| {
        let run = round.command("try for 200 ms or 1 time; sh stubborn; end");
        let finished = run
            .options(["-t", "0.3"])
            .file("stubborn", "trap '' TERM HUP INT\nsetsid sh -c 'while :; do sleep 9; done' &\nwhile :; do sleep 9; done\n")
            .failure(124);
        finished.nothing_left();
        assert!(finished.elapsed > Duration::from_millis(500), "{}", finished.story());
        finished.elapsed
    });
}

/// Leaves daemons by `setsid`, by a double fork, and with SIGTERM ignored.
const LEAVES: &str = "exec > /dev/null 2>&1
    setsid sleep 60 & echo $! >> pids
    (setsid sh -c 'echo $$ >> pids; exec sleep 60' &)
    (trap '' TERM; setsid sh -c 'echo $$ >> pids; exec sleep 60' &)
    until test $(wc -l < pids) = 3; do sleep 0.01; done
";

#[test]
fn a_success_with_no_leftovers_leaves_nothing() {
    // A process that has ended has no command line.
    let check = "sh -c 'cat $(sed \"s,.*,/proc/&/cmdline,\" pids) 2> /dev/null; :'";
    for (body, option) in [
        ("try no leftovers; sh leaves; end", "-D"),
        ("limit 1 hour no leftovers; sh leaves; end", "-D"),
        ("keep sh leaves; exit 0", "--no-leftovers"),
        ("try no leftovers; keep sh leaves; end", "--no-leftovers"),
    ] {
        rounds(&WAYS, |round| {
            let then = if option == "-D" { check } else { "" };
            let run = round.command(&format!("{body}; {then}"));
            let run = run.options(["-t", "0.3", option]).file("leaves", LEAVES);
            run.stdout("").success().nothing_left();
        });
    }
    let script = "try no leftovers; sh leaves; end";
    let finished = Ftsh::command(script).options(["-t0.3", "-l5"]).file("leaves", LEAVES).success();
    let errors = finished.errors();
    assert!(errors.contains("no leftovers: ends ") && errors.contains("sleep"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn stopped_processes_are_gone() {
    let stop = "sh -c 'kill -STOP $$; sleep 60'";
    let script = format!("try for 300 ms or 1 time; sh -c \"setsid {stop} & {stop}\"; end")
        .replace("$$", "\\$\\$");
    // SIGCONT lets them handle SIGTERM, so the kill timeout of 30 seconds does not pass.
    timed("stopped processes gone", Duration::from_millis(600), &WAYS, |round| {
        let finished = round.command(&script).failure(124);
        finished.nothing_left();
        finished.elapsed
    });
}

#[test]
fn a_canceled_branch_leaves_its_siblings_alone() {
    rounds(&WAYS, |round| {
        // One branch fails and is emptied. The other branch's command and daemon continue, and so
        // does the script's daemon.
        let finished = round.command(
            "sh -c 'setsid sleep 62 & echo $! > c'
             forall branch in a b
                 if $branch .eq. a
                     try 1 time
                         sh -c 'setsid sleep 60 & echo $! > a; while ! test -s b; do sleep 0.01; done; exit 1'
                     catch
                         sh -c 'kill -0 $(cat b) $(cat c) && test -z \"$(cat /proc/$(cat a)/cmdline)\" && echo over > go'
                     end
                 else
                     sh -c 'setsid sleep 61 & echo $! > b; while ! test -e go; do sleep 0.01; done; echo went on'
                 end
             end
             sh -c 'kill -0 $(cat b) $(cat c) && echo alive; kill $(cat b) $(cat c)'",
        )
        .stdout("went on\nalive\n")
        .success();
        assert_eq!(finished.read("go"), "over\n");
    });
}

#[test]
fn untagged_daemons_are_gone() {
    // Without subreapers, such processes cannot be found.
    rounds(&["0", "pidfd"], |round| {
        let mark = unique(&format!("wiped-{}-{}-{}", round.way, round.unprivileged, round.number));
        let script = format!(
            "try 1 time; sh -c 'setsid env -i /bin/sh -c \"echo r > ready; sleep 60; :\" \"{mark}\" & read x < ready; exit 1'; end"
        );
        round.command(&script).fifo("ready").failure(1);
        none_has(&mark);
    });
}

#[test]
fn earlier_untagged_daemons_live_on() {
    rounds(&["0", "pidfd"], |round| {
        let finished = round
            .command(
                "sh -c 'setsid env -i sh daemon & read x < ready'
                 try 1 time; failure; catch; success; end
                 try 1 time; sh -c 'exit 1'; catch; success; end
                 sh -c 'kill -0 $(cat pid) && echo alive; kill $(cat pid)'",
            )
            .file("daemon", "echo $$ > pid; echo r > ready; exec sleep 60")
            .fifo("ready")
            .stdout("alive\n")
            .success();
        finished.nothing_left();
    });
}

#[test]
fn the_search_for_processes_takes_little_time() {
    // Each scan of all processes is one of several.
    let script = "try for 300 ms or 1 time; sh -c 'setsid sleep 60 & sleep 0.1'; sleep 60; catch; success; end";
    timed("a daemon gone", Duration::from_millis(900), &["0", "1", "ps"], |round| {
        let finished = round.command(script).options(["-t", "1"]).success();
        finished.nothing_left();
        finished.elapsed
    });
}

/// Each process starts others while tokens are left: 200 empty lines in a file that all processes
/// read together.
const BOMB: &str = "
    trap '' TERM HUP
    while read -r token <&3; do
        echo r >> started
        setsid sh bomb &
    done
    sleep 60 & wait
";

#[test]
fn a_fork_bomb_is_emptied() {
    rounds(&WAYS, |round| {
        // Earlier and later: while the fork bomb grows, and afterwards.
        let limit = 20 + 40 * (round.number % 5);
        let script = format!("try for {limit} ms or 1 time; sh bomb 3< tokens; end");
        let finished = round
            .command(&script)
            .options(["-t", "0.1"])
            .file("tokens", "\n".repeat(200))
            .file("bomb", BOMB)
            .limit(Duration::from_secs(60))
            .failure(124);
        finished.nothing_left();
    });
}

#[test]
fn attempts_do_not_overlap() {
    // The rounds are attempts of one shell.
    twice(&WAYS, |round| {
        // Each attempt starts a daemon that ends with a delay.
        let finished = round
            .command("try 20 times every 1 ms; sh attempt; catch; success; end")
            .file(
                "attempt",
                "echo start >> log\nsetsid sh daemon &\nwhile ! test -e ready; do :; done\nrm ready\nexit 1\n",
            )
            .file(
                "daemon",
                "trap '/bin/sleep 0.05; echo end >> log; exit' TERM\n: > ready\nwhile :; do /bin/sleep 0.05; done\n",
            )
            .success();
        finished.nothing_left();
        assert_eq!(finished.read("log"), "start\nend\n".repeat(20), "{}", finished.story());
    });
}

#[test]
fn a_process_that_cleans_up_is_not_disturbed() {
    rounds(&WAYS, |round| {
        // The process starts others for its cleanup after SIGTERM.
        let finished = round
            .command("try 1 time; sh attempt; end")
            .file("attempt", "setsid sh daemon &\nwhile ! test -e ready; do :; done\nexit 1\n")
            .file(
                "daemon",
                "trap '(/bin/sleep 0.2 && echo one >> log); /bin/sleep 0.1 && echo two >> log; exit' TERM
                 : > ready
                 while :; do /bin/sleep 0.05; done\n",
            )
            .failure(1);
        finished.nothing_left();
        assert_eq!(finished.read("log"), "one\ntwo\n", "{}", finished.story());
    });
}

/// Returns the output of `ls /proc/self/fd` without the shell. Descriptors inherited by the tests
/// stay open in every command.
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
fn many_commands_leak_no_descriptors() {
    Ftsh::command("for i in 1 .to. 300; echo $i -> v; cat -< v | cat > f; sh -c true 2-> w; end; ls /proc/$$/fd | wc -l -> n; test $n -lt 40")
        .limit(Duration::from_secs(60))
        .success();
}

#[test]
fn a_daemon_may_print_after_the_end_of_the_shell() {
    let daemon = "(until test -e go; do sleep 0.01; done; echo a; echo b; echo > survived) &\n\
                  echo $! > pid";
    let bodies = [
        "sh daemon.sh > /dev/null",
        "sh daemon.sh -> v",
        "try 1 time atomic; sh daemon.sh; end",
        "try 1 time atomic; sh daemon.sh; end > f",
        "try 1 time; sh daemon.sh 1>&2; catch; echo $error_output; end 2> log",
        "try 1 time; sh daemon.sh 1>&2; exec true; catch; echo $error_output; end 2> log",
        "forall i in 1 output grouped; sh daemon.sh; end",
        "forall i in 1 output tagged; sh daemon.sh; end",
        "forany i in 1 2 hedge after 1 hour; sh daemon.sh; end",
        "try 1 time atomic; forall i in 1 output tagged; sh daemon.sh; end; end",
        "forall i in 1 output tagged; sh daemon.sh; end; exec true",
        "forall i in 1 output grouped; sh daemon.sh; end; exec true",
    ];
    for body in bodies {
        let run = Ftsh::command("sh outer.sh")
            .file("daemon.sh", daemon)
            .file("job.ftsh", body)
            .file(
                "outer.sh",
                "ftsh job.ftsh > /dev/null || exit\n\
                 echo > go\n\
                 while kill -0 $(cat pid) 2> /dev/null; do sleep 0.01; done\n\
                 test -e survived",
            )
            .start();
        // The process that reads the rest ends with the daemon.
        run.until_gone("the daemon and its reader");
        let finished = run.wait();
        assert_eq!(finished.errors(), "", "{body}");
        if body.contains("2> log") {
            // Output that is only copied still goes to its target.
            assert_eq!(finished.read("log"), "a\nb\n", "{body}");
        }
        finished.expect_code(0);
    }
}

#[test]
fn a_daemon_with_an_open_output_delays_nothing() {
    // The daemon ends with the test's directory.
    let daemon = "while test -d \"$PWD\"; do sleep 0.05; done";
    let script = format!("sh -c '({daemon}; exit) & echo $! > pid; echo said' -> said\necho $said");
    rounds(&WAYS, |round| {
        let finished = round.command(&script).stdout("said\n").success();
        let pid: i32 = finished.read("pid").trim().parse().expect("a process id");
        let lives = finished.survivors.iter().any(|survivor| survivor.pid == pid);
        assert!(lives, "the daemon was killed");
    });
}
