//! Shells started by scripts: their environment, and their time to clean up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;

use crate::support::rounds::rounds;
use crate::support::run::Finished;
use crate::support::{Ftsh, WAYS};

/// Command that ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM\nsetsid sh -c 'while :; do sleep 9; done' &\necho r >> ready\nwhile :; do sleep 9; done\n";

/// Time between the SIGKILL of a nested shell and that of the shell around it.
const ROOM: Duration = Duration::from_secs(5);

#[test]
fn nested_shells_clean_up_before_their_parents_kill() {
    rounds(&WAYS, |round| {
        let (levels, timeout) = [(2, "6"), (3, "11")][round.number % 2];
        let run = |limit: u64| {
            // The innermost shell has a kill timeout of one second.
            let finished = round
                .command(&format!("try for {limit} ms or 1 time; ftsh -f 2.log 2.ftsh; end"))
                .options(["-t", timeout, "-l", "40", "-f", "1.log"])
                .file("2.ftsh", if levels == 2 { "sh stubborn" } else { "ftsh -f 3.log 3.ftsh" })
                .file("3.ftsh", "sh stubborn")
                .file("stubborn", STUBBORN)
                .failure(124);
            finished.nothing_left();
            (Duration::from_millis(limit), finished)
        };
        let is_ready =
            |(_, finished): &(_, Finished)| finished.directory.path().join("ready").exists();
        let limits = std::iter::successors(Some(500), |limit| Some(2 * limit)).take(6);
        let (limit, finished) = limits.map(run).find(is_ready).expect("time to begin in");
        let story = finished.story();
        assert!(finished.elapsed > limit + Duration::from_secs(1), "{levels}: {story}");
        assert!(finished.within(limit + ROOM), "{levels}: {story}");
        for level in 1..=levels {
            let log = finished.read(&format!("{level}.log"));
            assert!(log.contains("ending scope"), "{level} of {levels}: {log}");
            let kills = log.contains("killing scope");
            assert_eq!(kills, level == levels, "{level} of {levels}: {log}");
        }
    });
}

#[test]
fn a_signal_to_the_outer_shell_lets_nested_ones_clean_up() {
    rounds(&WAYS, |round| {
        let run = round
            .command("ftsh -f 2.log -c 'sh stubborn'")
            .options(["-t", "6", "-l", "40", "-f", "1.log"])
            .file("stubborn", STUBBORN)
            .start();
        run.until_lines("ready", 1);
        run.signal(Signal::SIGTERM);
        let finished = run.wait();
        finished.killed_by(Signal::SIGTERM).nothing_left();
        assert!(!finished.read("1.log").contains("killing scope"), "{}", finished.story());
        assert!(finished.read("2.log").contains("killing scope"), "{}", finished.story());
    });
}

#[test]
fn nested_shells_inherit_kill_timeout_and_limit() {
    let finished = Ftsh::command("try for 1 hour; ftsh -c 'ftsh -c \"sh -c env\"'; end")
        .options(["-t", "12", "-k", "weak"])
        .success();
    let text = finished.text();
    assert!(text.contains("FTSH_KILL_TIMEOUT=0\n"), "{text}");
    assert!(text.contains("FTSH_KILL_MODE=weak\n"), "{text}");
    assert!(text.contains("FTSH_DEADLINE="), "{text}");
}

/// Script that waits for a signal, and then prints kill timeout and limit of a new shell's
/// commands.
const DAEMON: &str = "while ! test -e over; do sleep 0.01; done
    ftsh -c 'sh -c \"echo \\$FTSH_KILL_TIMEOUT,\\$FTSH_DEADLINE\"' > part; mv part limit\n";
const LEAVE_DAEMON: &str = "sh -c 'setsid sh daemon < /dev/null > errors 2>&1 &'";
/// Ends the daemon's wait.
const TELL: &str = ": > over; while ! test -e limit; do sleep 0.01; done";

