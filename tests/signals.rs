//! Signals to the shell: all its processes are gone, then the shell ends by the signal.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::supervision::child_of;
use crate::support::rounds::{Round, rounds};
use crate::support::run::{Finished, Running};
use crate::support::skipped::skipped;
use crate::support::terminal::User;
use crate::support::{FTSH, Ftsh, WAYS};

const SIGNALS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Starts `text`, waits for `lines` lines in the file `ready`, and sends the signal.
fn ends(round: Round, signal: Signal, text: &str, lines: usize) {
    let run = round.command(text).start();
    run.until_lines("ready", lines);
    run.signal(signal);
    let finished = run.wait();
    finished.killed_by(signal).nothing_left();
    assert_eq!(finished.text(), "", "{}", finished.story());
    assert!(finished.elapsed < Duration::from_secs(10), "{}", finished.story());
}

/// Checks that each signal ends the shell, in each round.
fn ends_by_each(text: &str) {
    rounds(&WAYS, |round| SIGNALS.into_iter().for_each(|signal| ends(round, signal, text, 1)));
}

/// Checks that the signals end the shell, one per round.
fn ends_in_turn(text: &str, lines: usize) {
    rounds(&WAYS, |round| ends(round, SIGNALS[round.number % SIGNALS.len()], text, lines));
}

#[test]
fn an_early_status_request_is_answered_later() {
    let run = Ftsh::new().fifo("script").arg("script").start();
    // The open blocks until the shell has opened the FIFO too.
    let script = std::fs::File::options().write(true).open(run.directory().join("script"));
    let mut script = script.expect("a FIFO");
    run.signal(Signal::SIGUSR1);
    script.write_all(b"sh -c 'echo ran'").expect("a reader");
    drop(script);
    let finished = run.wait();
    finished.expect_code(0);
    assert_eq!(finished.text(), "ran\n", "{}", finished.story());
}

#[test]
fn in_a_command() {
    ends_by_each("sh -c 'echo r > ready; exec /bin/sleep 60'; echo never");
}

#[test]
fn a_finally_group_runs_after_all_processes_ended() {
    let text = "forall x in a b
        try
            sh -c 'sleep 60 & echo $! > pid.$1; echo r >> ready; exec sleep 60' sh $x
        finally
            sh -c 'readlink /proc/$(cat pid.$1)/exe > /dev/null && lives=1; echo $1 ${lives:-0} >> done' sh $x
        end
    end";
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        let run = round.command(text).options(["-t", "20"]).start();
        run.until_lines("ready", 2);
        run.signal(signal);
        let finished = run.wait();
        finished.killed_by(signal).nothing_left();
        let done = finished.read("done");
        let mut lines: Vec<_> = done.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a 0", "b 0"], "{}", finished.story());
    });
}

/// Command that reports its start, waits while `hold` exists, and reports its end.
const HELD: &str = "sh -c 'echo r > ready; while test -e hold; do sleep 0.01; done; echo d > done'";

/// Starts `text`, which runs `HELD` in a `finally` group. `held` returns when the command may
/// continue.
fn finishes(round: Round, text: &str, held: impl FnOnce(&Running)) -> Finished {
    let log = ["-l", "10", "-f", "log", "-t", "40"];
    let run =
        round.command(text).file("hold", "").file("inner", format!("try 1 time; {HELD}; end"));
    let run = run.options(log).start();
    run.until_lines("ready", 1);
    held(&run);
    run.until_lines("log", 1);
    std::fs::remove_file(run.directory().join("hold")).expect("it is there");
    let finished = run.wait();
    assert_eq!(finished.read("done"), "d\n", "{}", finished.story());
    finished
}

#[test]
fn a_running_finally_group_completes_before_the_shell_ends() {
    let text = format!("try; success; finally; {HELD}; end; echo never");
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        let finished = finishes(round, &text, |run| run.signal(signal));
        finished.killed_by(signal).nothing_left();
        assert_eq!(finished.text(), "", "{}", finished.story());
    });
}

