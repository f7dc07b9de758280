//! Shells that scripts start: what they are told, and that they get the time to clean up.

use std::time::Duration;

use crate::support::{Ftsh, WAYS};

/// What only SIGKILL ends.
const STUBBORN: &str = "trap '' TERM\nsetsid sh -c 'while :; do sleep 9; done' &\necho r >> ready\nwhile :; do sleep 9; done\n";

#[test]
fn nested_shells_have_cleaned_up_before_their_parents_kill() {
    for way in WAYS {
        for (levels, timeout) in [(2, "6"), (3, "11")] {
            // The innermost shell has one second to kill in.
            let finished = Ftsh::command("try for 500 ms or 1 time; ftsh -f 2.log 2.ftsh; end")
                .options(["-t", timeout, "-l", "40", "-f", "1.log"])
                .file("2.ftsh", if levels == 2 { "sh stubborn" } else { "ftsh -f 3.log 3.ftsh" })
                .file("3.ftsh", "sh stubborn")
                .file("stubborn", STUBBORN)
                .env("FTSH_TEST_FALLBACK", way)
                .failure(124);
            finished.nothing_left();
            finished.read("ready");
            let story = finished.story();
            assert!(finished.elapsed > Duration::from_millis(1500), "{way} {levels}: {story}");
            assert!(finished.elapsed < Duration::from_millis(5500), "{way} {levels}: {story}");
            for level in 1..=levels {
                let log = finished.read(&format!("{level}.log"));
                assert!(log.contains("ending scope"), "{way} {level} of {levels}: {log}");
                let kills = log.contains("killing scope");
                assert_eq!(kills, level == levels, "{way} {level} of {levels}: {log}");
            }
        }
    }
}

#[test]
fn a_signal_to_the_outer_shell_lets_nested_ones_clean_up() {
    for way in WAYS {
        let run = Ftsh::command("ftsh -f 2.log -c 'sh stubborn'")
            .options(["-t", "6", "-l", "40", "-f", "1.log"])
            .file("stubborn", STUBBORN)
            .env("FTSH_TEST_FALLBACK", way)
            .start();
        run.until_lines("ready", 1);
        run.signal(nix::sys::signal::Signal::SIGTERM);
        let finished = run.wait();
        finished.killed_by(nix::sys::signal::Signal::SIGTERM).nothing_left();
        assert!(finished.elapsed < Duration::from_millis(5500), "{way}: {}", finished.story());
        assert!(!finished.read("1.log").contains("killing scope"), "{way}");
        assert!(finished.read("2.log").contains("killing scope"), "{way}");
    }
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
