//! Resumed runs: work that was killed, suspended or not reported is finished once by the next
//! start.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, chown};

use crate::support::Ftsh;
use crate::support::run::{Finished, Running};
use crate::support::skipped::skipped;

/// Victims of the out-of-memory killer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Victim {
    Supervisor,
    Interpreter,
    Both,
}

pub(crate) const VICTIMS: [Victim; 3] = [Victim::Supervisor, Victim::Interpreter, Victim::Both];

/// A command that reports its first start and then waits forever. A word after it distinguishes
/// several of them.
const STAYS: &str = "sh -c 'test -e been$0 || { echo > been$0; echo >> ready; exec sleep 1000; }'";

/// A script with [`STAYS`] in place of `STAYS`.
fn script(text: &str) -> String {
    text.replace("STAYS", STAYS)
}

/// A recorded run of a script.
pub(crate) fn recorded(text: &str) -> Ftsh {
    Ftsh::script(script(text)).options(["--journal=j"])
}

/// Kills the run and its commands once the command has started.
pub(crate) fn killed(run: Ftsh, victim: Victim) -> Finished {
    let before = fs::read_to_string(run.path("ready")).unwrap_or_default().lines().count();
    let run = run.start();
    run.until_lines("ready", before + 1);
    struck(run, victim)
}

/// Kills the run now.
fn struck(run: Running, victim: Victim) -> Finished {
    let interpreter = run.interpreter().expect("an interpreter");
    if victim != Victim::Interpreter {
        kill(run.pid(), Signal::SIGKILL).expect("it lives");
    }
    if victim != Victim::Supervisor {
        // Other processes may be gone already.
        let _ = kill(interpreter, Signal::SIGKILL);
    }
    let finished = run.leave();
    finished.killed_by(Signal::SIGKILL);
    finished
}

/// The next start with the same words.
pub(crate) fn again(before: Finished) -> Ftsh {
    Ftsh::after(before).options(["--journal=j", "script.ftsh"])
}

/// Checks the output of `--status`.
fn status(of: &Path) -> String {
    Ftsh::new().arg("--status").arg(of.join("j")).success().text()
}

fn says(of: &Path, text: &str) {
    let status = status(of);
    assert!(status.contains(text), "{text} in {status}");
}

/// Checks the last start of a run, which is over.
pub(crate) fn over(finished: Finished) -> Finished {
    finished.nothing_left();
    says(finished.directory.path(), "the run has succeeded");
    finished
}

#[test]
fn finished_commands_are_not_repeated() {
    let text = "echo one >> out
        mktemp -u XXXXXX -> name
        echo $name > before
        try 2 times every 1 ms
            echo attempt $attempt >> out
            STAYS
        end
        echo $name > after
        echo two >> out
        echo status";
    for victim in VICTIMS {
        let finished = killed(recorded(text), victim);
        let finished = over(again(finished).stdout("status\n").success());
        assert_eq!(finished.read("out"), "one\nattempt 1\nattempt 2\ntwo\n", "{victim:?}");
        assert_eq!(finished.read("before"), finished.read("after"));
    }
}

#[test]
fn running_commands_are_lost() {
    let finished = killed(recorded("echo one >> out\nSTAYS\necho two >> out"), Victim::Both);
    let finished = again(finished).stdout("").failure(1);
    finished.expect_stderr("was running when the shell ended");
    assert_eq!(finished.read("out"), "one\n");
    says(finished.directory.path(), "the run has ended with exit status 1");
}

#[test]
fn lost_commands_can_be_distinguished() {
    let text = "try 5 times every 1 ms while $error_kind .ne. lost
            echo attempt >> out
            STAYS
        catch
            echo \"$error_kind $error_code\"
        end";
    let finished = killed(recorded(text), Victim::Interpreter);
    let finished = over(again(finished).stdout("lost 1\n").success());
    assert_eq!(finished.read("out"), "attempt\n");
}

#[test]
fn a_run_is_resumed_repeatedly() {
    let text = "for i in 1 2 3 4
            try 2 times every 1 ms
                STAYS $i
            end
            echo $i >> out
        end";
    let mut finished = killed(recorded(text), Victim::Supervisor);
    for victim in VICTIMS {
        finished = killed(again(finished), victim);
    }
    let finished = over(again(finished).success());
    assert_eq!(finished.read("out"), "1\n2\n3\n4\n");
    says(finished.directory.path(), "after 5 starts");
}