#[test]
fn a_shell_in_a_running_finally_group_outlasts_the_limit() {
    let text =
        format!("try for 1 second or 1 time; try; success; finally; {FTSH} -l 0 inner; end; end");
    rounds(&WAYS, |round| {
        let finished = finishes(round, &text, |_| ());
        finished.expect_code(124);
        finished.nothing_left();
    });
}

#[test]
fn in_a_delay() {
    ends_by_each("try 5 times backoff fixed from 1 hour; echo r > ready; failure; end; echo never");
}

#[test]
fn in_a_sleep() {
    ends_in_turn("echo r > ready; sleep 60; echo never", 1);
}

#[test]
fn in_a_loop_without_commands() {
    ends_in_turn("echo r > ready; while true; x=1; end; echo never", 1);
}

#[test]
fn in_a_forall_of_a_hundred() {
    let text =
        "forall i in 1 .to. 100; sh -c 'echo r >> ready; exec /bin/sleep 60'; end; echo never";
    ends_in_turn(text, 100);
}

#[test]
fn in_a_hanging_open() {
    ends_in_turn("mkfifo f; echo r > ready; cat < f; echo never", 1);
}

#[test]
fn in_structures_of_a_pipeline() {
    let stage = "try; sh -c 'sleep 60 & echo r >> ready; exec /bin/sleep 60'; finally; echo f >> ready; end";
    let text = format!("for x in a; {stage}; end | while true; {stage}; end | cat; echo never");
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        let run = round.command(&text).options(["-t", "20"]).start();
        run.until_lines("ready", 2);
        run.signal(signal);
        let finished = run.wait();
        finished.killed_by(signal).nothing_left();
        assert_eq!(finished.read("ready"), "r\nr\nf\nf\n", "{}", finished.story());
    });
}

#[test]
fn output_to_an_ended_stage_does_not_end_a_finally_group() {
    let text = "echo > lock\ntry; echo working; echo r > ready; sleep 60\n\
                finally; echo cleaning; /bin/echo up; rm lock; end | tee log > /dev/null";
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        let run = round.command(text).options(["-t", "20"]).start();
        run.until_lines("ready", 1);
        run.signal(signal);
        let finished = run.wait();
        finished.killed_by(signal).nothing_left();
        assert!(!finished.directory.path().join("lock").exists(), "{}", finished.story());
    });
}

#[test]
fn in_a_pipeline() {
    ends_in_turn("sh -c 'echo r > ready; exec /bin/sleep 60' | cat | cat; echo never", 1);
}

#[test]
fn a_signal_pending_at_the_end_takes_precedence_over_success() {
    rounds(&WAYS, |round| {
        for signal in SIGNALS {
            // At once, later, and with a daemon.
            for before in ["", "sleep 40 ms; ", "sh -c 'setsid sleep 60 &'; "] {
                let kill = format!("{before}sh -c 'kill -{} $1' sh $$", signal as i32);
                let finished = round.command(&kill).run();
                finished.killed_by(signal).nothing_left();
            }
        }
    });
}

#[test]
fn a_signal_blocked_at_start_ends_the_shell() {
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        for text in ["sh -c 'echo r > ready; exec sleep 60'", "echo r > ready; sleep 60"] {
            let run = round.command(text).blocking_all().start();
            run.until_lines("ready", 1);
            run.signal(signal);
            run.wait().killed_by(signal).nothing_left();
        }
    });
}

#[test]
fn catch_blocks_do_not_run() {
    ends_in_turn(
        "try 5 times; sh -c 'echo r > ready; exec /bin/sleep 60'; catch; echo never; end; echo never",
        1,
    );
}

#[test]
fn daemons_of_a_canceled_command_are_killed() {
    ends_in_turn(
        "sh -c 'setsid /bin/sleep 60 & (setsid sh -c \"/bin/sleep 60 & /bin/sleep 60\" &); echo r > ready; /bin/sleep 60'",
        1,
    );
}

#[test]
fn a_command_that_ignores_the_signal_is_killed_in_time() {
    let run = Ftsh::command(
        "sh -c 'trap \"\" TERM INT; echo r > ready; while :; do /bin/sleep 0.05; done'",
    )
    .options(["-t", "1"])
    .start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(finished.elapsed > Duration::from_secs(1), "{}", finished.story());
    assert!(finished.elapsed < Duration::from_secs(5), "{}", finished.story());
}

