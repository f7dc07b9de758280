//! Shells that scripts start: what they are told, and that they get the time to clean up.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::rounds::rounds;
use crate::support::{Ftsh, WAYS};

/// What only SIGKILL ends.
const STUBBORN: &str = "trap '' TERM\nsetsid sh -c 'while :; do sleep 9; done' &\necho r >> ready\nwhile :; do sleep 9; done\n";

#[test]
fn nested_shells_have_cleaned_up_before_their_parents_kill() {
    rounds(&WAYS, |round| {
        let (levels, timeout) = [(2, "6"), (3, "11")][round.number % 2];
        // The innermost shell has one second to kill in.
        let finished = round
            .command("try for 500 ms or 1 time; ftsh -f 2.log 2.ftsh; end")
            .options(["-t", timeout, "-l", "40", "-f", "1.log"])
            .file("2.ftsh", if levels == 2 { "sh stubborn" } else { "ftsh -f 3.log 3.ftsh" })
            .file("3.ftsh", "sh stubborn")
            .file("stubborn", STUBBORN)
            .failure(124);
        finished.nothing_left();
        finished.read("ready");
        let story = finished.story();
        assert!(finished.elapsed > Duration::from_millis(1500), "{levels}: {story}");
        assert!(finished.elapsed < Duration::from_millis(5500), "{levels}: {story}");
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
        assert!(finished.elapsed < Duration::from_millis(5500), "{}", finished.story());
        assert!(!finished.read("1.log").contains("killing scope"), "{}", finished.story());
        assert!(finished.read("2.log").contains("killing scope"), "{}", finished.story());
    });
}

#[test]
fn nested_shells_are_told_how_to_kill_and_until_when() {
    let finished = Ftsh::command("try for 1 hour; ftsh -c 'ftsh -c \"sh -c env\"'; end")
        .options(["-t", "12", "-k", "weak"])
        .success();
    let text = finished.text();
    assert!(text.contains("FTSH_KILL_TIMEOUT=0\n"), "{text}");
    assert!(text.contains("FTSH_KILL_MODE=weak\n"), "{text}");
    assert!(text.contains("FTSH_DEADLINE="), "{text}");
}