#[test]
fn a_signal_suspends() {
    let text = "try
            try 2 times every 1 ms
                STAYS
            end
            echo body >> out
        finally
            echo finally >> out
        end";
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let run = recorded(text).options(["-f", "log"]).start();
        run.until_lines("ready", 1);
        run.signal(signal);
        let finished = run.wait();
        finished.killed_by(signal).nothing_left();
        assert!(!finished.directory.path().join("out").exists(), "no `finally` runs");
        let status = status(finished.directory.path());
        assert!(status.contains(&format!("the run was suspended by {signal}, at ")), "{status}");
        assert!(status.contains("the next start resumes it"), "{status}");
        let finished = over(again(finished).options(["-f", "log"]).success());
        assert_eq!(finished.read("out"), "body\nfinally\n");
        let log = finished.read("log");
        for text in [&format!("suspended by signal {signal}"), "resumed: 1 command was running"] {
            assert!(log.contains(text), "{text} in {log}");
        }
    }
}

/// Returns the value of `FTSH_DEADLINE` for a moment.
fn deadline(from_now: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    (now + from_now).as_secs_f64().to_string()
}

#[test]
fn a_deadline_from_outside_is_that_of_one_start() {
    let text =
        "try 2 times every 1 ms\nSTAYS\nend\nenv | sh -c \"grep FTSH_DEADLINE || true\"\necho end";
    let run = recorded(text).env("FTSH_DEADLINE", deadline(Duration::from_millis(1500)));
    let finished = run.stdout("").failure(124);
    finished.nothing_left();
    says(finished.directory.path(), "the run was suspended because its time was over");
    // A passed deadline changes nothing.
    let late = again(finished).env("FTSH_DEADLINE", "1").stdout("").stderr("its time is over");
    let finished = late.failure(124);
    finished.nothing_left();
    over(again(finished).stdout("end\n").success());
}

#[test]
fn deadlines_and_delays_end_when_they_would_have() {
    let text = "try for 3 seconds or 1 time
            try 2 times every 1 ms
                STAYS
            end
            sleep 1000 s
        catch
            echo $error_kind
        end";
    let began = Instant::now();
    let finished = killed(recorded(text), Victim::Both);
    let before = finished.elapsed;
    let limit = Duration::from_secs(3);
    let finished = over(again(finished).stdout("timeout\n").success());
    assert!(began.elapsed() >= limit, "{before:?} and {:?}", finished.elapsed);
    // The time between the starts only makes the remaining time shorter.
    assert!(
        finished.within(limit.saturating_sub(before) + Duration::from_millis(500)),
        "{}",
        finished.story()
    );
}

#[test]
fn effects_and_input_of_a_finished_block_stay() {
    let text = "x=\"\"
        for i in 1 2 3
            echo $i
            if $i .eql. 2
                try 2 times every 1 ms
                    STAYS
                end
            end
        end > file
        while .succeeds. (read line)
            echo got $line
            if $line .eq. b
                try 2 times every 1 ms
                    STAYS 2
                end
            end
        end < input >> out
        for i in 4 5 6
            echo $i
            if $i .eql. 5
                try 2 times every 1 ms
                    STAYS 3
                end
            end
        end -> x
        echo \"$x\"";
    for victim in VICTIMS {
        let run =
            recorded(text).file("input", "a\nb\nc\n").file("file", "old\n").file("out", "old\n");
        let mut finished = killed(run, victim);
        for _ in 0..2 {
            finished = killed(again(finished), victim);
        }
        let finished = over(again(finished).stdout("4\n5\n6\n").success());
        assert_eq!(finished.read("file"), "1\n2\n3\n", "{victim:?}");
        assert_eq!(finished.read("out"), "old\ngot a\ngot b\ngot c\n", "{victim:?}");
    }
}

#[test]
fn remaining_processes_are_killed_first() {
    let text = "sh -c 'setsid sleep 1000 > /dev/null 2>&1 & echo $! > pid'
        try 2 times every 1 ms
            STAYS
        end
        read pid < pid
        sh -c 'grep -q sleep /proc/$0/cmdline 2> /dev/null && echo alive || echo gone' $pid";
    let finished = killed(recorded(text), Victim::Both);
    over(again(finished).stdout("gone\n").success());
}