#[test]
fn a_second_signal_shortens_the_kill_timeout() {
    let run = Ftsh::command(
        "sh -c 'trap \"\" TERM INT; echo r > ready; while :; do /bin/sleep 0.05; done'",
    )
    .start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(700));
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    finished.killed_by(Signal::SIGTERM).nothing_left();
    assert!(finished.elapsed < Duration::from_secs(10), "{}", finished.story());
}

/// Runs until the kill timeout of half a second has passed.
const STUBBORN: &str =
    "sh -c 'trap \"\" TERM INT HUP QUIT; echo r > ready; while :; do /bin/sleep 0.05; done'";

/// Checks that one signal delivered twice does not shorten the kill timeout.
fn counts_once(send: impl Fn(&Running, Signal) + Sync) {
    rounds(&WAYS, |round| {
        let signal = SIGNALS[round.number % SIGNALS.len()];
        let run = round.command(STUBBORN).options(["-t", "0.5"]);
        // With and without a terminal, if the tests run at a terminal.
        let run =
            if (round.number / SIGNALS.len()).is_multiple_of(2) { run.session() } else { run }
                .start();
        run.until_lines("ready", 1);
        let start = Instant::now();
        send(&run, signal);
        let finished = run.wait();
        let elapsed = start.elapsed();
        finished.killed_by(signal).nothing_left();
        assert!(elapsed > Duration::from_millis(500), "{elapsed:?}: {}", finished.story());
    });
}

#[test]
fn a_signal_to_the_group_counts_once() {
    counts_once(Running::signal_group);
}

#[test]
fn a_signal_to_the_shell_and_then_to_its_group_counts_once() {
    // The order used by `timeout`. The supervisor may have forwarded the first signal when the
    // second arrives.
    counts_once(|run, signal| {
        run.signal(signal);
        std::thread::sleep(Duration::from_millis(1));
        run.signal_group(signal);
    });
}

/// Returns the state of a process, as `ps` shows it.
fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[test]
fn the_group_stops_and_continues() {
    rounds(&WAYS, |round| {
        // A parent in another group of the session could continue the shell.
        let run = round.command("sh -c 'echo $$ > ready; read go < go'; echo done");
        let run = run.fifo("go").start();
        run.until_lines("ready", 1);
        let command = std::fs::read_to_string(run.directory().join("ready")).expect("a pid");
        let command = Pid::from_raw(command.trim().parse().expect("a pid"));
        // The shell learns of the start of a command with a delay.
        std::thread::sleep(Duration::from_millis(50));
        run.signal_group(Signal::SIGTSTP);
        for pid in [command, run.pid()] {
            run.until("all stopped", |_| state(pid) == Some('T'));
        }
        run.signal_group(Signal::SIGCONT);
        for pid in [command, run.pid()] {
            run.until("all continued", |_| state(pid) == Some('S'));
        }
        std::fs::write(run.directory().join("go"), "go\n").expect("a fifo");
        let finished = run.wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "done\n", "{}", finished.story());
    });
}

#[test]
fn a_stop_signal_stops_no_process_outside_the_shell() {
    // The first script starts no process, and has no process group of its own.
    for text in ["echo r > ready; sleep 60", "sh -c 'echo r > ready; exec sleep 60'"] {
        let wrapper = "\"$@\" & echo $! > shell; wait $!; exit 3";
        let run = Ftsh::command(text).through(["sh", "-c", wrapper, "sh"]).start();
        run.until_lines("ready", 1);
        run.until_lines("shell", 1);
        let shell = std::fs::read_to_string(run.directory().join("shell")).expect("a pid");
        let shell = Pid::from_raw(shell.trim().parse().expect("a pid"));
        let send = |signal| nix::sys::signal::kill(shell, signal).expect("a shell");
        send(Signal::SIGTSTP);
        run.until("a stopped shell", |_| state(shell) == Some('T'));
        assert_ne!(state(run.pid()), Some('T'), "the parent of the shell");
        send(Signal::SIGCONT);
        run.until("a shell that goes on", |_| state(shell) == Some('S'));
        send(Signal::SIGTERM);
        let finished = run.wait();
        finished.expect_code(3);
        finished.nothing_left();
    }
}