/// Returns the environment that a shell inherits from a daemon left behind by `script`: the kill
/// timeout of its commands, and the limit.
fn inherited_from_daemon(script: &str) -> (String, String) {
    let finished = Ftsh::script(script)
        .file("daemon", DAEMON)
        .through(["sh", "-c", &format!("\"$@\" && {TELL}"), "sh"])
        .success();
    assert_eq!(finished.read("errors"), "");
    let text = finished.read("limit");
    let (time, limit) = text.trim().split_once(',').expect("two words");
    (time.to_owned(), limit.to_owned())
}

fn limit_of_daemons_shell(script: &str) -> String {
    inherited_from_daemon(script).1
}

#[test]
fn a_limit_ends_with_the_try_that_set_it() {
    let inside = format!("try for 1 hour; {LEAVE_DAEMON}; end; sh -c '{TELL}'");
    assert_eq!(limit_of_daemons_shell(&inside), "");
    let late = format!("try for 1 second; {LEAVE_DAEMON}; end; sleep 1 second; sh -c '{TELL}'");
    assert_eq!(limit_of_daemons_shell(&late), "");
}

#[test]
fn a_limit_ends_with_the_run_that_set_it() {
    assert_eq!(limit_of_daemons_shell(&format!("try for 1 hour; {LEAVE_DAEMON}; end")), "");
    let nested = format!("ftsh -c \"{LEAVE_DAEMON}\"");
    assert_eq!(limit_of_daemons_shell(&format!("try for 1 hour; {nested}; end")), "");
}

/// Changes the time since 1970 in a deadline, as a step of the wall clock does, and runs a shell.
const AFTER_A_STEP: &str = r"#!/bin/sh
FTSH_DEADLINE=$((${FTSH_DEADLINE%%.*} + $1)).0@${FTSH_DEADLINE#*@}
export FTSH_DEADLINE
exec ftsh -c 'sleep 10 ms; echo in time'
";

#[test]
fn a_step_of_the_wall_clock_changes_no_limit() {
    for step in ["-7200", "7200"] {
        let run = |limit: &str, program: &str| {
            Ftsh::command(&format!("limit {limit}; ./step {step}; end")).program("step", program)
        };
        run("1 hour", AFTER_A_STEP).stdout("in time\n").success();
        let endless = AFTER_A_STEP.replace("10 ms", "1 hour");
        run("100 ms", &endless).stderr("ran out of time").failure(124);
    }
}

#[test]
fn a_limit_holds_as_long_as_its_try() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let holds = |script: String, hours: f64| {
        let limit = limit_of_daemons_shell(&script);
        let (limit, _) = limit.split_once('@').expect("times on two clocks");
        let limit: f64 = limit.parse().expect("a limit");
        let expected = now + hours * 3600.0;
        assert!((limit - expected).abs() < 60.0, "{limit}, not {expected}: {script}");
    };
    holds(format!("try for 1 hour; {LEAVE_DAEMON}; sh -c '{TELL}'; end"), 1.0);
    // The limit of the outer `try`, if the inner one has ended; and the limit of a shell around one
    // that has ended.
    let inner = format!("try for 1 hour; {LEAVE_DAEMON}; end");
    holds(format!("try for 2 hours; true; {inner}; sh -c '{TELL}'; end"), 2.0);
    let nested = format!("ftsh -c \"{inner}\"");
    holds(format!("try for 2 hours; {nested}; sh -c '{TELL}'; end"), 2.0);
}

#[test]
fn ended_shells_reserve_no_kill_timeout() {
    let daemon = |script: &str| inherited_from_daemon(script).0;
    assert_eq!(daemon(&format!("{LEAVE_DAEMON}; sh -c '{TELL}'")), "20");
    assert_eq!(daemon(LEAVE_DAEMON), "25");
    assert_eq!(daemon(&format!("ftsh -c \"{LEAVE_DAEMON}\"")), "25");
    assert_eq!(daemon(&format!("ftsh -c \"{LEAVE_DAEMON}\"; sh -c '{TELL}'")), "20");
    assert_eq!(daemon(&format!("ftsh -t 9 -c \"{LEAVE_DAEMON}\"; sh -c '{TELL}'")), "4");
}