#[test]
fn a_program_in_the_shell_s_place_ends_the_run() {
    let finished = recorded("exec sh -c 'exit 4'").failure(4);
    says(finished.directory.path(), "the run has ended with exit status 4");
    let finished = recorded("exec sh -c 'kill -KILL $$'").run();
    finished.killed_by(Signal::SIGKILL);
    says(finished.directory.path(), "the run was killed by SIGKILL");
}

/// Removes the last byte of the journal, which marks the end as reported.
fn unreported(finished: Finished) -> Finished {
    let journal = finished.directory.path().join("j");
    let bytes = fs::read(&journal).expect("a journal");
    fs::write(&journal, &bytes[..bytes.len() - 1]).expect("a journal");
    says(finished.directory.path(), "but the end is not reported yet: the next start reports it");
    finished
}

#[test]
fn an_unreported_end_is_reported_by_the_next_start() {
    let text = "echo run >> out\nsh -c 'exit 7'";
    let options = ["--summary", "-l", "10"];
    let first = recorded(text).options(options).failure(7);
    let status = first.errors();
    let next = again(unreported(first)).options(options).failure(7);
    let (remark, rest) =
        next.errors().split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("lines");
    assert!(remark.contains("is over, but its end was not reported"), "{remark}");
    let without_time = |status: &str| status.split_once(" ms\n").map(|(_, rest)| rest.to_owned());
    assert!(status.starts_with("ftsh: summary of script.ftsh: failed after "), "{status}");
    assert_eq!(without_time(&rest), without_time(&status));
    assert_eq!(next.read("out"), "run\n");
    let third = again(next).failure(7);
    assert_eq!(third.read("out"), "run\nrun\n", "a new run");
}

#[test]
fn a_mail_that_was_not_sent_is_sent_with_all_that_was_printed() {
    let text = "echo before\ntry 2 times every 1 ms\nSTAYS\nend\necho after\nsh -c 'exit 7'";
    let run = recorded(text).options(["--cron"]).start();
    run.until_lines("ready", 1);
    // Output in transit has no process left that would keep it.
    run.until_lines("j.output", 1);
    let finished = struck(run, Victim::Both);
    let finished = again(finished).options(["--cron"]).stdout("").failure(7);
    let all = |finished: &Finished| {
        let errors = finished.errors();
        let lines: Vec<_> =
            errors.lines().filter(|line| ["before", "after"].contains(line)).collect();
        assert_eq!(lines, ["before", "after"], "{errors}");
        assert!(errors.contains("`sh -c 'exit 7'` exited with 7"), "{errors}");
    };
    all(&finished);
    assert!(!finished.directory.path().join("j.output").exists());
}

#[test]
fn a_resumed_job_that_succeeds_is_silent() {
    let text = "echo before\ntry 2 times every 1 ms\nSTAYS\nend";
    let finished = killed(recorded(text).options(["--cron"]), Victim::Interpreter);
    assert!(finished.directory.path().join("j.output").exists());
    let finished = over(again(finished).options(["--cron", "--summary"]).stdout("").success());
    assert_eq!(finished.errors(), "");
    assert!(!finished.directory.path().join("j.output").exists());
}

#[test]
fn a_file_that_is_not_a_run_s_output_is_left_alone() {
    let run = recorded("echo never").options(["--cron"]).file("j.output", "mine");
    let finished = run.stderr("can't capture the output in").failure(2);
    assert_eq!(finished.read("j.output"), "mine");
}

#[test]
fn an_output_file_left_before_the_run_began_is_used() {
    let run = recorded("echo quiet").options(["--cron"]).file("j", "").file("j.output", "");
    let finished = run.stdout("").success();
    assert!(!finished.directory.path().join("j.output").exists());
}

#[test]
fn output_is_not_captured_in_a_file_of_another_user() {
    if !Uid::effective().is_root() {
        return;
    }
    let text = "try 2 times every 1 ms\nSTAYS\nend";
    let finished = killed(recorded(text).options(["--cron"]), Victim::Interpreter);
    let output = finished.directory.path().join("j.output");
    std::os::unix::fs::chown(output, Some(12345), None).expect("root may");
    let run = again(finished).options(["--cron"]);
    run.stderr("j.output`: it belongs to another user").failure(2);
}