#[test]
fn a_shell_that_nothing_could_continue_does_not_stop() {
    rounds(&WAYS, |round| {
        let run = round.command("sh -c 'echo r > ready; sleep 0.2'; echo done").session().start();
        run.until_lines("ready", 1);
        run.signal_group(Signal::SIGTSTP);
        let finished = run.wait();
        finished.expect_code(0);
        assert_eq!(finished.text(), "done\n", "{}", finished.story());
    });
}

#[test]
fn one_status_request_to_the_group_gets_one_page() {
    rounds(&WAYS, |round| {
        let run = round.command("sh -c 'echo r > ready; read go < go'").fifo("go").session();
        let run = run.start();
        run.until_lines("ready", 1);
        run.signal_group(Signal::SIGUSR1);
        run.until("an answer", |run| run.errors().contains("running"));
        std::fs::write(run.directory().join("go"), "go\n").expect("a fifo");
        let finished = run.wait();
        finished.expect_code(0);
        assert_eq!(finished.errors().matches("ftsh: status of").count(), 1, "{}", finished.story());
    });
}

#[test]
fn a_signal_ignored_at_start_stays_ignored() {
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        let run = Ftsh::command(
            "echo r > ready; sh -c 'while ! test -e go; do /bin/sleep 0.01; done'; echo survived",
        )
        .ignoring(signal)
        .start();
        run.until_lines("ready", 1);
        run.signal(signal);
        std::fs::write(run.directory().join("go"), "").expect("a file");
        let finished = run.wait();
        finished.check_health();
        finished.expect_code(0);
        assert_eq!(finished.text(), "survived\n", "{}", finished.story());
    }
}

#[test]
fn commands_inherit_only_ignored_signals() {
    let bits = |text: &str| u64::from_str_radix(text.trim(), 16).expect("a signal set");
    let ignored = |run: Ftsh| {
        let text = run.success().text();
        let line = text.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(bits);
        let blocked = text.lines().find_map(|line| line.strip_prefix("SigBlk:")).map(bits);
        (line.expect("SigIgn"), blocked.expect("SigBlk"))
    };
    let hangup = 1 << (Signal::SIGHUP as u32 - 1);
    let (plain, blocked) = ignored(Ftsh::command("cat /proc/self/status"));
    assert_eq!(blocked, 0, "an empty signal mask");
    assert_eq!(plain & 0x7fff, 0, "default dispositions: {plain:x}");
    let (nohup, _) = ignored(Ftsh::command("cat /proc/self/status").ignoring(Signal::SIGHUP));
    assert_eq!(nohup & hangup, hangup, "{nohup:x}");
}

#[test]
fn a_signal_to_the_command_alone_is_its_failure() {
    Ftsh::command("try; sh -c 'kill -INT $$'; catch; echo $error_kind $error_code; end")
        .stdout("signal 130\n")
        .success();
}

#[test]
fn a_finally_group_sees_the_signal_that_ends_the_shell() {
    rounds(&WAYS, |round| {
        let text = "try
            sh -c 'echo r > ready; exec sleep 60'
        finally
            echo $error_kind $error_code $error_signal > seen
        end";
        let run = round.command(text).start();
        run.until_lines("ready", 1);
        run.signal(Signal::SIGTERM);
        let finished = run.wait();
        finished.killed_by(Signal::SIGTERM);
        assert_eq!(finished.read("seen"), "canceled 143 TERM\n");
    });
}

#[test]
fn an_interrupt_from_outside_of_a_container_ends_the_run() {
    let unshare = ["-rpf", "--mount-proc", "--kill-child"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|it| it.success()) {
        return skipped("namespaces of processes");
    }
    let wrapper = format!("exec unshare {} \"$@\"", unshare.join(" "));
    let mut user = User::run("/bin/sleep 60; echo late", Some(&wrapper));
    user.awaits("the command", |user| user.foreground().starts_with("/bin/sleep"));
    // Process 1 of the container, as for `docker kill -s INT`.
    let pid = child_of(user.pid());
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("it lives");
    user.sees("ended by signal SIGINT");
}