#[test]
fn the_summary_and_the_results_are_of_the_whole_run() {
    let text = "forall i in 1 2 3 at most 1
            sh -c 'exit 0'
            try 2 times every 1 ms
                STAYS
            end
        end";
    let options = ["--summary", "--results=r"];
    let finished = killed(recorded(text).options(options), Victim::Both);
    let finished = over(again(finished).options(options).success());
    finished.expect_stderr("attempts  4 in 3 tries");
    finished.expect_stderr("1 lost");
    assert_eq!(finished.read("r").lines().count(), 3, "{}", finished.read("r"));
}

#[test]
fn a_changed_script_continues_with_its_original_text() {
    let text = "echo one >> out\ntry 2 times every 1 ms\nSTAYS\nend\necho two >> out";
    let changes: [(Option<&str>, &str); 3] = [
        (Some("echo other >> out\n"), "the script has changed"),
        (Some("try\n"), "the script can't be read"),
        (None, "the script can't be read"),
    ];
    for (change, status) in changes {
        let finished = killed(recorded(text), Victim::Both);
        let path = finished.directory.path().join("script.ftsh");
        match change {
            Some(text) => fs::write(path, text).expect("a file"),
            None => fs::remove_file(path).expect("it was there"),
        }
        let finished = over(again(finished).success());
        let errors = finished.errors();
        assert_eq!(errors.matches(status).count(), 1, "{errors}");
        assert!(errors.contains("continues with its original text"), "{errors}");
        assert_eq!(finished.read("out"), "one\ntwo\n");
        // The next start begins a new run of the present script.
        let next = again(finished).run();
        let code = next.status.and_then(|status| status.code());
        assert_eq!(code, Some(if change == Some("echo other >> out\n") { 0 } else { 2 }));
    }
}

#[test]
fn a_sourced_file_that_changed_is_mentioned() {
    let text = "source lib.ftsh; source same.ftsh\ncd dir; source gone.ftsh; cd ..\n\
                try 2 times every 1 ms\nSTAYS\nend\nwords";
    let run = recorded(text).file("same.ftsh", "x=1\n").file("dir/gone.ftsh", "y=2\n");
    let run = run.file("lib.ftsh", "function words\necho then >> out\nend\n");
    let finished = killed(run, Victim::Both);
    fs::write(finished.directory.path().join("lib.ftsh"), "z=3\n").expect("a file");
    fs::remove_file(finished.directory.path().join("dir/gone.ftsh")).expect("it was there");
    let finished = over(again(finished).stderr("/dir/gone.ftsh` has changed").success());
    finished.expect_stderr("`lib.ftsh` has changed");
    assert_eq!(finished.errors().matches("has changed").count(), 2, "{}", finished.errors());
    assert_eq!(finished.read("out"), "then\n");
}

#[test]
fn a_run_of_another_script_must_be_resumed_first() {
    let finished = killed(recorded("STAYS"), Victim::Both);
    let other = Ftsh::after(finished).file("other.ftsh", "echo never");
    other.options(["--journal=j", "other.ftsh"]).refused(&[
        "holds a run of `/",
        "/script.ftsh` that began",
        "`other.ftsh`",
    ]);
}

#[test]
fn a_resumed_run_keeps_its_environment() {
    let text = "try 2 times every 1 ms
            STAYS
        end
        umask
        pwd
        echo \"$1 $WORD $$ ${OTHER:-none}\"
        echo done > made";
    let pid = "cat < /dev/null; echo $$ > pid\n";
    let run = Ftsh::script(pid.to_owned() + &script(text)).options(["--journal=j"]).args(["first"]);
    let run = run.env("WORD", "word").ignoring(Signal::SIGHUP).through([
        "sh",
        "-c",
        "umask 027; exec \"$@\"",
        "sh",
    ]);
    let finished = killed(run, Victim::Both);
    let (pid, directory) = (finished.read("pid"), finished.directory.path().display().to_string());
    fs::create_dir(finished.directory.path().join("elsewhere")).expect("a directory");
    let next = Ftsh::after(finished).env("WORD", "other").env("OTHER", "other");
    let next = next.args(["--journal=../j", "../script.ftsh", "second"]);
    let next = next.through(["sh", "-c", "cd elsewhere; umask 0; exec \"$@\"", "sh"]);
    let expected = format!("0027\n{directory}\nfirst word {} none\n", pid.trim_end());
    let finished = over(next.stdout(expected).success());
    let path = finished.directory.path().join("made");
    let mode =
        fs::metadata(path).map(|it| std::os::unix::fs::PermissionsExt::mode(&it.permissions()));
    assert_eq!(Mode::from_bits_truncate(mode.expect("a file")).bits(), 0o640);
}

#[test]
fn signals_that_were_ignored_are() {
    let finished = killed(
        recorded("try 2 times every 1 ms\nSTAYS\nend\nsh -c 'kill -HUP $$; echo alive'")
            .ignoring(Signal::SIGHUP),
        Victim::Both,
    );
    over(again(finished).stdout("alive\n").success());
    let finished = killed(
        recorded("try 2 times every 1 ms\nSTAYS\nend\nsh -c 'kill -HUP $$; echo alive'"),
        Victim::Both,
    );
    again(finished).ignoring(Signal::SIGHUP).stdout("").failure(129);
}

#[test]
fn a_missing_directory_is_reported() {
    let finished = recorded("mkdir d").success();
    let run = Ftsh::after(finished).through(["sh", "-c", "cd d; exec \"$@\"", "sh"]);
    let run =
        run.file("d/script.ftsh", script("STAYS")).args(["--journal=../k", "script.ftsh"]).start();
    run.until("it is there", |run| run.directory().join("d/ready").exists());
    run.signal(Signal::SIGTERM);
    let finished = run.wait();
    fs::rename(finished.directory.path().join("d"), finished.directory.path().join("e"))
        .expect("a directory");
    let next = Ftsh::after(finished).args(["--journal=k", "d/script.ftsh"]);
    next.refused(&["can't resume the run in", "can't enter its directory", "no such file"]);
}

#[test]
fn another_user_is_refused() {
    if !Uid::effective().is_root() {
        return skipped("root");
    }
    let finished = killed(recorded("STAYS").unprivileged(), Victim::Both);
    let journal = finished.directory.path().join("j");
    let finished =
        again(finished).refused(&["can't use", "it belongs to the user with the id 65534, not 0"]);
    // A change of the file's owner does not change the owner of the run.
    chown(&journal, Some(Uid::from_raw(0)), None).expect("root may");
    again(finished).refused(&["can't resume the run in", "to the user with the id 65534"]);
}

#[test]
fn one_of_two_concurrent_starts_resumes() {
    let text = "try 2 times every 1 ms\nSTAYS\nend\necho once >> out\nsh -c 'until test -e go; do :; done'";
    let finished = killed(recorded(text), Victim::Both);
    let directory = finished.directory.path().to_owned();
    let journal = directory.join("j");
    let starts = [0; 4].map(|_| {
        let start = Ftsh::new().file("script.ftsh", script(text));
        start.arg("--journal").arg(&journal).arg("script.ftsh").start()
    });
    let running =
        |starts: &[Running]| starts.iter().filter(|it| !it.processes().is_empty()).count();
    starts[0].eventually("three are refused", |_| running(&starts) == 1);
    fs::write(directory.join("go"), "").expect("a file");
    let codes: Vec<_> =
        starts.into_iter().map(|start| start.wait().status.and_then(|it| it.code())).collect();
    let count = |code| codes.iter().filter(|&&it| it == Some(code)).count();
    assert_eq!((count(0), count(75)), (1, 3), "{codes:?}");
    assert_eq!(finished.read("out"), "once\n");
}

#[test]
fn a_shell_that_is_only_dying_is_waited_for() {
    let text = "try 2 times every 1 ms
            sh -c 'trap \"\" TERM; test -e ready && exit; echo ready > ready; sleep 1; exec sleep 1000'
        end";
    let run = recorded(text).options(["-t", "1"]).start();
    run.until_lines("ready", 1);
    run.signal(Signal::SIGTERM);
    let directory = run.directory().to_owned();
    run.until("it is being suspended", |_| status(&directory).contains("suspended"));
    let next = Ftsh::new().arg("--journal").arg(directory.join("j")).arg("script.ftsh");
    let next = next.file("script.ftsh", script(text)).success();
    drop(next);
    run.wait().killed_by(Signal::SIGTERM).nothing_left();
}
